//! Workflow tasks: the turns in which a worker runs the workflow's code.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    ids::{BuildId, EventNumber, StartId},
    payload::Extension,
};

/// A workflow task was scheduled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskScheduled {
    /// The queue whose workers may take it.
    pub queue: String,
    /// From 1; higher for a retry.
    pub attempt: u32,
    /// How long a worker may take to reply.
    pub timeout: Duration,
}

/// A worker took the task. The event has the time that the worker saw: `now()` of the code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStarted {
    /// Number of the TaskScheduled event.
    pub scheduled: EventNumber,
    pub start: StartId,
    pub identity: String,
    /// Size of the history at that time.
    pub history_bytes: u64,
    /// Whether the history is so long that code should continue as new.
    pub suggest_continue_as_new: bool,
}

/// The worker replied with commands, whose events follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskCompleted {
    /// Number of the TaskScheduled event.
    pub scheduled: EventNumber,
    /// Number of the TaskStarted event.
    pub started: EventNumber,
    pub identity: String,
    pub build: Option<BuildId>,
    /// Which replay rules the code follows from this task on.
    pub flags: BTreeSet<Flag>,
    /// Data that another SDK stores with its task.
    pub sdk_metadata: Extension,
}

/// A replay rule that code follows from some task on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Flag {
    /// Waits for a signal without deadline are recorded as timers that never fire.
    OptionalTimers,
    /// In this task, a reschedule by code took effect at the place in history of the event that code
    /// reacted to: it voided a later firing, lost to a later reschedule from outside, or named a time that
    /// passed before the task started. Set where that makes a difference.
    HistoryOrder,
}

/// The worker could not run the code, or its commands were refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFailed {
    /// Number of the TaskScheduled event.
    pub scheduled: EventNumber,
    /// Number of the TaskStarted event.
    pub started: EventNumber,
    pub cause: TaskFailureCause,
    pub failure: Failure,
    pub identity: String,
    pub build: Option<BuildId>,
    /// Mismatch between code and history, if there is one.
    pub blocked: Option<Blocked>,
}

/// Why a workflow task failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskFailureCause {
    /// Code panicked, or could not be run.
    #[default]
    WorkerFailure,
    /// Code does not fit the recorded history.
    ReplayBlocked,
    /// The commands are invalid in the run's state.
    BadCommand,
    /// Code closed the run without having seen all its inputs.
    UnseenInput,
    /// The run was closed from outside.
    Closed,
    /// The run was reset.
    Reset,
}

/// Mismatch between code and history, with enough detail for a person to fix it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub reason: BlockedReason,
    /// What the code does at that place.
    pub expected: String,
    /// Events that history has there.
    pub recorded: Vec<String>,
    /// Number of the first such event.
    pub at: EventNumber,
    /// The condition's key in the code.
    pub expected_key: Option<String>,
    /// The condition's key in history.
    pub recorded_key: Option<String>,
    /// The condition's fingerprint in the code.
    pub expected_fingerprint: Option<String>,
    /// The condition's fingerprint in history.
    pub recorded_fingerprint: Option<String>,
}

/// What kind of difference blocks a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BlockedReason {
    /// History has another step at that place.
    #[default]
    HistoryShape,
    /// A condition has another key or another fingerprint.
    ConditionDefinition,
    /// A recorded failure cannot be converted into an error of the code.
    FailureResolution,
}

/// The worker did not reply in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskTimedOut {
    /// Number of the TaskScheduled event.
    pub scheduled: EventNumber,
    /// Number of the TaskStarted event.
    pub started: EventNumber,
}
