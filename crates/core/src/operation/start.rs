//! The start of a run.

use std::time::Duration;

use super::{CallError, UpdateAnswer, UpdateWait};
use crate::{
    event::{ReusePolicy, RunSpec, SignalReceived, UpdateRequest},
    ids::{Key, RunId, UpdateId, WorkflowKey},
    time::Timestamp,
};

/// Starts a run, perhaps with a first signal or update. It names no run: the engine draws the id, and
/// the key tells a repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub workflow: WorkflowKey,
    pub spec: RunSpec,
    pub identity: String,
    pub key: Option<Key>,
    /// What if a run is open.
    pub conflict: ConflictPolicy,
    /// What if a run is closed.
    pub reuse: ReusePolicy,
    /// When its code begins.
    pub begin: Begin,
    /// A signal for the run, whether it is started or was open.
    pub signal: Option<SignalReceived>,
    /// An update for the run, whether it is started or was open.
    pub update: Option<Box<StartUpdate>>,
}

impl Start {
    /// Gives a signal without a key of its own that of the start, so that a repeat is known by it.
    pub fn key_signal(&mut self) {
        if let Some(signal) = self.signal.as_mut().filter(|signal| signal.key.is_none()) {
            signal.key.clone_from(&self.key);
        }
    }
}

/// An update that is asked for together with a start.
#[derive(Clone, Debug, PartialEq)]
pub struct StartUpdate {
    pub update: UpdateId,
    /// What is asked for.
    pub request: UpdateRequest,
    /// How far to wait.
    pub until: UpdateWait,
    /// Wait also while the run's code does not fit its history, until that is repaired.
    pub wait_while_blocked: bool,
}

/// When the code of a new run begins, by the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// As soon as a worker takes it.
    #[default]
    AtOnce,
    /// So much later.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

impl Begin {
    /// When the first task of a run that is started now is scheduled, if not at once.
    pub fn first_task_at(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::AtOnce => None,
            Self::After(delay) => Some(now.saturating_add(delay)),
            Self::At(time) => Some(time),
        }
    }
}

/// What a start does if a run of the workflow is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// It is refused.
    #[default]
    Reject,
    /// The open run is used.
    UseExisting,
    /// The open run is terminated, in the same batch.
    TerminateExisting,
}

/// A run was started, or one that exists is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    pub run: RunId,
    /// It was started by this operation or a repeat of it.
    pub started: bool,
    /// The answer to the update that came with the start, as if it had been asked for alone. The run is
    /// there in any case.
    pub update: Option<Result<UpdateAnswer, CallError>>,
}
