//! What a run waits for: every open wait, in order of creation, and how it ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
    task::{self, Poll, Waker},
};

use abide_core::{
    event::{DeliveryFailure, WaitDetails},
    failure::Failure,
    ids::{ActivityId, ExecutionId, TimerId, WaitId},
    payload::Payloads,
    retry::RetryState,
};

use super::{board::Board, mailbox::Signal, scope::Scope};
use crate::{activity::LocalEnd, context::OnCancel};

/// What ends a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Timer(TimerId),
    /// Only the condition of this wait, which has no deadline.
    Condition(WaitId),
    Activity(ActivityId),
    /// A local activity ends, by its id.
    Local(String),
    /// A child starts, by its number.
    ChildStart(u64),
    /// A child closes, by its number.
    ChildClose(u64),
    /// A request to another workflow is answered, by its number.
    External(u64),
    /// The scope of the wait is cancelled.
    CancelRequest,
    /// Nothing: the wait ends as it starts.
    Nothing,
}

#[derive(Debug)]
pub(crate) enum Resolution {
    Fired,
    Signal(Signal),
    Satisfied,
    Activity(Box<ActivityOutcome>),
    Local(Box<LocalEnd>),
    ChildStarted,
    /// The child closed, or was never started. The board has the outcome.
    ChildClosed,
    External(Result<(), DeliveryFailure>),
    /// The wait was cancelled, alone or with its scope.
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct ActivityOutcome {
    pub(crate) execution: ExecutionId,
    pub(crate) result: Result<Payloads, (Failure, RetryState)>,
}

/// How a child without a result closed.
#[derive(Clone, Debug)]
pub(crate) struct ChildClosed {
    pub(crate) failure: Failure,
    pub(crate) retry_state: RetryState,
    /// Set if the child never started.
    pub(crate) not_started: Option<DeliveryFailure>,
}

/// An open wait, owned by the future that waits. Dropping it gives up what it waits for.
#[derive(Debug)]
pub struct Wait {
    board: Rc<Board>,
    number: u64,
    over: bool,
}

impl Wait {
    pub(super) const fn new(board: Rc<Board>, number: u64) -> Self {
        Self { board, number, over: false }
    }

    /// The number of the wait within its run.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn board(&self) -> Rc<Board> {
        self.board.clone()
    }

    /// The timer that ends the wait, if any.
    pub(crate) fn timer(&self) -> Option<TimerId> {
        self.board.timer_of(self.number)
    }

    /// Cancels this wait alone, as cancelling its scope would.
    pub(crate) fn cancel(&self) {
        self.board.cancel_wait(self.number);
    }

    /// Updates the details that lists show, if the wait is for a condition.
    pub(crate) fn describe(&self, details: WaitDetails) {
        self.board.describe_wait(self.number, details);
    }

    /// Polls for the end of the wait.
    pub(crate) fn poll(&mut self, cx: &task::Context<'_>) -> Poll<Resolution> {
        let polled = self.board.poll_wait(self.number, cx.waker());
        self.over |= polled.is_ready();
        polled
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if !self.over {
            self.board.abandon(self.number);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Waits {
    entries: BTreeMap<u64, Entry>,
    /// The numbers of pending waits by what ends them.
    subjects: BTreeSet<(Subject, u64)>,
    /// The numbers of pending waits by the signal that ends them.
    receivers: BTreeSet<(&'static str, u64)>,
    /// The numbers of pending waits that a condition ends.
    conditions: BTreeSet<u64>,
    count: u64,
}

/// One wait whose future is alive.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) subject: Subject,
    pub(super) ender: Ender,
    pub(super) on_cancel: OnCancel,
    /// The activity or child was asked to cancel itself, and the wait is for its end.
    pub(super) cancel_asked: bool,
    scope: Rc<Scope>,
    pub(super) waker: Option<Waker>,
    pub(super) resolution: Option<Resolution>,
}

/// What may end a wait besides its subject.
#[derive(Clone)]
pub(super) enum Ender {
    Nothing,
    /// A signal of this name; the empty name matches every signal.
    Signal(&'static str),
    /// A condition on the run's state.
    Condition(WaitId, Predicate),
}

/// Whether a condition holds now.
pub(crate) type Predicate = Rc<dyn Fn() -> bool>;

impl fmt::Debug for Ender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Signal(name) => write!(f, "signal {name:?}"),
            Self::Condition(wait, _) => write!(f, "condition of {wait:?}"),
        }
    }
}

pub(super) struct Ended {
    pub(super) subject: Subject,
    pub(super) ender: Ender,
    pub(super) waker: Option<Waker>,
}

impl Waits {
    /// Opens a wait in a scope.
    pub(super) fn open(
        &mut self,
        subject: Subject,
        ender: Ender,
        on_cancel: OnCancel,
        scope: Rc<Scope>,
    ) -> u64 {
        self.count += 1;
        let number = self.count;
        scope.add(number);
        self.subjects.insert((subject.clone(), number));
        match &ender {
            Ender::Nothing => {}
            Ender::Signal(name) => {
                self.receivers.insert((name, number));
            }
            Ender::Condition(..) => {
                self.conditions.insert(number);
            }
        }
        let (waker, resolution, cancel_asked) = (None, None, false);
        let entry = Entry { subject, ender, on_cancel, cancel_asked, scope, waker, resolution };
        self.entries.insert(number, entry);
        number
    }

