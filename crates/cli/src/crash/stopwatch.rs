//! How long clients had to wait for their calls, in all and since the fault during or after which they
//! were answered.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::faults::Fault;

/// The longest calls.
#[derive(Default)]
pub(super) struct Stopwatch {
    times: Mutex<Times>,
}

/// The longest times that calls took.
#[derive(Clone, Default)]
pub(super) struct Times {
    /// The last fault, and when it began.
    fault: Option<(Fault, Instant)>,
    /// From the beginning to the answer.
    pub(super) longest: Duration,
    /// The part of it since the last fault had begun, by that fault. What an earlier one has held up is
    /// not the fault of a later one.
    pub(super) by_fault: BTreeMap<Fault, Duration>,
}

impl Stopwatch {
    /// From now on, calls are slow because of this fault.
    pub(super) fn blame(&self, fault: Fault) {
        self.times().fault = Some((fault, Instant::now()));
    }

    /// Makes a call and measures it.
    pub(super) async fn time<F: IntoFuture>(&self, call: F) -> F::Output {
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
    pub(super) fn longest(&self) -> Times {
        self.times().clone()
    }

    /// Nothing that could panic is done under the lock.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
