//! How a running attempt learns that it should stop. Needs no runtime.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Tells an attempt that it should stop; all clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    waiting: Vec<Waker>,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the attempt to stop.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The attempt was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Ready when the attempt is asked to stop.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, so what it guards is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ready when the attempt is asked to stop.
#[derive(Clone, Debug)]
pub struct Cancelled {
    token: CancelToken,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.token.lock();
        if state.cancelled {
            return Poll::Ready(());
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
