//! What a worker says of the work that it was given, and what it is told. Clients and operators ask with
//! [`operation`](crate::operation)s.

use std::collections::BTreeSet;

use crate::{
    attempt::ActivityToken,
    command::Command,
    event::{Blocked, Flag, TaskFailureCause},
    failure::Failure,
    ids::{EventNumber, RunId, SessionId, StartId, WorkflowKey},
    operation::Ticket,
    payload::{Extension, Payloads},
    run::Resolution,
};

/// What a worker says of its work.
#[derive(Clone, Debug)]
pub enum Report {
    /// A workflow task is done.
    CompleteTask(TaskToken, Box<TaskCompletion>),
    /// A workflow task could not be run.
    FailTask {
        token: TaskToken,
        cause: TaskFailureCause,
        failure: Failure,
        /// How code and history differ, if they do.
        blocked: Option<Blocked>,
    },
    /// The answer to a query task.
    AnswerQuery(QueryToken, Result<Payloads, Failure>),
    /// An attempt of an activity has ended.
    ResolveActivity(ActivityToken, Resolution),
    /// A sign of life of an attempt.
    Heartbeat(ActivityToken, Payloads),
    /// An attempt is left to a caller outside, who will report on it.
    DetachAttempt(ActivityToken),
    /// The worker came back and still holds this attempt.
    PresentAttempt(ActivityToken, SessionId),
}

impl Report {
    /// The workflow and the run that it is about.
    pub const fn place(&self) -> (&WorkflowKey, RunId) {
        match self {
            Self::CompleteTask(token, _) | Self::FailTask { token, .. } => {
                (&token.workflow, token.run)
            }
            Self::ResolveActivity(token, _)
            | Self::Heartbeat(token, _)
            | Self::DetachAttempt(token)
            | Self::PresentAttempt(token, _) => (&token.workflow, token.run),
            Self::AnswerQuery(token, _) => (&token.workflow, token.run),
        }
    }
}

/// The answer to a worker's report.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportAnswer {
    /// The task was taken; the worker may keep the run up to this TaskCompleted.
    TaskTaken {
        /// Number of the task's TaskCompleted.
        completed: EventNumber,
    },
    /// The task left nothing; the worker goes back to the last completed one.
    TaskDiscarded,
    /// The task's commands were refused; it will be given again.
    TaskRefused { cause: TaskFailureCause, message: String },
    /// The attempt goes on.
    Alive {
        /// Code asked for the activity to be cancelled.
        cancel_requested: bool,
    },
    Done {
        run: RunId,
        /// It was done before.
        repeat: bool,
    },
}

/// A worker's answer to a workflow task.
#[derive(Clone, Debug, Default)]
pub struct TaskCompletion {
    /// What code asks for, in order.
    pub commands: Vec<Command>,
    /// Which replay rules code follows from here on.
    pub flags: BTreeSet<Flag>,
    /// What a foreign SDK keeps about its task.
    pub sdk_metadata: Extension,
    /// Another task should follow at once.
    pub force_next: bool,
    /// How many activities of the task's own queue the worker takes at once.
    pub eager_activities: usize,
}

/// Names a started workflow task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskToken {
    pub workflow: WorkflowKey,
    pub run: RunId,
    pub start: StartId,
}

/// Names a query task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueryToken {
    pub workflow: WorkflowKey,
    pub run: RunId,
    pub ticket: Ticket,
    /// How often the query was handed out.
    pub attempt: u32,
}
