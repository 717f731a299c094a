//! Scopes and shields: parts of a run that are cancelled together, or not at all.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use abide_core::{event::Origin, time::Timestamp};

use super::{
    Limit, Outcome,
    operation::{Operation, OperationResult, Progress, awaitable},
    timeout::Timeout,
};
use crate::executor::{Board, Cancellation, Scope, ScopeKind, Terms, Wait};

/// A future whose waits can be cancelled together; see [`Context::scope`](super::Context::scope)
/// and [`Context::shield`](super::Context::shield). Dropping it drops the inner future.
#[must_use = "nothing happens until it is awaited"]
pub struct Scoped<F: Future> {
    board: Rc<Board>,
    scope: Rc<Scope>,
    future: Pin<Box<F>>,
}

impl<F: Future> Scoped<F> {
    pub(crate) fn new(board: Rc<Board>, kind: ScopeKind, future: F) -> Self {
        Self { board, scope: Scope::new(kind), future: Box::pin(future) }
    }

    /// A handle that cancels the scope.
    pub fn canceller(&self) -> Canceller {
        Canceller { board: self.board.clone(), scope: self.scope.clone() }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { board, scope, future } = &mut *self;
        scope.attach(&board.scope());
        let _entered = board.enter(scope.clone());
        future.as_mut().poll(cx)
    }
}

/// A future that stays in the scope in which it was made, wherever it is polled.
pub(super) struct Inside<F: Future> {
    board: Rc<Board>,
    scope: Rc<Scope>,
    future: Pin<Box<F>>,
}

impl<F: Future> Inside<F> {
    pub(super) fn new(board: Rc<Board>, future: F) -> Self {
        let scope = board.scope();
        Self { board, scope, future: Box::pin(future) }
    }
}

impl<F: Future> Future for Inside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { board, scope, future } = &mut *self;
        let _entered = board.enter(scope.clone());
        future.as_mut().poll(cx)
    }
}

/// A future that no cancel request from outside reaches; see
/// [`Context::shield`](super::Context::shield).
#[must_use = "nothing happens until it is awaited"]
pub struct Shielded<F: Future> {
    /// None when it has ended.
    inside: Option<Scoped<F>>,
    canceller: Canceller,
    /// The timer of its deadline, once it has started.
    deadline: Option<Wait>,
}

impl<F: Future> Shielded<F> {
    pub(super) fn new(board: Rc<Board>, future: F) -> Self {
        let inside = Scoped::new(board, ScopeKind::Shield, future);
        Self { canceller: inside.canceller(), inside: Some(inside), deadline: None }
    }

    /// A handle that cancels the shielded future itself.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Limits the future to this time. Then its waits end with
    /// [`Error::Cancelled`](crate::Error::Cancelled), and if it is still pending after that it is
    /// dropped.
    pub fn timeout(self, timeout: Duration) -> Timeout<Self> {
        Timeout { wait: self, limit: Limit::After(timeout) }
    }

    /// Limits the future to end by this time; see [`Shielded::timeout`].
    pub fn until(self, deadline: Timestamp) -> Timeout<Self> {
        Timeout { wait: self, limit: Limit::At(deadline) }
    }
}

impl<F: Future> Future for Shielded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(inside) = &mut self.inside else { return Poll::Pending };
        Pin::new(inside).poll(cx)
    }
}

impl<F: Future> Timeout<Shielded<F>> {
    /// A handle that cancels the future before its deadline.
    pub fn canceller(&self) -> Canceller {
        self.wait.canceller()
    }
}

impl<F: Future> Future for Timeout<Shielded<F>> {
    type Output = Outcome<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { wait: Shielded { inside, deadline, .. }, limit } = &mut *self;
        let Some(future) = inside else { return Poll::Pending };
        let board = future.board.clone();
        // The deadline starts first, and in its own shield: no cancel request ends it.
        let at = limit.from(board.now());
        if deadline.is_none() && at > board.now() {
            let beyond = board.enter(Scope::new(ScopeKind::Shield));
            *deadline = Some(board.start_timer(at, Origin::CreateTimer, Terms::default()));
            drop(beyond);
        }
        let outcome = match Pin::new(&mut *future).poll(cx) {
            Poll::Ready(output) => Outcome::InTime(output),
            Poll::Pending if deadline.as_mut().is_some_and(|it| it.poll(cx).is_pending()) => {
                return Poll::Pending;
            }
            Poll::Pending => {
                future.canceller().cancel("timed out");
                // An output at this point is too late, but the code had a chance to record its
                // progress.
                let _too_late = Pin::new(future).poll(cx).is_ready();
                Outcome::TimedOut
            }
        };
        (*inside, *deadline) = (None, None);
        Poll::Ready(outcome)
    }
}

/// Cancels a scope; clones cancel the same one. Dropping it cancels nothing.
#[derive(Clone)]
pub struct Canceller {
    board: Rc<Board>,
    scope: Rc<Scope>,
}

impl Canceller {
    /// Ends every pending wait in the scope, and in scopes inside it, with
    /// [`Error::Cancelled`](crate::Error::Cancelled); later waits there end the same way at once.
    /// Shields inside it are not affected. Only the first call has an effect.
    pub fn cancel(&self, reason: impl Into<String>) {
        self.board.cancel_scope(&self.scope, &Cancellation::new(reason, ""));
    }

    /// Why the scope was cancelled, if it was: by this handle, or by a request from outside that
    /// reached it.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.scope.cancellation()
    }
}

/// Waits for a cancel request; see [`Context::cancelled`](super::Context::cancelled).
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct CancelRequest {
    board: Rc<Board>,
    /// The scope in which it waits.
    scope: Option<Rc<Scope>>,
}

impl CancelRequest {
    pub(super) const fn new(board: Rc<Board>) -> Self {
        Self { board, scope: None }
    }
}

awaitable!([] CancelRequest => Cancellation);

impl Operation for CancelRequest {
    type Output = Cancellation;

    fn refused(&self) -> bool {
        // It waits for the cancellation itself.
        false
    }

    fn begin(&mut self) -> Progress<Cancellation> {
        if let Some(cancellation) = self.board.cancellation() {
            return Progress::Done(cancellation);
        }
        self.scope = Some(self.board.scope());
        Progress::Waits(self.board.wait_for_cancel())
    }

    fn resume(&mut self, _answer: OperationResult) -> Progress<Cancellation> {
        let cancellation = self.scope.as_ref().and_then(|scope| scope.cancellation());
        Progress::Done(cancellation.unwrap_or_default())
    }
}

impl<F: Future> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").field("cancelled", &self.scope.cancellation()).finish()
    }
}

impl<F: Future> fmt::Debug for Shielded<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shielded").field("cancelled", &self.canceller.cancellation()).finish()
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("cancelled", &self.cancellation()).finish()
    }
}
