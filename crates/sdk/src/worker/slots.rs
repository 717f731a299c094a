//! Slots for one kind of work, and the credit that the engine holds for them. Credit is granted in
//! portions, so that a busy worker does not send a message for every task.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::{lock::lock, transport::SessionSender};
use abide_core::dispatch::QueueKey;

/// Credit is topped up when it is used up, or when 1/`PORTION` of the slots is free and without
/// credit.
const PORTION: usize = 4;

pub(super) struct Slots {
    queue: QueueKey,
    count: usize,
    state: Mutex<SlotsState>,
}

#[derive(Default)]
struct SlotsState {
    /// Where credit is sent; none while disconnected and during shutdown.
    sender: Option<Arc<dyn SessionSender>>,
    credit: usize,
    busy: usize,
}

impl Slots {
    /// Slots of a worker that is not connected yet.
    pub(super) fn new(queue: QueueKey, count: usize) -> Self {
        Self { queue, count, state: Mutex::default() }
    }

    /// The queue, and how much work of it the worker takes at once.
    pub(super) fn takes(&self) -> (QueueKey, usize) {
        (self.queue.clone(), self.count)
    }

    /// A stream was opened: grants credit for every free slot.
    pub(super) fn open(&self, sender: &Arc<dyn SessionSender>) {
        let mut state = self.lock();
        state.sender = Some(Arc::clone(sender));
        state.credit = 0;
        self.top_up(state);
    }

    /// Grants no more credit until a stream is opened.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.sender = None;
        state.credit = 0;
    }

    /// Work arrived that used up credit.
    pub(super) fn take(&self) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_sub(1);
        state.busy += 1;
    }

    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        state.busy = state.busy.saturating_sub(1);
        self.top_up(state);
    }

    /// The work in flight, and the most of it.
    pub(super) fn used(&self) -> (usize, usize) {
        (self.lock().busy, self.count)
    }

    /// No work is in flight.
    pub(super) fn idle(&self) -> bool {
        self.lock().busy == 0
    }

    fn top_up(&self, mut state: MutexGuard<'_, SlotsState>) {
        let free = self.count.saturating_sub(state.busy + state.credit);
        let worthwhile = state.credit == 0 || free >= self.count / PORTION;
        let Some(sender) = state.sender.clone().filter(|_| free > 0 && worthwhile) else { return };
        state.credit += free;
        drop(state);
        sender.credit(self.queue.clone(), free);
    }

    fn lock(&self) -> MutexGuard<'_, SlotsState> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use abide_core::{
        dispatch::WorkKind,
        report::{Report, ReportAnswer},
    };

    use super::*;
    use crate::transport::AnswerFuture;

    #[derive(Default)]
    struct Credits(Mutex<Vec<usize>>);

    impl SessionSender for Credits {
        fn credit(&self, _: QueueKey, credits: usize) {
            self.0.lock().unwrap().push(credits);
        }

        fn withdraw(&self) {}

        fn report(&self, _: Report) -> AnswerFuture<'static, ReportAnswer> {
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
