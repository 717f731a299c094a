//! Programs as plain data: a tree of steps that the SDK offers. Workers run them as workflows on
//! the real executor.

use std::time::Duration;

use super::{Activity, Child, Crowd, Local, Saga};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Steps of the workflow. When they end, the run completes.
    pub body: Node,
    /// A cancel request ends the current wait, and nothing else.
    pub ignores_cancel: bool,
    /// The whole program is one scope, in which nothing starts after it is cancelled.
    pub scoped: bool,
    /// What the run does after it was cancelled, before it ends.
    pub cleanup: Cleanup,
    /// How long the update `accept` takes; `None` completes it immediately.
    pub update_delay: Option<Duration>,
    /// Activity that the update `work` runs.
    pub update_work: Activity,
    /// Deliberate bug in how the program is run.
    pub quirk: Option<Quirk>,
}

/// A deliberate bug in how a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// The last step of the cleanup is skipped.
    CleanupCutShort,
    /// The cleanup runs twice.
    CleanupTwice,
    /// A cancel request reaches what should be shielded.
    Unshielded,
    /// The last step of a saga is not undone.
    StepNotUndone,
    /// A saga is undone concurrently instead of step by step.
    UndoneAtOnce,
    /// One more than allowed is in flight.
    BoundIgnored,
    /// A deadline that code has rescheduled fires at its old time.
    MoveIgnored,
    /// A signal is handled at the time at which the clock of another node saw it arrive, even if the
    /// clock that numbered it was behind.
    LaterClock,
}

/// What a run does after it was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    pub steps: usize,
    /// How long they may take together.
    pub limit: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Runs the steps one after the other.
    Sequence(Vec<Node>),
    /// Runs all steps concurrently; done when all are.
    Join(Vec<Node>),
    /// Runs all steps concurrently; done when one is, and the others are dropped.
    Select(Vec<Node>),
    Sleep(Duration, Terms),
    /// Waits for a signal.
    Receive {
        /// Name of the signal; `None` matches any.
        name: Option<&'static str>,
        /// At most this long, or without limit; zero takes only a signal that has already arrived.
        timeout: Option<Duration>,
        terms: Terms,
    },
    /// Waits for a condition on the state of the run.
    Until {
        goal: Goal,
        /// At most this long, or without limit; zero does not wait.
        timeout: Option<Duration>,
        terms: Terms,
    },
    /// Requests an approval, and waits for the decision.
    Approve {
        /// How many people must agree; one decides alone.
        needed: usize,
        /// At most this long, or without limit.
        timeout: Option<Duration>,
        terms: Terms,
    },
    /// Reschedules the oldest open deadline of the run.
    Move(Move),
    Activity(Activity),
    /// Runs an activity within the workflow task.
    Local(Local),
    Child(Child),
    /// Runs the same activity several times concurrently.
    Crowd(Crowd),
    /// Takes steps that are undone if one of them, or something after them, fails.
    Saga(Saga),
    /// A part that is cancelled as a whole.
    Scope {
        body: Box<Node>,
        /// When it is cancelled, unless it ends before.
        cancel_after: Option<Duration>,
    },
    /// A part that is shielded from cancel requests.
    Shield {
        body: Box<Node>,
        /// How long it may take.
        timeout: Option<Duration>,
    },
    SignalExternal {
        workflow: String,
        name: &'static str,
    },
    /// Requests cancellation of another workflow.
    CancelExternal {
        workflow: String,
    },
    /// Waits for the running handlers.
    Finish,
    /// Records a non-deterministic value.
    SideEffect,
    /// Changes the search attributes of the run.
    Upsert(Upsert),
    /// A changed part of the code, and its old version.
    Patch {
        change: &'static str,
        new: Box<Node>,
        old: Box<Node>,
    },
    /// Continues in a new run, until the workflow has had this many.
    ContinueAsNew {
        runs: u64,
        successor: Successor,
    },
    Fail,
}

impl Default for Node {
    fn default() -> Self {
        Self::Sequence(Vec::new())
    }
}

/// The run that follows one that continues as new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Successor {
    /// Like the previous one.
    #[default]
    Alike,
    Limited(Duration),
    /// Of the type without children.
    Childless,
}

/// New values of the two search attributes that programs know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upsert {
    /// None removes it.
    pub stage: Option<i64>,
    /// None removes them.
    pub tags: Option<Vec<String>>,
}

/// What a condition wait is for. Once it holds, it holds forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// This many signals `mark` have arrived.
    Marks(u64),
    /// Two marks, as a literal condition with a key and a fingerprint.
    TwoMarks,
    /// This many updates `vote` were accepted.
    Votes(u64),
    /// A sleep of the run has ended; a literal condition without a key.
    Slept,
}

/// Details and limits of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Whether people see what it is about.
    pub described: bool,
    /// How long after the start of the wait its deadline may be rescheduled from outside.
    pub not_after: Option<Duration>,
    /// How many times its deadline may be rescheduled from outside.
    pub max_extensions: Option<u32>,
}

/// How code reschedules a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To this long from now.
    In(Duration),
    /// By this much.
    By(Duration),
    /// To the past, which is refused.
    Past,
    /// To never, which is refused.
    Never,
}

impl Goal {
    /// Key of the condition, from which checks can tell what must hold.
    pub fn key(self) -> Option<String> {
        match self {
            Self::Marks(count) => Some(format!("marks:{count}")),
            Self::TwoMarks => Self::Marks(2).key(),
            Self::Votes(count) => Some(format!("votes:{count}")),
            Self::Slept => None,
        }
    }

    pub fn of_key(key: &str) -> Option<Self> {
        let (kind, count) = key.split_once(':')?;
        let count = count.parse().ok()?;
        match kind {
            "marks" => Some(Self::Marks(count)),
            "votes" => Some(Self::Votes(count)),
            _ => None,
        }
    }
}

impl Node {
    /// The step before any change.
    pub fn unpatched(&self) -> Self {
        let all = |steps: &[Self]| steps.iter().map(Self::unpatched).collect();
        match self {
            Self::Sequence(steps) => Self::Sequence(all(steps)),
            Self::Join(steps) => Self::Join(all(steps)),
            Self::Select(steps) => Self::Select(all(steps)),
            Self::Patch { old, .. } => old.unpatched(),
            Self::Scope { body, cancel_after } => {
                Self::Scope { body: Box::new(body.unpatched()), cancel_after: *cancel_after }
            }
            Self::Shield { body, timeout } => {
                Self::Shield { body: Box::new(body.unpatched()), timeout: *timeout }
            }
            Self::Sleep(..)
            | Self::Receive { .. }
            | Self::Until { .. }
            | Self::Approve { .. }
            | Self::Move(_)
            | Self::Activity(_)
            | Self::Local(_)
            | Self::Child(_)
            | Self::Crowd(_)
            | Self::Saga(_)
            | Self::SignalExternal { .. }
            | Self::CancelExternal { .. }
            | Self::Finish
            | Self::SideEffect
            | Self::Upsert(_)
            | Self::ContinueAsNew { .. }
            | Self::Fail => self.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_what_must_hold() {
        for goal in [Goal::Marks(3), Goal::Votes(1)] {
            assert_eq!(goal.key().as_deref().and_then(Goal::of_key), Some(goal));
        }
        assert_eq!(Goal::TwoMarks.key().as_deref().and_then(Goal::of_key), Some(Goal::Marks(2)));
        assert_eq!(Goal::of_key("something else"), None);
    }
}
