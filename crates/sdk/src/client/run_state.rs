//! The parts of a described run: what it does, what it waits for, what goes wrong, how it ended.

use abide_core::{
    effect, event,
    ids::{ActivityId, RunId, WorkflowKey},
    payload::Payloads,
    run,
};

use super::Blocked;
use crate::{
    Timestamp,
    failure::{Failure, RetryState},
};

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Liveness {
    /// It has ended.
    Closed,
    /// Nothing new is scheduled until it is unpaused.
    Paused,
    /// Its code does not fit its history.
    ReplayBlocked,
    /// A workflow task is in flight on a worker.
    TaskRunning,
    /// A workflow task waits for a worker.
    TaskWaiting,
    /// The time of its start has not come.
    StartDelayed,
    /// It waits for an activity.
    ActivityPending,
    /// It waits for children or other workflows.
    ChildPending,
    /// It waits for a timer.
    TimerPending,
    /// It waits for a signal, an update or a condition.
    InputPending,
}

impl From<run::Liveness> for Liveness {
    fn from(liveness: run::Liveness) -> Self {
        match liveness {
            run::Liveness::Closed => Self::Closed,
            run::Liveness::Paused => Self::Paused,
            run::Liveness::ReplayBlocked => Self::ReplayBlocked,
            run::Liveness::TaskRunning => Self::TaskRunning,
            run::Liveness::TaskWaiting => Self::TaskWaiting,
            run::Liveness::StartDelayed => Self::StartDelayed,
            run::Liveness::ActivityPending => Self::ActivityPending,
            run::Liveness::ChildPending => Self::ChildPending,
            run::Liveness::TimerPending => Self::TimerPending,
            run::Liveness::InputPending => Self::InputPending,
        }
    }
}

/// What will resume a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResumeSource {
    /// A worker that takes its workflow task.
    Task,
    /// A time that comes.
    Due,
    /// The end of an activity.
    Activity,
    /// An answer or a close from another workflow.
    Child,
    /// A signal, an update, or a cancel request.
    Input,
    /// An operator: the run is paused or blocked.
    Operator,
}

impl From<run::ResumeSource> for ResumeSource {
    fn from(source: run::ResumeSource) -> Self {
        match source {
            run::ResumeSource::Task => Self::Task,
            run::ResumeSource::Due => Self::Due,
            run::ResumeSource::Activity => Self::Activity,
            run::ResumeSource::Child => Self::Child,
            run::ResumeSource::Input => Self::Input,
            run::ResumeSource::Operator => Self::Operator,
        }
    }
}

/// A run of a workflow, such as a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunReference {
    /// The workflow and its namespace.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
}

impl From<event::RunReference> for RunReference {
    fn from(reference: event::RunReference) -> Self {
        Self { workflow: reference.workflow, run: reference.run }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// With this result.
    Completed(Payloads),
    /// With a failure.
    #[non_exhaustive]
    Failed {
        /// Why.
        failure: Failure,
        /// Why no retry follows.
        retry_state: RetryState,
    },
    /// By its run or execution timeout.
    #[non_exhaustive]
    TimedOut {
        /// Why no retry follows.
        retry_state: RetryState,
    },
    /// By its own answer to a cancel request, with these details.
    Cancelled(Payloads),
    /// From outside.
    #[non_exhaustive]
    Terminated {
        /// As the caller gave it.
        reason: String,
    },
}

impl From<effect::RunOutcome> for RunOutcome {
    fn from(outcome: effect::RunOutcome) -> Self {
        match outcome {
            effect::RunOutcome::Completed(result) => Self::Completed(result),
            effect::RunOutcome::Failed { failure, retry_state } => {
                Self::Failed { failure: failure.into(), retry_state: retry_state.into() }
            }
            effect::RunOutcome::TimedOut { retry_state } => {
                Self::TimedOut { retry_state: retry_state.into() }
            }
            effect::RunOutcome::Cancelled(details) => Self::Cancelled(details),
            effect::RunOutcome::Terminated { reason } => Self::Terminated { reason },
        }
    }
}

/// Why a workflow task fails and is retried.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskTrouble {
    /// The number of the next attempt.
    pub attempt: u32,
    /// When the last attempt failed.
    pub failed_at: Timestamp,
    /// When it is retried at the earliest.
    pub not_before: Option<Timestamp>,
    /// What kind of failure it is.
    pub cause: TaskFailureCause,
    /// Why it failed.
    pub failure: Failure,
    /// How the code differs from the history, if it does.
    pub blocked: Option<Blocked>,
}

