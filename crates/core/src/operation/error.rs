//! Errors of a call.

use crate::{
    event::Blocked,
    ids::{RunId, WorkflowKey},
    limits::InvalidField,
    run::{Close, Refusal},
};

/// Why a call failed, classified by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The request is malformed: names the field and the problem.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// The workflow or run does not exist.
    #[error("there is no such workflow run")]
    NotFound,
    /// The workflow already has a run.
    #[error("workflow {workflow} already exists: run {run}")]
    AlreadyExists { workflow: WorkflowKey, run: RunId },
    /// The run refuses the request in its current state.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The run closed before the update had an outcome.
    #[error("{}", aborted(*run, *how, *accepted))]
    UpdateAborted {
        run: RunId,
        how: Close,
        /// Whether code had accepted the update, so that part of it may have been done.
        accepted: bool,
    },
    /// The code does not fit the history; the mismatch says how.
    #[error("the run is blocked: its code does not fit its history")]
    Blocked(Box<Blocked>),
    /// The query has no caller any more; the answer is dropped.
    #[error("the query is stale: its caller has disconnected or has an answer")]
    StaleQuery,
    /// The store refused the run's writes twice; an operator must look at it.
    #[error("run {0} is set aside: the store refused its writes twice")]
    SetAside(RunId),
    /// The log of the run cannot be read.
    #[error("run {run} cannot be read: {reason}")]
    Unreadable { run: RunId, reason: String },
    /// Another node serves the shard, or none at the moment, or its store has stopped. Nothing
    /// happened.
    #[error("this node no longer serves the shard")]
    NotServed,
    /// The request may or may not have taken effect; repeat it with the same key.
    #[error("the shard was reset: retry the call with the same key")]
    Reset,
    /// The engine cannot be reached. The request may or may not have taken effect; repeat it with
    /// the same key.
    #[error("the engine is unreachable: {0}")]
    Unavailable(String),
    /// Too many requests are queued.
    #[error("too many requests are pending for the run: retry later")]
    Overloaded,
    /// The call cannot be answered, and a retry does not help.
    #[error("there will be no answer: {0}")]
    NoAnswer(String),
}

impl CallError {
    /// Whether a retry of the same call may soon succeed.
    pub const fn passing(&self) -> bool {
        match self {
            Self::Reset
            | Self::Unavailable(_)
            | Self::NotServed
            | Self::Overloaded
            | Self::Refused(Refusal::Busy | Refusal::Undelivered(_)) => true,
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

    /// Whether the attempt that the call was about no longer belongs to its worker.
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
