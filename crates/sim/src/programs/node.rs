//! Programs as plain data: a tree of steps, each of which the SDK offers. Workers run them as workflows
//! on the true executor.

use std::time::Duration;

use super::{Activity, Child, Crowd, Local, Saga};

/// A workflow as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What it does. When it ends, the run is completed.
    pub body: Node,
    /// A request to cancel ends the wait that it meets, and nothing else.
    pub ignores_cancel: bool,
    /// All of it is one scope, in which nothing begins any more once it is cancelled.
    pub scoped: bool,
    /// What the run does after it was cancelled, before it ends.
    pub cleanup: Cleanup,
    /// How long the update `accept` takes; none completes it at once.
    pub update_delay: Option<Duration>,
    /// What the update `work` runs.
    pub update_work: Activity,
    /// What is wrong with the way it is run, on purpose.
    pub quirk: Option<Quirk>,
}

/// A deliberate fault in the way that a program is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// The last step of its cleanup is left out.
    CleanupCutShort,
    /// It cleans up twice.
    CleanupTwice,
    /// A cancel request reaches what should be shielded.
    Unshielded,
    /// The last step of a saga is not undone.
    StepNotUndone,
    /// A saga is undone at once instead of step by step.
    UndoneAtOnce,
    /// One more than allowed is under way.
    BoundIgnored,
    /// A deadline that the code has moved comes as if it had not.
    MoveIgnored,
}

/// What a run does after it was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// How many steps it takes.
    pub steps: usize,
    /// How long they may take together.
    pub limit: Option<Duration>,
}

/// One step of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One after the other.
    Sequence(Vec<Node>),
    /// All at once; done when all are.
    Join(Vec<Node>),
    /// All at once; done when one is, and the others are dropped.
    Select(Vec<Node>),
    /// Waits for a time.
    Sleep(Duration, Terms),
    /// Waits for a signal.
    Receive {
        /// The signal's name; none takes any.
        name: Option<&'static str>,
        /// No limit, or at most this long; zero takes only what is there.
        timeout: Option<Duration>,
        /// What is said about the wait.
        terms: Terms,
    },
    /// Waits for a condition on the state of the run.
    Until {
        /// What must hold.
        goal: Goal,
        /// No limit, or at most this long; zero does not wait.
        timeout: Option<Duration>,
        /// What is said about the wait.
        terms: Terms,
    },
    /// Asks people, and waits for their verdict.
    Approve {
        /// How many of them must agree; one decides alone.
        needed: usize,
        /// No limit, or at most this long.
        timeout: Option<Duration>,
        /// What is said about the wait.
        terms: Terms,
    },
    /// Moves the oldest open deadline of the run.
    Move(Move),
    /// Runs an activity.
    Activity(Activity),
    /// Runs an activity within the workflow task.
    Local(Local),
    /// Runs a child.
    Child(Child),
    /// Does the same several times at once.
    Crowd(Crowd),
    /// Takes steps that are undone if one of them fails, or something after them.
    Saga(Saga),
    /// A part that is cancelled as a whole.
    Scope {
        /// What it does.
        body: Box<Node>,
        /// When it is cancelled, unless it ends before.
        cancel_after: Option<Duration>,
    },
    /// A part that no cancel request reaches.
    Shield {
        /// What it does.
        body: Box<Node>,
        /// How long it may take.
        timeout: Option<Duration>,
    },
    /// Signals another workflow.
    SignalExternal {
        /// The workflow.
        workflow: String,
        /// The signal's name.
        name: &'static str,
    },
    /// Asks another workflow to cancel itself.
    CancelExternal {
        /// The workflow.
        workflow: String,
    },
    /// Waits for the handlers that run.
    Finish,
    /// Records a value that code could not compute again.
    SideEffect,
    /// A changed part of the code, and what stood there before.
    Patch {
        /// Names the change.
        change: &'static str,
        /// The part as it is now.
        new: Box<Node>,
        /// The part as it was.
        old: Box<Node>,
    },
    /// Goes on in a new run, until the workflow has had this many.
    ContinueAsNew {
        /// How many.
        runs: u64,
        /// What the new run is like.
        successor: Successor,
    },
    /// Ends the run with a failure.
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
    /// As the one before.
    #[default]
    Alike,
    /// With less time.
    Limited(Duration),
    /// Of the type that has no children.
    Childless,
}

/// What must hold for a condition wait to end. Once it holds, it does for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many signals `mark` have come.
    Marks(u64),
    /// The same of two, as a literal condition with a key and a fingerprint.
    TwoMarks,
    /// So many updates `vote` were accepted.
    Votes(u64),
    /// Some sleep of the run is over; a literal condition without a key.
    Slept,
}

/// What is said about a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// People are shown what it is about.
    pub described: bool,
    /// How much later than it begins its end may be moved from outside.
    pub not_after: Option<Duration>,
    /// How often its end may be moved from outside.
    pub max_extensions: Option<u32>,
}

/// How code moves a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To so long from now.
    In(Duration),
    /// So much later than it is.
    By(Duration),
    /// To a time that has passed, which is refused.
    Past,
    /// To never, which is refused.
    Never,
}

impl Goal {
    /// The key of the condition, which says what must hold so that checks can judge it.
    pub fn key(self) -> Option<String> {
        match self {
            Self::Marks(count) => Some(format!("marks:{count}")),
            Self::TwoMarks => Self::Marks(2).key(),
            Self::Votes(count) => Some(format!("votes:{count}")),
            Self::Slept => None,
        }
    }

    /// What a condition with this key waits for.
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
    /// The step as it was before any change.
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
