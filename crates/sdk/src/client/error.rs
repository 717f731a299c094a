//! Why a client's call failed, named by what the caller can do.

use abide_core::{
    event::Blocked,
    failure::Failure,
    ids::{RunId, WorkflowKey},
    limits::InvalidField,
    operation::CallError,
    payload::Payloads,
    run::{Close, Refusal},
};

use crate::payload::PayloadError;

/// Why a client's call failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The request is malformed: a field, and what is wrong with it.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// There is no such workflow or run.
    #[error("there is no such workflow run")]
    NotFound,
    /// A run of the workflow exists, and the start's policies do not allow another.
    #[error("workflow {workflow} exists: run {run}")]
    AlreadyExists {
        /// The workflow.
        workflow: WorkflowKey,
        /// Its current run.
        run: RunId,
    },
    /// The run refuses it.
    #[error(transparent)]
    Refused(Refusal),
    /// The code of the run does not fit its history; it must be repaired first.
    #[error("the run is blocked: its code does not fit its history at event {}", .0.at)]
    Blocked(Box<Blocked>),
    /// The query's code failed, or there is no such query.
    #[error("the query failed: {}", .0.message)]
    QueryFailed(Box<Failure>),
    /// The update was refused by the workflow's validator, or there is no such update.
    #[error("the update was rejected: {}", .0.message)]
    UpdateRejected(Box<Failure>),
    /// The update was accepted and failed.
    #[error("the update failed: {}", .0.message)]
    UpdateFailed(Box<Failure>),
    /// The run closed before the update had an outcome.
    #[error("{}", CallError::UpdateAborted { run: *run, how: *how, accepted: *accepted })]
    UpdateAborted {
        /// The run.
        run: RunId,
        /// How it closed.
        how: Close,
        /// The workflow had accepted the update, so part of it may have been done.
        accepted: bool,
    },
    /// The run failed.
    #[error("the run failed: {}", .0.message)]
    RunFailed(Box<Failure>),
    /// The run was cancelled.
    #[error("the run was cancelled")]
    RunCancelled(Payloads),
    /// The run was terminated.
    #[error("the run was terminated: {0}")]
    RunTerminated(String),
    /// The run took too long.
    #[error("the run timed out")]
    RunTimedOut,
    /// A value could not be turned into a payload, or a payload into a value.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The engine cannot be reached, or does not answer. It may or may not have happened; the same
    /// call with the same key takes effect once.
    #[error("the engine cannot be reached: {0}")]
    Unavailable(String),
    /// There will be no answer: the engine in this process was shut down, or nothing can happen any
    /// more in a test.
    #[error("there will be no answer: {0}")]
    NoAnswer(String),
    /// The engine cannot serve this run; an operator must look at it.
    #[error(transparent)]
    Engine(CallError),
}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Invalid(invalid) => Self::Invalid(invalid),
            CallError::NotFound => Self::NotFound,
            CallError::AlreadyExists { workflow, run } => Self::AlreadyExists { workflow, run },
            CallError::Refused(refusal) => Self::Refused(refusal),
            CallError::UpdateAborted { run, how, accepted } => {
                Self::UpdateAborted { run, how, accepted }
            }
            CallError::Blocked(blocked) => Self::Blocked(blocked),
            CallError::Unavailable(why) => Self::Unavailable(why),
            CallError::NoAnswer(why) => Self::NoAnswer(why),
            error @ (CallError::Reset | CallError::NotServed | CallError::Overloaded) => {
                Self::Unavailable(error.to_string())
            }
            error @ (CallError::StaleQuery
            | CallError::SetAside(_)
            | CallError::Unreadable { .. }) => Self::Engine(error),
        }
    }
}

impl ClientError {
    /// The engine answered with something that was not asked for.
    pub(super) fn unexpected(reply: &impl std::fmt::Debug) -> Self {
        Self::Unavailable(format!("it answered with {reply:?}, which makes no sense here"))
    }
}
