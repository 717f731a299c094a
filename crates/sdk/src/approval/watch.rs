//! The task that waits for the end of a request.
//!
//! It is a separate task, so that the deadline closes the request in the step in which it comes,
//! even if the request's future is not polled then.

use std::{
    future::Future,
    panic::Location,
    pin::Pin,
    rc::Rc,
    task::{self, Poll},
};

use abide_core::event;

use super::{Approving, Choice, Request, Verdict, link::RequestLink, record::Record};
use crate::{
    Timestamp,
    context::{Condition, Context, Deadline, Outcome, Pending, Timeout, WaitUntil},
    error::{Error, Result},
};

/// Waits for the end of a request, and shows who may act until then.
pub(super) struct Watch<W: Approving, C: Choice> {
    ctx: Context<W>,
    request: Request<C>,
    tie: Rc<RequestLink>,
    waiting: ListedWait<W>,
    /// The actors that lists show.
    listed: Vec<String>,
}

/// The wait that lists show.
enum ListedWait<W: 'static> {
    Endless(Pending<WaitUntil<W>>),
    Limited(Pending<Timeout<WaitUntil<W>>>),
}

impl<W: Approving, C: Choice> Watch<W, C> {
    /// Starts to wait for the end of a request that was asked.
    pub(super) fn begin(
        ctx: Context<W>,
        request: Request<C>,
        place: &'static Location<'static>,
        tie: Rc<RequestLink>,
    ) -> Self {
        let until = request.limit.map(|limit| limit.from(ctx.now()));
        let listed = ctx.read(|state| actors(state, &tie)).unwrap_or_default();
        let wait = wait(&ctx, &request, &tie, &listed);
        let waiting = ListedWait::begin(wait, until, &request);
        // The message of a fault names the place where user code asks.
        ctx.mark(place);
        let deadline = waiting.deadline();
        ctx.write(|state| {
            if let Some(record) = state.approvals_mut().tied_mut(&tie) {
                record.set_deadline(deadline);
            }
        });
        Self { ctx, request, tie, waiting, listed }
    }

    /// Updates the listed actors. The wait stays the same, and with it its deadline, which a client
    /// may be moving at this moment.
    fn relist(&mut self, actors: Vec<String>) {
        self.listed = actors;
        self.waiting.show_actors(self.listed.clone());
    }

    /// Ends the request when its wait is over.
    fn ended(&self, ended: Result<Outcome<()>>) -> Result<Verdict<C>> {
        let now = self.ctx.now();
        let verdict = self.ctx.write(|state| {
            let record = state.approvals_mut().tied_mut(&self.tie)?;
            match &ended {
                Ok(Outcome::InTime(())) => {}
                Ok(Outcome::TimedOut) => record.time_out(now),
                Err(error) => record.withdraw(None, Some(error.to_string()), now),
            }
            record.verdict()
        });
        match (ended, verdict) {
            (Err(error), _) => Err(error),
            (Ok(_), Some(verdict)) => Verdict::read(verdict),
            (Ok(_), None) => {
                let id = self.request.id();
                let message = format!("request {id} is gone: the state's approvals were replaced");
                Err(Error::new(message))
            }
        }
    }
}

// Nothing in it is pinned: the wait is `Unpin`, and the rest is only moved.
impl<W: Approving, C: Choice> Unpin for Watch<W, C> {}

impl<W: Approving, C: Choice> Future for Watch<W, C> {
    type Output = Result<Verdict<C>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        self.tie.listen(cx.waker());
        if self.tie.abandoned_at().is_some() {
            // The future was dropped, so this result is never read.
            return Poll::Ready(Err(Error::Cancelled));
        }
        if let Poll::Ready(ended) = self.waiting.poll(cx) {
            return Poll::Ready(self.ended(ended));
        }
        match self.ctx.read(|state| actors(state, &self.tie)) {
            Some(actors) if actors != self.listed => self.relist(actors),
            _ => {}
        }
        Poll::Pending
    }
}

impl<W: Approving> ListedWait<W> {
    fn begin<C>(wait: WaitUntil<W>, until: Option<Timestamp>, request: &Request<C>) -> Self {
        let Some(until) = until else { return Self::Endless(wait.start()) };
        let mut wait = wait.until(until);
        if let Some(at) = request.not_after {
            wait = wait.not_after(at);
        }
        if let Some(count) = request.max_extensions {
            wait = wait.max_extensions(count);
        }
        Self::Limited(wait.start())
    }

    fn deadline(&self) -> Deadline {
        match self {
            Self::Endless(_) => Deadline::default(),
            Self::Limited(wait) => wait.deadline(),
        }
    }

    fn show_actors(&mut self, actors: Vec<String>) {
        match self {
            Self::Endless(wait) => wait.show_actors(actors),
            Self::Limited(wait) => wait.show_actors(actors),
        }
    }

    fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<Outcome<()>>> {
        match self {
            Self::Endless(wait) => Pin::new(wait).poll(cx).map(|ended| ended.map(Outcome::InTime)),
            Self::Limited(wait) => Pin::new(wait).poll(cx),
        }
    }
}

/// The wait for the end of a request, with all details that lists show.
fn wait<W: Approving, C: Choice>(
    ctx: &Context<W>,
    request: &Request<C>,
    tie: &Rc<RequestLink>,
    actors: &[String],
) -> WaitUntil<W> {
    let approval = event::Approval {
        request: request.id().to_owned(),
        update: W::UPDATE.into(),
        choices: request.rules.choices.clone(),
    };
    let tie = tie.clone();
    let over = move |state: &W| record(state, &tie).is_none_or(Record::is_over);
    let wait = ctx
        .wait_until(Condition::keyed(request.key(), over))
        .about(request.rules.subject.clone())
        .actors(actors)
        .decided_by(approval);
    request.data.iter().fold(wait, |wait, (name, value)| wait.data(name.clone(), value))
}

fn record<'a, W: Approving>(state: &'a W, tie: &Rc<RequestLink>) -> Option<&'a Record> {
    state.approvals().tied(tie)
}

/// The listed actors; none when the request has ended.
fn actors<W: Approving>(state: &W, tie: &Rc<RequestLink>) -> Option<Vec<String>> {
    record(state, tie).filter(|record| !record.is_over()).map(Record::actors)
}