    /// Whether a recorded event can still end a wait. Conditions alone do not count, because they
    /// change only after another event, nor do cancel requests that cannot come from outside.
    pub(super) fn pending(&self) -> bool {
        self.subjects.iter().any(|(subject, number)| match subject {
            Subject::Condition(_) => false,
            Subject::CancelRequest => {
                self.entries.get(number).is_some_and(|entry| entry.scope.reached_from_root())
            }
            _ => true,
        })
    }

    /// The oldest pending wait for this signal, or for any.
    pub(super) fn receiver(&self, name: &str) -> Option<u64> {
        let oldest = |name: &str| {
            let receivers: &BTreeSet<(&str, u64)> = &self.receivers;
            receivers.range((name, 0)..=(name, u64::MAX)).next().map(|(_, number)| *number)
        };
        oldest(name).into_iter().chain(oldest("")).min()
    }

    /// The pending waits that a condition ends, oldest first, each with its predicate.
    pub(super) fn conditions(&self) -> Vec<(u64, Predicate)> {
        let predicate = |number: &u64| match &self.entries.get(number)?.ender {
            Ender::Condition(_, predicate) => Some((*number, predicate.clone())),
            Ender::Nothing | Ender::Signal(_) => None,
        };
        self.conditions.iter().filter_map(predicate).collect()
    }

    /// The condition of a pending wait.
    pub(super) fn condition(&self, number: u64) -> Option<WaitId> {
        let entry = self.entries.get(&number).filter(|entry| entry.resolution.is_none())?;
        match &entry.ender {
            Ender::Condition(wait, _) => Some(wait.clone()),
            Ender::Nothing | Ender::Signal(_) => None,
        }
    }

    /// The subject of a wait whose future is alive.
    pub(super) fn subject(&self, number: u64) -> Option<&Subject> {
        self.entries.get(&number).map(|entry| &entry.subject)
    }

    /// The pending waits for this subject, oldest first.
    pub(super) fn of(&self, subject: &Subject) -> Vec<u64> {
        let (first, last) = ((subject.clone(), 0), (subject.clone(), u64::MAX));
        self.subjects.range(first..=last).map(|(_, number)| *number).collect()
    }

    pub(super) fn pending_mut(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&number).filter(|entry| entry.resolution.is_none())
    }

    /// Ends a pending wait.
    pub(super) fn resolve(&mut self, number: u64, resolution: Resolution) -> Option<Ended> {
        let entry = self.pending_mut(number)?;
        entry.resolution = Some(resolution);
        entry.scope.remove(number);
        let ended = Ended {
            subject: entry.subject.clone(),
            ender: entry.ender.clone(),
            waker: entry.waker.take(),
        };
        self.forget(number, &ended.subject, &ended.ender);
        Some(ended)
    }

    /// Removes a wait from the indexes of what can end it.
    fn forget(&mut self, number: u64, subject: &Subject, ender: &Ender) {
        self.subjects.remove(&(subject.clone(), number));
        match ender {
            Ender::Nothing => {}
            Ender::Signal(name) => {
                self.receivers.remove(&(name, number));
            }
            Ender::Condition(..) => {
                self.conditions.remove(&number);
            }
        }
    }

    /// The end of the wait, or the waker that this one replaces.
    pub(super) fn poll(&mut self, number: u64, waker: &Waker) -> Result<Resolution, Option<Waker>> {
        let Some(entry) = self.entries.get_mut(&number) else { return Err(None) };
        match entry.resolution.take() {
            Some(resolution) => {
                self.entries.remove(&number);
                Ok(resolution)
            }
            None if entry.waker.as_ref().is_some_and(|known| known.will_wake(waker)) => Err(None),
            None => Err(entry.waker.replace(waker.clone())),
        }
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        entry.scope.remove(number);
        self.forget(number, &entry.subject, &entry.ender);
        Some(entry)
    }

    /// The numbers of signals that ended a wait whose future has not been polled since.
    pub(super) fn unseen_signals(&self) -> impl Iterator<Item = u64> {
        self.entries.values().filter_map(|entry| match &entry.resolution {
            Some(Resolution::Signal(signal)) => Some(signal.number),
            _ => None,
        })
    }
}
