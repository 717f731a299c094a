//! How a running attempt learns that it should stop. Needs no runtime.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use crate::lock::lock;

/// Asks an attempt to stop; all clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    state: Arc<Mutex<CancelState>>,
}

#[derive(Debug, Default)]
struct CancelState {
    cancelled: bool,
    waiting: BTreeMap<u64, Waker>,
    /// How many futures have waited so far; the next one gets this number.
    waited: u64,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the attempt to stop and wakes all waiting [`Cancelled`] futures.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.cancelled = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Whether the attempt was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// A future that resolves when the attempt is asked to stop.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), number: None }
    }

    fn lock(&self) -> MutexGuard<'_, CancelState> {
        lock(&self.state)
    }
}

/// A future that resolves when the attempt is asked to stop.
#[derive(Debug)]
pub struct Cancelled {
    token: CancelToken,
    /// The key of its waker, once it waits.
    number: Option<u64>,
}

impl Clone for Cancelled {
    fn clone(&self) -> Self {
        self.token.cancelled()
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let token = self.token.clone();
        let mut state = token.lock();
        if state.cancelled {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            state.waited += 1;
            state.waited
        });
        state.waiting.insert(number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // The waker is dropped after the lock is released: it may be the last one of a task
            // that owns a future like this one.
            let waker = self.token.lock().waiting.remove(&number);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_that_is_dropped_leaves_nothing_behind() {
        let token = CancelToken::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut kept = token.cancelled();
        for _ in 0..100 {
            assert!(Pin::new(&mut kept).poll(&mut context).is_pending());
            assert!(Pin::new(&mut token.cancelled()).poll(&mut context).is_pending());
        }
        assert_eq!(token.lock().waiting.len(), 1);
        token.cancel();
        assert!(Pin::new(&mut kept).poll(&mut context).is_ready());
    }
}
