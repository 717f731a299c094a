//! What is done to runs from outside.

use std::time::Duration;

use crate::{
    event::SignalReceived,
    ids::{Key, RunId, WorkflowKey},
    payload::{Extension, Payloads},
    run::Movable,
    time::Timestamp,
};

/// Which run of a workflow is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTarget {
    pub workflow: WorkflowKey,
    /// This run; none means the current one.
    pub run: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub target: RunTarget,
    pub signal: SignalReceived,
    /// What a foreign SDK adds to the event.
    pub extension: Extension,
}

/// Asks a run to cancel itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    pub target: RunTarget,
    pub reason: String,
    pub identity: String,
    pub key: Option<Key>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Terminate {
    pub target: RunTarget,
    pub reason: String,
    pub identity: String,
    /// Data for the record.
    pub details: Payloads,
    pub key: Option<Key>,
}

/// Hands out nothing new of a run until it is unpaused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub target: RunTarget,
    pub reason: String,
    pub identity: String,
    pub key: Option<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpause {
    pub target: RunTarget,
    pub reason: String,
    pub identity: String,
    pub key: Option<Key>,
}

/// Moves a timer, or the end of a wait.
#[derive(Clone, Debug, PartialEq)]
pub struct RescheduleTimer {
    pub target: RunTarget,
    pub what: Movable,
    /// The new due time.
    pub fire_at: Timestamp,
    /// How long that is from now, if the caller asked so. A repeat with the same key is then the
    /// same request, although its due time is another.
    pub after: Option<Duration>,
    pub identity: String,
    pub key: Option<Key>,
}

/// Tries again whatever is stuck and ensures every row. It needs no key: doing it twice is doing it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    pub target: RunTarget,
    pub identity: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub run: RunId,
    /// It was done before.
    pub repeat: bool,
    /// Of a reschedule with a key: the due time that the request with this key set. `None` if an
    /// earlier run of the chain took that request.
    pub fire_at: Option<Timestamp>,
}
