//! An open request: the future of its verdict.

use std::{
    fmt,
    future::{Future, IntoFuture},
    panic::Location,
    pin::Pin,
    rc::Rc,
    task::{self, Poll},
};

use super::{
    Approving, Choice, Decision, Refusal, Request, Verdict, link::RequestLink, watch::Watch,
};
use crate::{
    context::{Context, Deadline, JoinHandle},
    error::{Error, Result},
};

/// A request that is asked when awaited; see [`Context::approval`](crate::Context::approval).
#[must_use = "nothing is asked until it is awaited"]
pub struct ApprovalCall<W: Approving, C: Choice = Decision> {
    ctx: Context<W>,
    request: Request<C>,
    place: &'static Location<'static>,
}

/// An open request, as the future of its verdict. Dropping it withdraws the request.
///
/// The request ends at its deadline, or when the run is cancelled, even if its future is not polled
/// then.
#[must_use = "dropping it withdraws the request"]
pub struct OpenRequest<W: Approving, C: Choice = Decision> {
    ctx: Context<W>,
    request: Request<C>,
    /// Where user code asks, for the message of a fault.
    place: &'static Location<'static>,
    tie: Rc<RequestLink>,
    state: CallState<C>,
}

enum CallState<C> {
    New,
    /// A task waits for the verdict. After returning it, the future stays pending.
    Asked(JoinHandle<Result<Verdict<C>>>),
    Failed(Option<Error>),
}

impl<W: Approving, C: Choice> ApprovalCall<W, C> {
    #[track_caller]
    pub(super) const fn new(ctx: Context<W>, request: Request<C>) -> Self {
        Self { ctx, request, place: Location::caller() }
    }

    /// Asks at once instead of at the first poll.
    pub fn start(self) -> OpenRequest<W, C> {
        let mut open = self.into_future();
        open.begin();
        open
    }
}

impl<W: Approving, C: Choice> IntoFuture for ApprovalCall<W, C> {
    type Output = Result<Verdict<C>>;
    type IntoFuture = OpenRequest<W, C>;

    fn into_future(self) -> OpenRequest<W, C> {
        let Self { ctx, request, place } = self;
        OpenRequest { ctx, request, place, tie: Rc::default(), state: CallState::New }
    }
}

impl<W: Approving, C: Choice> OpenRequest<W, C> {
    /// The deadline. It can be read and moved while the request is open.
    pub fn deadline(&self) -> Deadline {
        self.ctx.read(|state| {
            let record = state.approvals().tied(&self.tie);
            record.map(|record| record.deadline().clone()).unwrap_or_default()
        })
    }

    /// Withdraws the request, for this reason.
    pub fn withdraw(&self, why: &str) -> Result<(), Refusal> {
        let now = self.ctx.now();
        self.ctx.write(|state| match state.approvals_mut().tied_mut(&self.tie) {
            Some(record) => record.withdraw_open(why, now),
            None => Err(Refusal::Closed { request: self.request.id().to_owned() }),
        })
    }

    fn begin(&mut self) {
        let (rules, tie, now) = (self.request.rules.clone(), self.tie.clone(), self.ctx.now());
        let asked = self
            .request
            .check()
            .and_then(|()| self.ctx.write(|state| state.approvals_mut().ask(rules, tie, now)));
        self.state = match asked {
            Ok(()) => {
                let (ctx, request) = (self.ctx.clone(), self.request.clone());
                let watch = Watch::begin(ctx, request, self.place, self.tie.clone());
                CallState::Asked(self.ctx.spawn(watch))
            }
            Err(error) => CallState::Failed(Some(error)),
        };
    }
}

// Nothing in it is pinned: the handle is `Unpin`, and the rest is only moved.
impl<W: Approving, C: Choice> Unpin for OpenRequest<W, C> {}

impl<W: Approving, C: Choice> Future for OpenRequest<W, C> {
    type Output = Result<Verdict<C>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                CallState::New => self.begin(),
                CallState::Asked(verdict) => return Pin::new(verdict).poll(cx),
                CallState::Failed(error) => {
                    return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
            }
        }
    }
}

impl<W: Approving, C: Choice> Drop for OpenRequest<W, C> {
    fn drop(&mut self) {
        if matches!(self.state, CallState::Asked(_)) {
            self.tie.abandon(self.ctx.now());
        }
    }
}

impl<W: Approving, C: Choice> fmt::Debug for ApprovalCall<W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl<W: Approving, C: Choice> fmt::Debug for OpenRequest<W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "open {:?}", self.request)
    }
}
