//! The steps that programs are made of.

use std::time::Duration;

use abide_core::{
    event::{Condition, Delivery},
    retry::RetryPolicy,
};

/// One step of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One after the other.
    Sequence(Vec<Node>),
    /// All at once; done when all are.
    Join(Vec<Node>),
    /// All at once; done when one is. What the others wait for is cancelled; children of theirs go on.
    Select(Vec<Node>),
    /// Waits for a time.
    Sleep(Duration),
    /// Runs an activity.
    Activity(Activity),
    /// Waits for a signal.
    WaitSignal {
        /// The signal's name; empty takes any.
        name: String,
        /// No limit, or at most this long; zero takes only what is there.
        timeout: Option<Duration>,
    },
    /// Waits until a number of signals was received, read or not.
    WaitUntil {
        /// Names the condition in history.
        condition: Condition,
        /// Which signals count.
        signal: String,
        /// How many there must be.
        at_least: u64,
        /// No limit, or at most this long; zero does not wait.
        timeout: Option<Duration>,
    },
    /// Runs a child.
    Child(Child),
    /// Signals another workflow of the same namespace.
    SignalExternal {
        /// The workflow.
        workflow: String,
        /// The signal's name.
        name: String,
    },
    /// Asks another workflow of the same namespace to cancel itself.
    CancelExternal {
        /// The workflow.
        workflow: String,
    },
    /// Records a value that code could not compute again.
    SideEffect,
    /// Records that the run follows a changed part of the code.
    Version {
        /// Names the change.
        change: String,
    },
    /// Moves the oldest sleep of the program to this time from now, if there is one.
    Reschedule(Duration),
    /// Closes with a result: what the steps so far came to.
    Complete,
    /// Closes with a failure.
    Fail(String),
    /// Goes on in a new run, with the signals it has not read and the updates it has not completed,
    /// until the workflow has had this many runs.
    ContinueAsNew {
        /// How many.
        runs: u64,
    },
}

impl Default for Node {
    fn default() -> Self {
        Self::Sequence(Vec::new())
    }
}

/// An activity of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Its type.
    pub activity_type: String,
    /// How it is retried. A recorded policy is carried out by the program.
    pub retry: Option<RetryPolicy>,
    /// How often an attempt may reach a worker.
    pub delivery: Delivery,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the silence of an attempt.
    pub heartbeat: Option<Duration>,
}

/// A child of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    /// Its type.
    pub workflow_type: String,
    /// Its workflow id; none derives one.
    pub workflow: Option<String>,
    /// How it is retried, always as recorded retries: a new child after each failure.
    pub retry: Option<RetryPolicy>,
}

impl Node {
    /// An activity with no options.
    pub fn activity(activity_type: impl Into<String>) -> Self {
        Self::Activity(Activity { activity_type: activity_type.into(), ..Activity::default() })
    }

    /// A child with no options.
    pub fn child(workflow_type: impl Into<String>) -> Self {
        Self::Child(Child { workflow_type: workflow_type.into(), ..Child::default() })
    }

    /// A wait for a signal without limit.
    pub fn signal(name: impl Into<String>) -> Self {
        Self::WaitSignal { name: name.into(), timeout: None }
    }

    /// A wait for a signal for at most `timeout`.
    pub fn signal_within(name: impl Into<String>, timeout: Duration) -> Self {
        Self::WaitSignal { name: name.into(), timeout: Some(timeout) }
    }

    /// A wait of this many seconds.
    pub const fn sleep(seconds: u64) -> Self {
        Self::Sleep(Duration::from_secs(seconds))
    }
}
