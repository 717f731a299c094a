//! What a run shows of itself, now or as soon as it has changed.

use std::sync::Arc;

use super::RunTarget;
use crate::{
    effect::RunOutcome,
    ids::{EventNumber, RunId},
    run::{Close, ShownWait},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    pub target: RunTarget,
}

/// Waits until a run is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitClose {
    pub target: RunTarget,
}

/// A run that is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    pub run: RunId,
    pub how: Close,
    /// With what; none if another run goes on.
    pub outcome: Option<RunOutcome>,
    /// The run that follows it.
    pub next_run: Option<RunId>,
}

/// Waits until a run has an event after this one, or is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitEvents {
    pub target: RunTarget,
    /// The last event that the caller has.
    pub after: EventNumber,
}

/// How far a run's history goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Events {
    pub run: RunId,
    /// Number of its last event.
    pub last_event: EventNumber,
    /// Nothing can follow.
    pub closed: bool,
}

/// What a run waits for, once that changed after this row of its log, or the run is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitWaits {
    pub target: RunTarget,
    /// The row up to which the caller knows it; zero is answered at once.
    pub after: u64,
}

/// What a run waits for at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct RunWaits {
    pub run: RunId,
    /// The row of its log up to which this holds.
    pub log_row: u64,
    /// What it waits for; shared by all who follow it.
    pub waits: Arc<Vec<ShownWait>>,
    /// It is closed: nothing can follow.
    pub closed: bool,
}
