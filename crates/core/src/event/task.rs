//! Workflow tasks: the turns in which a worker runs the workflow's code.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    ids::{BuildId, EventNumber, StartId},
    payload::Extension,
};

/// The workflow's code should run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskScheduled {
    /// The queue whose workers may take it.
    pub queue: String,
    /// From 1; higher for a retry.
    pub attempt: u32,
    /// How long a worker may take.
    pub timeout: Duration,
}

/// A worker took the task. The event's time is the one that the worker saw: code's `now()`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStarted {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Names this start.
    pub start: StartId,
    /// The worker.
    pub identity: String,
    /// Bytes of history at that time.
    pub history_bytes: u64,
    /// The history is long: code should continue as new.
    pub suggest_continue_as_new: bool,
}

/// The worker answered with commands, whose events follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskCompleted {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The event of its start.
    pub started: EventNumber,
    /// The worker.
    pub identity: String,
    /// The worker's code.
    pub build: Option<BuildId>,
    /// Which replay rules the code follows from this task on.
    pub flags: BTreeSet<Flag>,
    /// What a foreign SDK keeps about its task.
    pub sdk_metadata: Extension,
}

/// A replay rule that code follows from some task on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Flag {
    /// Waits for a signal without deadline are recorded as timers that never fire.
    OptionalTimers,
    /// In this task a move of a timer by code counted before what stands in history after the event that
    /// code made it for: a firing, or a move from outside. Set where that makes a difference.
    HistoryOrder,
}

/// The worker could not run the code, or its answer was refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFailed {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The event of its start.
    pub started: EventNumber,
    /// What went wrong.
    pub cause: TaskFailureCause,
    /// Details.
    pub failure: Failure,
    /// The worker.
    pub identity: String,
    /// The worker's code.
    pub build: Option<BuildId>,
    /// How code and history differ, if they do.
    pub blocked: Option<Blocked>,
}

/// What went wrong with a workflow task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskFailureCause {
    /// Code panicked, or could not be run.
    #[default]
    WorkerFailure,
    /// Code does not fit the recorded history.
    ReplayBlocked,
    /// The commands make no sense in the run's state.
    BadCommand,
    /// Code wanted to close the run but had not seen all its inputs.
    UnseenInput,
    /// The run was closed from outside.
    Closed,
    /// The run was reset.
    Reset,
}

/// How code and history differ; enough for a person to repair it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// What kind of difference.
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
    /// Another step stands at that place.
    #[default]
    HistoryShape,
    /// A condition has another key or another fingerprint.
    ConditionDefinition,
    /// A recorded failure cannot be turned into an error of the code.
    FailureResolution,
}

/// The worker did not answer in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskTimedOut {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The event of its start.
    pub started: EventNumber,
}
