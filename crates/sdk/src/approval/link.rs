//! What ties a request to its future and to the task that waits for its end. Each holds the same
//! tie, so none acts on another request of the same id.

use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

use crate::Timestamp;

/// State that the future of a request, its record and its task share.
#[derive(Debug, Default)]
pub(super) struct RequestLink {
    abandoned_at: Cell<Option<Timestamp>>,
    waker: RefCell<Option<Waker>>,
}

impl RequestLink {
    /// The future was dropped. It cannot always access the state then, so this records it.
    pub(super) fn abandon(&self, now: Timestamp) {
        self.abandoned_at.set(Some(now));
        self.wake();
    }

    /// When the future was dropped, if it was.
    pub(super) const fn abandoned_at(&self) -> Option<Timestamp> {
        self.abandoned_at.get()
    }

    /// Registers the task's waker.
    pub(super) fn listen(&self, waker: &Waker) {
        self.waker.replace(Some(waker.clone()));
    }

    /// Wakes the task after a change.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}