impl From<run::TaskTrouble> for TaskTrouble {
    fn from(trouble: run::TaskTrouble) -> Self {
        Self {
            attempt: trouble.attempt,
            failed_at: trouble.failed_at,
            not_before: trouble.not_before,
            cause: trouble.cause.into(),
            failure: trouble.failure.into(),
            blocked: trouble.blocked.map(Blocked::from),
        }
    }
}

/// What kind of failure a workflow task has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskFailureCause {
    /// The code panicked, or could not be run.
    WorkerFailure,
    /// The code does not fit the recorded history.
    ReplayBlocked,
    /// What the code asks for is invalid in the run's state.
    BadCommand,
    /// The code closed the run without having seen all its inputs.
    UnseenInput,
    /// The run was closed from outside.
    Closed,
    /// The run was reset.
    Reset,
}

impl From<event::TaskFailureCause> for TaskFailureCause {
    fn from(cause: event::TaskFailureCause) -> Self {
        match cause {
            event::TaskFailureCause::WorkerFailure => Self::WorkerFailure,
            event::TaskFailureCause::ReplayBlocked => Self::ReplayBlocked,
            event::TaskFailureCause::BadCommand => Self::BadCommand,
            event::TaskFailureCause::UnseenInput => Self::UnseenInput,
            event::TaskFailureCause::Closed => Self::Closed,
            event::TaskFailureCause::Reset => Self::Reset,
        }
    }
}

/// An activity that has no result yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingActivity {
    /// Its id within the run.
    pub activity: ActivityId,
    /// The registered name of the activity.
    pub activity_type: String,
    /// The queue whose workers may take it.
    pub queue: String,
    /// The number of the running or next attempt, from 1.
    pub attempt: u32,
    /// Whether an attempt runs.
    pub phase: ActivityPhase,
    /// Why the last attempt failed.
    pub last_failure: Option<Failure>,
    /// The details of the last heartbeat.
    pub heartbeat: Option<Payloads>,
    /// Whether the workflow has asked it to cancel itself.
    pub cancel_requested: bool,
}

/// Whether an attempt of an activity runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityPhase {
    /// It waits for a worker.
    #[non_exhaustive]
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// An attempt runs.
    #[non_exhaustive]
    Started {
        /// When the worker took it.
        at: Timestamp,
        /// The worker's identity.
        identity: String,
        /// Whether another process completes it, without its worker.
        detached: bool,
    },
    /// It waits for its next attempt.
    #[non_exhaustive]
    Backoff {
        /// Until when.
        until: Timestamp,
    },
}

impl From<run::ShownActivity> for PendingActivity {
    fn from(shown: run::ShownActivity) -> Self {
        Self {
            activity: shown.activity,
            activity_type: shown.activity_type,
            queue: shown.queue,
            attempt: shown.attempt,
            phase: match shown.phase {
                run::ShownPhase::Ready { since } => ActivityPhase::Ready { since },
                run::ShownPhase::Started { at, identity, detached } => {
                    ActivityPhase::Started { at, identity, detached }
                }
                run::ShownPhase::Backoff { until } => ActivityPhase::Backoff { until },
            },
            last_failure: shown.last_failure.map(Failure::from),
            heartbeat: shown.heartbeat,
            cancel_requested: shown.cancel_requested,
        }
    }
}

/// A child that has no result yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingChild {
    /// The workflow and its namespace.
    pub workflow: WorkflowKey,
    /// Its run.
    pub run: RunId,
    /// The type name of the workflow.
    pub workflow_type: String,
    /// Whether it is known to have started.
    pub started: bool,
}

impl From<run::ShownChild> for PendingChild {
    fn from(shown: run::ShownChild) -> Self {
        Self {
            workflow: shown.workflow,
            run: shown.run,
            workflow_type: shown.workflow_type,
            started: shown.started,
        }
    }
}
