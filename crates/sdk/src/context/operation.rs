//! The one future behind all durable operations: it issues its command when it is first polled,
//! waits, and turns the answer into a value.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::outcome::Outcome;
use crate::{
    error::{Error, Result},
    executor::{Resolution, Wait},
};

/// A durable operation. Implemented by this crate alone.
pub trait Operation: Unpin {
    /// The output of the future.
    type Output;

    /// Whether it may not start, because its scope is cancelled.
    #[doc(hidden)]
    fn refused(&self) -> bool;

    /// Issues the command.
    #[doc(hidden)]
    fn begin(&mut self) -> Progress<Self::Output>;

    /// Handles the answer.
    #[doc(hidden)]
    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output>;
}

/// The progress of an operation.
#[derive(Debug)]
pub enum Progress<T> {
    /// The operation is pending, with this wait.
    Waits(Wait),
    /// The operation has ended with this output.
    Done(T),
}

impl<T> Progress<Result<Outcome<T>>> {
    /// The same for a wait without a deadline, which cannot time out.
    pub(super) fn without_deadline(self) -> Progress<Result<T>> {
        match self {
            Self::Waits(wait) => Progress::Waits(wait),
            Self::Done(Ok(Outcome::InTime(value))) => Progress::Done(Ok(value)),
            Self::Done(Ok(Outcome::TimedOut)) => {
                Progress::Done(Err(Error::new("a wait without deadline was timed out")))
            }
            Self::Done(Err(error)) => Progress::Done(Err(error)),
        }
    }
}

/// The answer to an operation.
#[derive(Debug)]
pub struct OperationResult(pub(super) Resolution);

/// An operation as a future. It starts when it is first polled; dropping it while it is pending
/// gives up what it waits for.
#[derive(Debug)]
#[must_use = "dropping it cancels the wait"]
pub struct Pending<O: Operation> {
    operation: O,
    state: OperationState<O::Output>,
}

#[derive(Debug)]
enum OperationState<T> {
    New,
    Begun(Progress<T>),
    /// The output was returned. Polled again, the future stays pending.
    Over,
}

impl<O: Operation> Pending<O> {
    pub(super) const fn new(operation: O) -> Self {
        Self { operation, state: OperationState::New }
    }

    pub(super) fn begun(mut operation: O) -> Self {
        let state = OperationState::Begun(begin(&mut operation));
        Self { operation, state }
    }

    /// Cancels this one wait, as cancelling its scope would. It can still be awaited: the output is
    /// [`Error::Cancelled`](crate::Error::Cancelled), unless the operation had ended already or the
    /// call sets [`OnCancel::CancelAndWait`](super::OnCancel::CancelAndWait). Drop it instead if
    /// the output does not matter. An operation that has not started never does.
    pub fn cancel(&mut self) {
        match &self.state {
            OperationState::New => {
                let cancelled = self.operation.resume(OperationResult(Resolution::Cancelled));
                self.state = OperationState::Begun(cancelled);
            }
            OperationState::Begun(Progress::Waits(wait)) => wait.cancel(),
            OperationState::Begun(Progress::Done(_)) | OperationState::Over => {}
        }
    }

    /// The operation together with its wait, while it is pending.
    pub(super) fn parts(&mut self) -> Option<(&mut O, &Wait)> {
        match &self.state {
            OperationState::Begun(Progress::Waits(wait)) => Some((&mut self.operation, wait)),
            _ => None,
        }
    }

    /// The wait, while it is pending.
    pub(super) const fn wait(&self) -> Option<&Wait> {
        match &self.state {
            OperationState::Begun(Progress::Waits(wait)) => Some(wait),
            _ => None,
        }
    }
}

// Nothing in it is pinned: the operation is `Unpin`, and the output is only moved.
impl<O: Operation> Unpin for Pending<O> {}

impl<O: Operation> Future for Pending<O> {
    type Output = O::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<O::Output> {
        let Self { operation, state } = &mut *self;
        loop {
            let progress = match std::mem::replace(state, OperationState::Over) {
                OperationState::New => begin(operation),
                OperationState::Begun(progress) => progress,
                OperationState::Over => return Poll::Pending,
            };
            let mut wait = match progress {
                Progress::Done(output) => return Poll::Ready(output),
                Progress::Waits(wait) => wait,
            };
            match wait.poll(cx) {
                Poll::Ready(resolution) => {
                    *state = OperationState::Begun(operation.resume(OperationResult(resolution)));
                }
                Poll::Pending => {
                    *state = OperationState::Begun(Progress::Waits(wait));
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Starts an operation. In a cancelled scope it ends at once, like a pending one did, and issues no
/// command.
fn begin<O: Operation>(operation: &mut O) -> Progress<O::Output> {
    match operation.refused() {
        true => operation.resume(OperationResult(Resolution::Cancelled)),
        false => operation.begin(),
    }
}

/// Makes operations awaitable, and gives them `start` unless that is left out.
macro_rules! awaitable {
    ([$($parameter:ident $(: $bound:tt)?),*] $name:ty => $output:ty) => {
        impl<$($parameter $(: $bound)?),*> $name {
            /// Starts at once instead of at the first poll.
            pub fn start(self) -> $crate::context::Pending<Self> {
                $crate::context::Pending::begun(self)
            }
        }

        $crate::context::operation::awaitable!(
            without_start [$($parameter $(: $bound)?),*] $name => $output
        );
    };
    (without_start [$($parameter:ident $(: $bound:tt)?),*] $name:ty => $output:ty) => {
        impl<$($parameter $(: $bound)?),*> std::future::IntoFuture for $name {
            type Output = $output;
            type IntoFuture = $crate::context::Pending<Self>;

            fn into_future(self) -> Self::IntoFuture {
                $crate::context::Pending::new(self)
            }
        }
    };
}
pub(super) use awaitable;
