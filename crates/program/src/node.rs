//! The steps that programs are made of.

use std::time::Duration;

use abide_core::{
    event::{Condition, Delivery},
    retry::RetryPolicy,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Runs the steps one after the other.
    Sequence(Vec<Node>),
    /// Runs all steps concurrently; done when all are.
    Join(Vec<Node>),
    /// Runs all steps concurrently; done when one is. What the others wait for is cancelled, but
    /// their children continue.
    Select(Vec<Node>),
    Sleep(Duration),
    Activity(Activity),
    /// Waits for a signal.
    WaitSignal {
        /// Name of the signal; empty matches any.
        name: String,
        /// At most this long, or without limit; zero takes only a signal that has already arrived.
        timeout: Option<Duration>,
    },
    /// Waits until this many signals were received, read or not.
    WaitUntil {
        /// Identifies the condition in history.
        condition: Condition,
        signal: String,
        at_least: u64,
        /// At most this long, or without limit; zero does not wait.
        timeout: Option<Duration>,
    },
    Child(Child),
    /// Signals another workflow of the same namespace.
    SignalExternal {
        workflow: String,
        name: String,
    },
    /// Requests cancellation of another workflow of the same namespace.
    CancelExternal {
        workflow: String,
    },
    /// Records a value that code could not compute again.
    SideEffect,
    /// Records that the run follows a changed part of the code.
    Version {
        change: String,
    },
    /// Reschedules the oldest sleep of the program, if there is one, to this long from now.
    Reschedule(Duration),
    /// Closes with the outcomes of the steps so far as the result.
    Complete,
    /// Closes with a failure.
    Fail(String),
    /// Continues in a new run, with unread signals and uncompleted updates, until the workflow has
    /// had this many runs.
    ContinueAsNew {
        runs: u64,
    },
}

impl Default for Node {
    fn default() -> Self {
        Self::Sequence(Vec::new())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    pub activity_type: String,
    /// Retry policy. The program itself carries out a recorded one.
    pub retry: Option<RetryPolicy>,
    /// How many times an attempt may reach a worker.
    pub delivery: Delivery,
    /// Limits one attempt.
    pub start_to_close: Option<Duration>,
    /// Limits the time between two heartbeats of an attempt.
    pub heartbeat: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    pub workflow_type: String,
    /// Workflow id; derived if `None`.
    pub workflow: Option<String>,
    /// Retry policy, always recorded: each retry is a new child.
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

    /// A wait for a signal without a limit.
    pub fn signal(name: impl Into<String>) -> Self {
        Self::WaitSignal { name: name.into(), timeout: None }
    }

    /// A wait for a signal for at most `timeout`.
    pub fn signal_within(name: impl Into<String>, timeout: Duration) -> Self {
        Self::WaitSignal { name: name.into(), timeout: Some(timeout) }
    }

    pub const fn sleep(seconds: u64) -> Self {
        Self::Sleep(Duration::from_secs(seconds))
    }
}
