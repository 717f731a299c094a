//! Why a client's call failed, named by what the caller can do.

use abide_core::{
    ids::{RunId, WorkflowKey},
    limits::InvalidField,
    operation::CallError,
    payload::Payloads,
    run::Close,
};

use super::{Blocked, RunRefusal};
use crate::{
    codec::CodecError, failure::Failure, list::RunStatus, payload::PayloadError, typed::TypedError,
};

/// Why a client's call failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request is invalid.
    #[error("{field} {problem}")]
    #[non_exhaustive]
    Invalid {
        /// The field of the request that is wrong.
        field: String,
        /// What is wrong with it, and the limit if there is one.
        problem: String,
    },
    /// The workflow or run does not exist.
    #[error("there is no such workflow run")]
    NotFound,
    /// A run of the workflow exists, and the policies of the start do not allow another.
    #[error("workflow {workflow} already exists: run {run}")]
    AlreadyExists {
        /// The workflow that was to be started.
        workflow: WorkflowKey,
        /// Its current run, open or closed.
        run: RunId,
    },
    /// The run refuses the request, for example because it is closed.
    #[error(transparent)]
    Refused(RunRefusal),
    /// The code of the run does not match its history; the run must be repaired first.
    #[error("the run is blocked: its code does not fit its history at event {}", .0.at)]
    Blocked(Box<Blocked>),
    /// The query's handler failed, or the workflow has no such query.
    #[error("the query failed: {0}")]
    QueryFailed(Box<Failure>),
    /// The workflow's validator rejected the update, or the workflow has no such update.
    #[error("the update was rejected: {0}")]
    UpdateRejected(Box<Failure>),
    /// The update was accepted, and its handler failed.
    #[error("the update failed: {0}")]
    UpdateFailed(Box<Failure>),
    /// The run closed before the update had an outcome.
    #[error("{message}")]
    #[non_exhaustive]
    UpdateAborted {
        /// The run that had the update.
        run: RunId,
        /// How the run closed.
        status: RunStatus,
        /// The workflow had accepted the update, so its handler may have had effects.
        accepted: bool,
        /// The same for people.
        message: String,
    },
    /// The run failed with this failure, and no retry follows.
    #[error("the run failed: {0}")]
    RunFailed(Box<Failure>),
    /// The run was cancelled; the details come from its code.
    #[error("the run was cancelled")]
    RunCancelled(Payloads),
    /// An operator or a policy terminated the run, for this reason.
    #[error("the run was terminated: {0}")]
    RunTerminated(String),
    /// The run exceeded its timeout.
    #[error("the run timed out")]
    RunTimedOut,
    /// The run still waits, and the last worker of this client that served its queue has failed. See
    /// [`Worker::spawn`](crate::Worker::spawn).
    #[error("the worker of queue {queue} has failed, and the run needs it: {reason}")]
    WorkerFailed {
        /// The run's queue.
        queue: String,
        /// Why the worker failed.
        reason: String,
    },
    /// A value could not be encoded, or a payload could not be decoded.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Data could not be encoded, or an answer could not be decoded. In the second case the request
    /// has taken effect.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The engine cannot be reached, or does not answer. The request may or may not have taken
    /// effect; retrying it with the same key is idempotent.
    #[error("the engine is unreachable: {0}")]
    Unavailable(String),
    /// No answer will come: the engine in this process was shut down, or a test has nothing left to
    /// run.
    #[error("there will be no answer: {0}")]
    NoAnswer(String),
    /// The engine cannot serve this run; an operator must look at it.
    #[error("{0}")]
    Engine(String),
}

impl From<CallError> for ClientError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Invalid(invalid) => invalid.into(),
            CallError::NotFound => Self::NotFound,
            CallError::AlreadyExists { workflow, run } => Self::AlreadyExists { workflow, run },
            CallError::Refused(refusal) => Self::Refused(refusal.into()),
            CallError::UpdateAborted { run, how, accepted } => {
                let message = error.to_string();
                Self::UpdateAborted { run, status: status_of(how), accepted, message }
            }
            CallError::Blocked(blocked) => Self::Blocked(Box::new((*blocked).into())),
            CallError::Unavailable(why) => Self::Unavailable(why),
            CallError::NoAnswer(why) => Self::NoAnswer(why),
            error @ (CallError::Reset | CallError::NotServed | CallError::Overloaded) => {
                Self::Unavailable(error.to_string())
            }
            error @ (CallError::StaleQuery
            | CallError::SetAside(_)
            | CallError::Unreadable { .. }) => Self::Engine(error.to_string()),
        }
    }
}

impl From<InvalidField> for ClientError {
    fn from(InvalidField { field, problem }: InvalidField) -> Self {
        Self::Invalid { field, problem }
    }
}

/// The status of a run that closed in this way.
const fn status_of(close: Close) -> RunStatus {
    match close {
        Close::Completed => RunStatus::Completed,
        Close::Failed => RunStatus::Failed,
        Close::TimedOut => RunStatus::TimedOut,
        Close::Cancelled => RunStatus::Cancelled,
        Close::Terminated => RunStatus::Terminated,
        Close::ContinuedAsNew => RunStatus::ContinuedAsNew,
    }
}

impl ClientError {
    /// The error of this type with which the run, the update or the query failed; the outermost, if
    /// there are several. None if the failure has no error of this type, or one whose value this
    /// version of the type cannot decode.
    pub fn cause<T: TypedError>(&self) -> Option<T> {
        self.failure()?.cause()
    }

    /// The failure of the workflow's code, if that is why the call failed.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::RunFailed(failure)
            | Self::UpdateFailed(failure)
            | Self::UpdateRejected(failure)
            | Self::QueryFailed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The engine returned an answer of the wrong type.
    pub(super) fn unexpected(reply: &impl std::fmt::Debug) -> Self {
        Self::Unavailable(format!("the reply {reply:?} does not match the call"))
    }
}
