//! Questions to the code of a run, with an answer.

use super::RunTarget;
use crate::{
    event::UpdateRequest,
    failure::Failure,
    ids::{RunId, UpdateId},
    payload::{PayloadMap, Payloads},
    run::Stage,
};

/// Asks for an update, and waits until it is at least so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub target: RunTarget,
    pub update: UpdateId,
    /// What is asked for.
    pub request: UpdateRequest,
    /// How far to wait.
    pub until: UpdateWait,
    /// Wait also while the run's code does not fit its history, until that is repaired.
    pub wait_while_blocked: bool,
}

/// Looks an update up by its id, without asking for it, and waits until it is at least so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitUpdate {
    pub target: RunTarget,
    pub update: UpdateId,
    /// How far to wait.
    pub until: UpdateWait,
    /// Wait also while the run's code does not fit its history, until that is repaired.
    pub wait_while_blocked: bool,
}

/// How far to wait for an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdateWait {
    /// Not at all: where it stands now.
    Admitted,
    /// Until code accepted or rejected it.
    Accepted,
    /// Until it has its outcome.
    Completed,
}

/// Where an update stands.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdateAnswer {
    /// It is so far.
    Reached {
        run: RunId,
        stage: Stage,
    },
    Rejected(Failure),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub target: RunTarget,
    pub query: QueryRequest,
}

/// A question to the workflow's code.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRequest {
    pub name: String,
    pub input: Payloads,
    /// Context that the caller passes along.
    pub header: PayloadMap,
}

impl QueryRequest {
    /// A question without a header.
    pub fn new(name: impl Into<String>, input: Payloads) -> Self {
        Self { name: name.into(), input, header: PayloadMap::new() }
    }
}

/// What the code said to a query, or why it could not.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer(pub Result<Payloads, Failure>);
