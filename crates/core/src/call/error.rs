//! Why a call failed.

use crate::{
    event::Blocked,
    ids::{RunId, WorkflowKey},
    limits::InvalidField,
    run::{Close, Refusal},
};

/// Why a call failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request is malformed: the field at fault and what is wrong with it.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// There is no such workflow or run.
    #[error("there is no such workflow run")]
    NotFound,
    /// A run of the workflow exists.
    #[error("workflow {workflow} exists: run {run}")]
    AlreadyExists {
        /// The workflow.
        workflow: WorkflowKey,
        /// Its current run.
        run: RunId,
    },
    /// The run refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run closed before the update had an outcome.
    #[error("{}", aborted(*run, *how, *accepted))]
    UpdateAborted {
        /// The run.
        run: RunId,
        /// How it closed.
        how: Close,
        /// Code had accepted the update, so part of it may have been done.
        accepted: bool,
    },
    /// The code does not fit the history; the mismatch tells how.
    #[error("the run is blocked: its code does not fit its history")]
    Blocked(Box<Blocked>),
    /// Nobody waits for this query answer.
    #[error("nobody waits for the answer of this query")]
    StaleQuery,
    /// The run's writes were refused twice by the store; an operator must look at it.
    #[error("run {0} is set aside: the store refused its writes twice")]
    SetAside(RunId),
    /// The log of the run cannot be read.
    #[error("run {run} cannot be read: {reason}")]
    Unreadable {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// The shard is served by another node, or by none at the moment, or its store has stopped. Nothing
    /// has happened.
    #[error("the shard is not served here any more")]
    NotServed,
    /// It may or may not have happened; repeat it with the same key.
    #[error("the shard was reset: repeat the call with the same key")]
    Reset,
    /// The engine cannot be reached. It may or may not have happened; repeat it with the same key.
    #[error("the engine cannot be reached: {0}")]
    Unavailable(String),
    /// Too much is waiting.
    #[error("too many requests wait for the run: try later")]
    Overloaded,
    /// There will be no answer, however often it is asked for.
    #[error("there will be no answer: {0}")]
    NoAnswer(String),
}

impl CallError {
    /// The same call may well succeed in a moment.
    pub const fn passing(&self) -> bool {
        match self {
            Self::Reset
            | Self::Unavailable(_)
            | Self::NotServed
            | Self::Overloaded
            | Self::Refused(Refusal::Busy) => true,
            Self::Invalid(_)
            | Self::NotFound
            | Self::AlreadyExists { .. }
            | Self::Refused(_)
            | Self::UpdateAborted { .. }
            | Self::Blocked(_)
            | Self::StaleQuery
            | Self::SetAside(_)
            | Self::Unreadable { .. }
            | Self::NoAnswer(_) => false,
        }
    }

    /// The attempt that the call was about is not its worker's any more.
    pub const fn attempt_gone(&self) -> bool {
        matches!(self, Self::Refused(Refusal::StaleAttempt | Refusal::RunClosed) | Self::NotFound)
    }
}

fn aborted(run: RunId, how: Close, accepted: bool) -> String {
    let how = match how {
        Close::Completed => "completed",
        Close::Failed => "failed",
        Close::TimedOut => "timed out",
        Close::Cancelled => "was cancelled",
        Close::Terminated => "was terminated",
        Close::ContinuedAsNew => "continued as new",
    };
    let update = if accepted { "had an outcome" } else { "was accepted" };
    format!("run {run} {how} before the update {update}")
}
