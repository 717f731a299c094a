//! How much work of one kind a worker has, and the credit that the engine has for more. Credit is
//! given in portions, so that a busy worker does not send one for every task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::transport::SessionSender;
use abide_core::dispatch::QueueKey;

/// Credit is topped up when this part of the slots is free and not credited.
const PORTION: usize = 4;

/// The slots for one kind of work.
pub(super) struct Slots {
    queue: QueueKey,
    count: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where credit goes; none while there is no stream and while the worker shuts down.
    sender: Option<Arc<dyn SessionSender>>,
    credit: usize,
    busy: usize,
}

impl Slots {
    /// Slots without a stream.
    pub(super) fn new(queue: QueueKey, count: usize) -> Self {
        Self { queue, count, state: Mutex::default() }
    }

    /// The queue, and how much of it the worker takes at once.
    pub(super) fn takes(&self) -> (QueueKey, usize) {
        (self.queue.clone(), self.count)
    }

    /// A stream was opened: the engine gets credit for every free slot.
    pub(super) fn open(&self, sender: &Arc<dyn SessionSender>) {
        let mut state = self.lock();
        state.sender = Some(Arc::clone(sender));
        state.credit = 0;
        self.top_up(state);
    }

    /// No more credit, until a stream is opened.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.sender = None;
        state.credit = 0;
    }

    /// Work came that costs credit.
    pub(super) fn take(&self) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_sub(1);
        state.busy += 1;
    }

    /// Work ended.
    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        state.busy = state.busy.saturating_sub(1);
        self.top_up(state);
    }

    /// No work is under way.
    pub(super) fn idle(&self) -> bool {
        self.lock().busy == 0
    }

    fn top_up(&self, mut state: MutexGuard<'_, State>) {
        let free = self.count.saturating_sub(state.busy + state.credit);
        let worthwhile = state.credit == 0 || free >= self.count / PORTION;
        let Some(sender) = state.sender.clone().filter(|_| free > 0 && worthwhile) else { return };
        state.credit += free;
        drop(state);
        sender.credit(self.queue.clone(), free);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, so what it guards is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use abide_core::{
        dispatch::WorkKind,
        report::{Report, ReportAnswer},
    };

    use super::*;
    use crate::transport::Answer;

    #[derive(Default)]
    struct Credits(Mutex<Vec<usize>>);

    impl SessionSender for Credits {
        fn credit(&self, _: QueueKey, credits: usize) {
            self.0.lock().unwrap().push(credits);
        }

        fn withdraw(&self) {}

        fn report(&self, _: Report) -> Answer<'static, ReportAnswer> {
            Box::pin(std::future::pending())
        }
    }

    fn open(count: usize) -> (Slots, Arc<Credits>) {
        let queue = QueueKey {
            namespace: "default".into(),
            queue: "queue".into(),
            kind: WorkKind::Workflow,
        };
        let slots = Slots::new(queue, count);
        let credits = Arc::new(Credits::default());
        let sender: Arc<dyn SessionSender> = credits.clone();
        slots.open(&sender);
        (slots, credits)
    }

    #[test]
    fn credit_and_work_never_exceed_the_slots() {
        let (slots, credits) = open(8);
        for _ in 0..8 {
            slots.take();
        }
        assert_eq!(*credits.0.lock().unwrap(), [8]);
        slots.give_back();
        slots.give_back();
        slots.give_back();
        assert_eq!(*credits.0.lock().unwrap(), [8, 1, 2]);
    }

    #[test]
    fn a_closed_worker_gives_no_credit_and_a_new_stream_all_of_it() {
        let (slots, credits) = open(2);
        slots.take();
        slots.close();
        slots.give_back();
        assert!(slots.idle());
        assert_eq!(*credits.0.lock().unwrap(), [2]);
        let sender: Arc<dyn SessionSender> = credits.clone();
        slots.open(&sender);
        assert_eq!(*credits.0.lock().unwrap(), [2, 2]);
    }
}
