//! A request that is asked: the future that waits for its verdict.

use std::{
    cell::Cell,
    fmt,
    future::{Future, IntoFuture},
    panic::Location,
    pin::Pin,
    rc::Rc,
    task::{self, Poll},
};

use abide_core::event;

use super::{Approvals, Approving, Choice, Decision, Refusal, Request, Verdict, record::Abandoned};
use crate::{
    Timestamp,
    context::{Condition, Context, Deadline, Outcome, Pending, WaitUntil, WaitUntilWithin},
    error::{Error, Result},
};

/// A request that can be asked; see [`Context::approval`](crate::Context::approval).
#[must_use = "nothing is asked until it is awaited"]
pub struct ApprovalCall<W: Approving, C: Choice = Decision> {
    ctx: Context<W>,
    request: Request<C>,
    place: &'static Location<'static>,
}

/// A request that people can answer, as the future of its verdict. Dropping it withdraws the request.
#[must_use = "dropping it withdraws the request"]
pub struct OpenRequest<W: Approving, C: Choice = Decision> {
    ctx: Context<W>,
    request: Request<C>,
    /// Where user code asks, for the message of a fault.
    place: &'static Location<'static>,
    state: State<W>,
    abandoned: Abandoned,
}

enum State<W: 'static> {
    New,
    Waits(Box<Waiting<W>>),
    Failed(Error),
    /// The verdict was given. Polled again, the future stays pending.
    Over,
}

/// The wait behind an open request.
enum Waiting<W: 'static> {
    Endless(Pending<WaitUntil<W>>),
    Within(Pending<WaitUntilWithin<W>>),
}

impl<W: Approving, C: Choice> ApprovalCall<W, C> {
    #[track_caller]
    pub(super) const fn new(ctx: Context<W>, request: Request<C>) -> Self {
        Self { ctx, request, place: Location::caller() }
    }

    /// Asks at once instead of when it is first polled.
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
        OpenRequest { ctx, request, place, state: State::New, abandoned: Rc::new(Cell::new(None)) }
    }
}

impl<W: Approving, C: Choice> OpenRequest<W, C> {
    /// The deadline, which can be read and moved while the request is open.
    pub fn deadline(&self) -> Deadline {
        self.ctx.read(|state| state.approvals().deadline(self.request.id()))
    }

    /// Withdraws the request, and says why.
    pub fn withdraw(&self, why: &str) -> Result<(), Refusal> {
        self.ctx.withdraw_approval(self.request.id(), why)
    }

    fn begin(&mut self) {
        let (rules, abandoned, now) =
            (self.request.rules.clone(), self.abandoned.clone(), self.ctx.now());
        let asked = self.request.check().and_then(|()| {
            self.ctx.write(|state| state.approvals_mut().ask(rules, abandoned, now))
        });
        match asked {
            Ok(()) => self.wait(self.request.limit.map(|limit| limit.from(now))),
            Err(error) => self.state = State::Failed(error),
        }
    }

    /// Begins to wait for the end of the request, or for a change of those who may act.
    fn wait(&mut self, until: Option<Timestamp>) {
        let waiting = match until {
            None => Waiting::Endless(self.listed().start()),
            Some(until) => {
                let mut wait = self.listed().until(until);
                if let Some(at) = self.request.not_after {
                    wait = wait.not_after(at);
                }
                if let Some(count) = self.request.max_extensions {
                    wait = wait.max_extensions(count);
                }
                Waiting::Within(wait.start())
            }
        };
        self.ctx.mark(self.place);
        let deadline = waiting.deadline();
        self.ctx.write(|state| {
            if let Some(record) = state.approvals_mut().find_mut(self.request.id()) {
                record.set_deadline(deadline);
            }
        });
        self.state = State::Waits(Box::new(waiting));
    }

    /// The wait with all that lists show, as things stand now.
    fn listed(&self) -> WaitUntil<W> {
        let (id, rules) = (self.request.id().to_owned(), &self.request.rules);
        let (actors, listed) = self.ctx.read(|state| match state.approvals().find(&id) {
            Some(record) => (record.actors(), record.relisted()),
            None => (Vec::new(), 0),
        });
        let approval = event::Approval {
            request: id.clone(),
            update: W::UPDATE.into(),
            choices: rules.choices.clone(),
        };
        let changed = move |state: &W| over_or_relisted(state.approvals(), &id, listed);
        let wait = self
            .ctx
            .wait_until(Condition::keyed(self.request.key(), changed))
            .about(rules.subject.clone())
            .actors(actors)
            .decided_by(approval);
        self.request.data.iter().fold(wait, |wait, (name, value)| wait.data(name.clone(), value))
    }

    /// The wait is over: so is the request, unless others may act now.
    fn ended(&mut self, ended: Result<Outcome<()>>) -> Option<Result<Verdict<C>>> {
        let (id, now) = (self.request.id(), self.ctx.now());
        let seen = self.ctx.write(|state| {
            let record = state.approvals_mut().find_mut(id)?;
            match &ended {
                Ok(Outcome::InTime(())) => {}
                Ok(Outcome::TimedOut) => record.time_out(now),
                Err(error) => record.withdraw(None, Some(error.to_string()), now),
            }
            Some((record.verdict(), record.kept_deadline()))
        });
        match (ended, seen) {
            (Err(error), _) => Some(Err(error)),
            (Ok(_), Some((Some(verdict), _))) => Some(Verdict::read(verdict)),
            (Ok(_), Some((None, until))) => {
                self.wait(until);
                None
            }
            (Ok(_), None) => {
                let message = format!("request {id} is gone: the state's approvals were replaced");
                Some(Err(Error::fail(message)))
            }
        }
    }
}

/// Whether a request is over, or others may act than when it was listed.
fn over_or_relisted(approvals: &Approvals, request: &str, listed: u64) -> bool {
    let record = approvals.find(request);
    record.is_none_or(|record| record.is_over() || record.relisted() != listed)
}

impl<W: Approving> Waiting<W> {
    fn deadline(&self) -> Deadline {
        match self {
            Self::Endless(_) => Deadline::default(),
            Self::Within(wait) => wait.deadline(),
        }
    }

    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<Outcome<()>>> {
        match self {
            Self::Endless(wait) => Pin::new(wait).poll(cx).map(|ended| ended.map(Outcome::InTime)),
            Self::Within(wait) => Pin::new(wait).poll(cx),
        }
    }
}

// Nothing in it is pinned: the wait is `Unpin`, and the rest is only moved.
impl<W: Approving, C: Choice> Unpin for OpenRequest<W, C> {}

impl<W: Approving, C: Choice> Future for OpenRequest<W, C> {
    type Output = Result<Verdict<C>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                State::New => self.begin(),
                State::Over => return Poll::Pending,
                State::Failed(_) => {
                    let failed = std::mem::replace(&mut self.state, State::Over);
                    if let State::Failed(error) = failed {
                        return Poll::Ready(Err(error));
                    }
                }
                State::Waits(waiting) => {
                    let ended = task::ready!(waiting.poll(cx));
                    self.state = State::Over;
                    if let Some(verdict) = self.ended(ended) {
                        return Poll::Ready(verdict);
                    }
                }
            }
        }
    }
}

impl<W: Approving, C: Choice> Drop for OpenRequest<W, C> {
    fn drop(&mut self) {
        if matches!(self.state, State::Waits(_)) {
            self.abandoned.set(Some(self.ctx.now()));
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
