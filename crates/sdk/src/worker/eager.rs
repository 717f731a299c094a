//! Slots for eager activities: those that the engine dispatches to the worker whose task completion
//! schedules them. They cost no credit of the queue, so slots are promised before the completion is
//! sent.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use abide_core::ids::RunId;

use crate::lock::lock;

pub(super) struct EagerSlots {
    count: usize,
    state: Mutex<EagerState>,
}

#[derive(Default)]
struct EagerState {
    /// Slots promised with completions in flight.
    promised: BTreeMap<RunId, usize>,
    promises: usize,
    busy: usize,
    closed: bool,
}

impl EagerSlots {
    pub(super) fn new(count: usize) -> Self {
        Self { count, state: Mutex::default() }
    }

    /// The activities in flight, and the most of them.
    pub(super) fn used(&self) -> (usize, usize) {
        (self.lock().busy, self.count)
    }

    /// Promises slots for at most `wanted` activities of a run's task; returns how many.
    pub(super) fn promise(&self, run: RunId, wanted: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        let mut state = self.lock();
        let free = self.count.saturating_sub(state.busy + state.promises);
        let promised = if state.closed { 0 } else { wanted.min(free) };
        if promised > 0 {
            state.promises += promised;
            *state.promised.entry(run).or_default() += promised;
        }
        promised
    }

    /// An eager activity of the run arrived and uses a promised slot.
    pub(super) fn take(&self, run: RunId) {
        let mut state = self.lock();
        state.busy += 1;
        if let Some(promised) = state.promised.get_mut(&run) {
            *promised -= 1;
            if *promised == 0 {
                state.promised.remove(&run);
            }
            state.promises -= 1;
        }
    }

    /// The run's completion was acknowledged: promised slots that are still unused are released.
    pub(super) fn answered(&self, run: RunId) {
        let mut state = self.lock();
        if let Some(promised) = state.promised.remove(&run) {
            state.promises -= promised;
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
    }

    /// No completion with promised slots is in flight.
    pub(super) fn none_promised(&self) -> bool {
        self.lock().promises == 0
    }

    /// Releases the slot of an eager activity that ended.
    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        state.busy = state.busy.saturating_sub(1);
    }

    fn lock(&self) -> MutexGuard<'_, EagerState> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_there_are_slots() {
        let (one, two) = (RunId::MIN, RunId::MAX);
        let slots = EagerSlots::new(3);
        assert_eq!(slots.promise(one, 2), 2);
        assert_eq!(slots.promise(two, 2), 1);
        slots.take(one);
        slots.answered(one);
        assert_eq!(slots.promise(one, 9), 1);
        slots.give_back();
        assert_eq!(slots.promise(two, 9), 1);
        slots.close();
        slots.answered(two);
        assert_eq!(slots.promise(two, 9), 0);
    }
}
