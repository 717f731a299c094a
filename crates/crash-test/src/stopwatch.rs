//! Measures how long clients wait for their calls, in all and since the fault during or after which
//! they were answered.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::faults::FaultKind;

/// Measures calls, and keeps the longest durations.
#[derive(Default)]
pub(crate) struct Stopwatch {
    times: Mutex<Times>,
}

/// The longest durations of calls.
#[derive(Clone, Default)]
pub(crate) struct Times {
    /// The last fault, and when it began.
    fault: Option<(FaultKind, Instant)>,
    /// From the start of a call to its answer.
    pub(crate) longest: Duration,
    /// The part of it since the start of the last fault, by that fault. A delay by an earlier fault
    /// is not attributed to a later one.
    pub(crate) by_fault: BTreeMap<FaultKind, Duration>,
}

impl Stopwatch {
    /// From now on, slow calls are attributed to this fault.
    pub(crate) fn blame(&self, fault: FaultKind) {
        self.times().fault = Some((fault, Instant::now()));
    }

    /// Makes a call and measures it.
    pub(crate) async fn time<F: IntoFuture>(&self, call: F) -> F::Output {
        let begun = Instant::now();
        let answer = call.await;
        let took = begun.elapsed();
        let mut times = self.times();
        times.longest = times.longest.max(took);
        if let Some((fault, began_at)) = times.fault {
            let longest = times.by_fault.entry(fault).or_default();
            *longest = took.min(began_at.elapsed()).max(*longest);
        }
        answer
    }

    /// The longest calls so far.
    pub(crate) fn longest(&self) -> Times {
        self.times().clone()
    }

    /// A poisoned lock is fine: nothing that could panic runs under it.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
