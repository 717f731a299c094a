//! What ties a request to its future and to the task that waits for its end. Each holds the same tie,
//! so none acts on another request of the same id.

use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

use crate::Timestamp;

/// What the future of a request, its record and its task share.
#[derive(Debug, Default)]
pub(super) struct Tie {
    abandoned_at: Cell<Option<Timestamp>>,
    /// Wakes the task.
    waker: RefCell<Option<Waker>>,
}

impl Tie {
    /// The future was dropped. It cannot always reach the state then, so it is noted here.
    pub(super) fn abandon(&self, now: Timestamp) {
        self.abandoned_at.set(Some(now));
        self.wake();
    }

    /// When the future was dropped, if it was.
    pub(super) const fn abandoned_at(&self) -> Option<Timestamp> {
        self.abandoned_at.get()
    }

    /// The task wants to hear of what changes.
    pub(super) fn listen(&self, waker: &Waker) {
        self.waker.replace(Some(waker.clone()));
    }

    /// Something has changed that the task must look at.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}
