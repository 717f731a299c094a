//! Checks recorded histories against the current code, without an engine.

use std::fmt;

use abide_core::{
    codec::DecodeError,
    event::{Event, Fact},
    ids::{EventNumber, WorkflowKey},
    replay::{self, Error, Replay},
};

use crate::{failure::Failure, registry::Registry};

/// Why a recorded history does not replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The bytes are not a history.
    #[error("the history cannot be read: {0}")]
    Unreadable(#[from] DecodeError),
    /// The first event, or one in between, is missing.
    #[error("the history is incomplete: {0}")]
    NotWhole(String),
    /// The workflow of the history is not registered.
    #[error("the history is of workflow {recorded}, not of {}", .known.join(", "))]
    #[non_exhaustive]
    OtherWorkflow {
        /// The workflow type of the history.
        recorded: String,
        /// The workflow types that are registered.
        known: Vec<String>,
    },
    /// The code takes other steps than it did then; shown as a small diff.
    #[error("workflow {code} does not fit its history: {mismatch}")]
    #[non_exhaustive]
    Mismatch {
        /// The workflow type that was replayed.
        code: String,
        /// Where and how they differ.
        mismatch: Box<Mismatch>,
    },
    /// The code panicked, or did what workflow code must not do.
    #[error("workflow {code} cannot be replayed: {failure}")]
    #[non_exhaustive]
    Fault {
        /// The workflow type that was replayed.
        code: String,
        /// Why the code was stopped.
        failure: Box<Failure>,
    },
}

/// Where and how code differs from its history. It displays as a small diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch(replay::Mismatch);

impl Mismatch {
    /// The number of the first event that does not match; the next number if history has nothing there.
    pub const fn at(&self) -> EventNumber {
        self.0.at
    }

    /// What the code does from there on: the next few steps, as the events that they would become.
    pub fn expected(&self) -> impl Iterator<Item = &str> {
        self.0.expected.iter().map(String::as_str)
    }

    /// What history has from there on: the next few events.
    pub fn recorded(&self) -> impl Iterator<Item = &str> {
        self.0.recorded.iter().map(|event| event.text.as_str())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Checks that code takes the steps of a recorded history, which may be of an open run. Payloads
/// are not compared.
pub fn replay(registry: &Registry, history: Vec<Event>) -> Result<(), ReplayError> {
    let Some(Fact::RunStarted(started)) = history.first().map(|event| &event.body.fact) else {
        return Err(ReplayError::NotWhole("it does not begin with RunStarted".into()));
    };
    let code = started.spec.workflow_type.clone();
    let workflow =
        WorkflowKey { namespace: started.namespace.clone(), workflow: started.workflow.clone() };
    let Some(machine) = registry.create(&code, &workflow, started.run) else {
        let known = registry.workflow_types().map(str::to_owned).collect();
        return Err(ReplayError::OtherWorkflow { recorded: code, known });
    };
    let mut replay = Replay::new(machine);
    let replayed = replay.feed(history).and_then(|()| replay.settle());
    // A fault takes precedence: stopped code matches no history.
    if let Some(fault) = replay.code_mut().take_fault() {
        return Err(ReplayError::Fault { code, failure: Box::new(fault.failure.into()) });
    }
    replayed.map_err(|error| match error {
        Error::Mismatch(mismatch) => {
            ReplayError::Mismatch { code, mismatch: Box::new(Mismatch(*mismatch)) }
        }
        error @ (Error::Gap { .. } | Error::TurnDiscarded { .. } | Error::NoOpenTask) => {
            ReplayError::NotWhole(error.to_string())
        }
    })
}
