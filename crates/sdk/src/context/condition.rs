//! Waiting until a condition on the run's own state holds.

use std::{
    borrow::Cow,
    cell::RefCell,
    fmt,
    rc::{Rc, Weak},
    time::Duration,
};

use abide_core::{event, limits::valid_condition_key, time::Timestamp};

use super::{
    operation::{Operation, OperationResult, Pending, Progress, awaitable},
    outcome::Outcome,
    site::Site,
    terms::{Limit, StatedTerms, described, guarded},
    timeout::Timeout,
};
use crate::{
    error::{Error, Result},
    executor::{Predicate, Resolution},
};

/// A condition on the state of workflow `W`, made by [`condition!`](crate::condition).
///
/// Its key and the fingerprint of its predicate are in history, and a run whose changed code has
/// another condition at the same place is blocked instead of going wrong. The predicate may only
/// read the state and what it owns; functions that it calls, and values that it captures, are not
/// part of the fingerprint.
pub struct Condition<W> {
    key: Option<Cow<'static, str>>,
    fingerprint: Option<&'static str>,
    holds: Rc<dyn Fn(&W) -> bool>,
}

impl<W> Condition<W> {
    /// What [`condition!`](crate::condition) expands to.
    #[doc(hidden)]
    pub fn checked(
        key: Option<&'static str>,
        fingerprint: &'static str,
        holds: impl Fn(&W) -> bool + 'static,
    ) -> Self {
        Self { key: key.map(Into::into), fingerprint: Some(fingerprint), holds: Rc::new(holds) }
    }

    /// A condition that is identified by its key alone: a changed predicate is not detected. For
    /// code that computes its keys. A key has 1 to 128 letters, digits and `. _ - :` characters.
    pub fn keyed(key: impl Into<Cow<'static, str>>, holds: impl Fn(&W) -> bool + 'static) -> Self {
        Self { key: Some(key.into()), fingerprint: None, holds: Rc::new(holds) }
    }

    fn recorded(&self) -> Result<event::Condition> {
        let key = self.key.as_deref().map(str::to_owned);
        match &key {
            Some(key) if !valid_condition_key(key) => Err(Error::new(format!(
                "{key:?} is not a valid condition key: use 1 to 128 letters, digits and . _ - : characters"
            ))),
            _ => Ok(event::Condition { key, fingerprint: self.fingerprint.map(str::to_owned) }),
        }
    }
}

/// A wait for a condition; see [`Context::wait_until`](super::Context::wait_until).
#[must_use = "nothing happens until it is awaited"]
pub struct WaitUntil<W> {
    board: Site,
    /// Weak: the board keeps the predicate, and the state may own a reference to the board.
    state: Weak<RefCell<W>>,
    condition: Condition<W>,
    said: StatedTerms,
}

impl<W: 'static> WaitUntil<W> {
    pub(super) fn new(board: Site, state: &Rc<RefCell<W>>, condition: Condition<W>) -> Self {
        Self { board, state: Rc::downgrade(state), condition, said: StatedTerms::default() }
    }

    /// Waits for at most this long. Zero only checks whether the condition holds.
    pub fn timeout(self, timeout: Duration) -> Timeout<WaitUntil<W>> {
        Timeout { wait: self, limit: Limit::After(timeout) }
    }

    /// Waits until this time at the latest.
    pub fn until(self, deadline: Timestamp) -> Timeout<WaitUntil<W>> {
        Timeout { wait: self, limit: Limit::At(deadline) }
    }

    /// Marks the condition as a person's decision, which reaches the run as described.
    pub(crate) fn decided_by(mut self, approval: event::Approval) -> Self {
        self.said.approval(approval);
        self
    }

    fn predicate(&self) -> Predicate {
        let (state, holds) = (self.state.clone(), self.condition.holds.clone());
        Rc::new(move || state.upgrade().is_some_and(|state| holds(&state.borrow())))
    }

    fn begin(&mut self, limit: Option<Limit>) -> Progress<Result<Outcome<()>>> {
        let recorded = self.condition.recorded();
        let (condition, terms) = match recorded.and_then(|it| Ok((it, self.said.terms()?))) {
            Ok(both) => both,
            Err(error) => return Progress::Done(Err(error)),
        };
        let holds = self.predicate();
        let now = self.board.now();
        match limit.map(|limit| limit.from(now)) {
            _ if self.board.look(|| holds()) => Progress::Done(Ok(Outcome::InTime(()))),
            Some(until) if until <= now => Progress::Done(Ok(Outcome::TimedOut)),
            until => Progress::Waits(self.board.wait_until(condition, holds, until, terms)),
        }
    }
}

impl<W: 'static> Pending<WaitUntil<W>> {
    /// Updates the listed actors.
    pub(crate) fn show_actors(&mut self, actors: Vec<String>) {
        if let Some((until, wait)) = self.parts() {
            wait.describe(until.said.changed_actors(actors));
        }
    }
}

impl<W: 'static> Pending<Timeout<WaitUntil<W>>> {
    /// Updates the listed actors.
    pub(crate) fn show_actors(&mut self, actors: Vec<String>) {
        if let Some((timeout, wait)) = self.parts() {
            wait.describe(timeout.wait.said.changed_actors(actors));
        }
    }
}

fn ended(resolution: &Resolution) -> Progress<Result<Outcome<()>>> {
    Progress::Done(match resolution {
        Resolution::Satisfied => Ok(Outcome::InTime(())),
        Resolution::Cancelled => Err(Error::Cancelled),
        _ => Ok(Outcome::TimedOut),
    })
}

described!([W: 'static] WaitUntil<W>, said);
described!([W: 'static] Timeout<WaitUntil<W>>, wait.said);
guarded!([W: 'static] Timeout<WaitUntil<W>>, wait.said);
awaitable!([W: 'static] WaitUntil<W> => Result<()>);
awaitable!([W: 'static] Timeout<WaitUntil<W>> => Result<Outcome<()>>);

impl<W: 'static> Operation for WaitUntil<W> {
    type Output = Result<()>;

    fn refused(&self) -> bool {
        self.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        Self::begin(self, None).without_deadline()
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        ended(&answer.0).without_deadline()
    }
}

impl<W: 'static> Operation for Timeout<WaitUntil<W>> {
    type Output = Result<Outcome<()>>;

    fn refused(&self) -> bool {
        self.wait.board.refuses()
    }

    fn begin(&mut self) -> Progress<Self::Output> {
        self.wait.begin(Some(self.limit))
    }

    fn resume(&mut self, answer: OperationResult) -> Progress<Self::Output> {
        ended(&answer.0)
    }
}

impl<W> fmt::Debug for Condition<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {}", self.key.as_deref().unwrap_or("without key"))
    }
}

impl<W> fmt::Debug for WaitUntil<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wait until {:?}", self.condition)
    }
}
