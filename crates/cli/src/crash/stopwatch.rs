//! How long clients had to wait for their calls, told apart by the fault during or after which they
//! were answered.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::faults::Fault;

/// The longest time that a call took, by fault.
#[derive(Default)]
pub(super) struct Stopwatch {
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    fault: Option<Fault>,
    longest: BTreeMap<Fault, Duration>,
}

impl Stopwatch {
    /// From now on, calls are slow because of this fault.
    pub(super) fn blame(&self, fault: Fault) {
        self.times().fault = Some(fault);
    }

    /// Makes a call and measures it.
    pub(super) async fn time<F: IntoFuture>(&self, call: F) -> F::Output {
        let begun = Instant::now();
        let answer = call.await;
        let mut times = self.times();
        if let Some(fault) = times.fault {
            let longest = times.longest.entry(fault).or_default();
            *longest = begun.elapsed().max(*longest);
        }
        answer
    }

    /// The longest call of each fault.
    pub(super) fn longest(&self) -> BTreeMap<Fault, Duration> {
        self.times().longest.clone()
    }

    /// Nothing that could panic is done under the lock.
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
