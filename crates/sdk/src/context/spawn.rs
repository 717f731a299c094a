//! Tasks beside the run.

use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use super::scope::Inside;
use crate::executor::Board;

/// The future of a spawned task's result. Dropping the handle does not affect the task.
pub struct JoinHandle<T> {
    slot: Rc<RefCell<ResultSlot<T>>>,
}

struct ResultSlot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

pub(super) fn spawn<T: 'static>(
    board: &Rc<Board>,
    task: impl Future<Output = T> + 'static,
) -> JoinHandle<T> {
    let slot = Rc::new(RefCell::new(ResultSlot { value: None, waker: None }));
    let filled = slot.clone();
    let task = Inside::new(board.clone(), task);
    board.spawn(Box::pin(async move {
        let value = task.await;
        let mut slot = filled.borrow_mut();
        slot.value = Some(value);
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }));
    JoinHandle { slot }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.slot.borrow_mut();
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                let replaced = slot.waker.replace(cx.waker().clone());
                drop(slot);
                drop(replaced);
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}
