//! Checks recorded histories against the current code, without an engine.

use abide_core::{
    codec::DecodeError,
    event::{Event, Fact},
    ids::WorkflowKey,
    replay::{Error, Mismatch, Replay},
};

use crate::registry::{Registry, TaskFault};

/// Why a recorded history does not replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The bytes are not a history.
    #[error("the history cannot be read: {0}")]
    Unreadable(#[from] DecodeError),
    /// The first event, or one in between, is missing.
    #[error("the history is incomplete: {0}")]
    NotWhole(String),
    /// The workflow of the history is not registered.
    #[error("the history is of workflow {recorded}, not of {}", .known.join(", "))]
    OtherWorkflow {
        /// The workflow type of the history.
        recorded: String,
        /// The workflow types that are registered.
        known: Vec<String>,
    },
    /// The code takes other steps than it did then; shown as a small diff.
    #[error("workflow {code} does not fit its history: {mismatch}")]
    Mismatch {
        /// The workflow type that was replayed.
        code: String,
        /// Where and how they differ.
        mismatch: Box<Mismatch>,
    },
    /// The code panicked, or did what workflow code must not do.
    #[error("workflow {code} cannot be replayed: {}", .fault.failure.message)]
    Fault {
        /// The workflow type that was replayed.
        code: String,
        /// Why the code was stopped.
        fault: Box<TaskFault>,
    },
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
        return Err(ReplayError::Fault { code, fault: Box::new(fault) });
    }
    replayed.map_err(|error| match error {
        Error::Mismatch(mismatch) => ReplayError::Mismatch { code, mismatch },
        error @ (Error::Gap { .. } | Error::TurnDiscarded { .. } | Error::NoOpenTask) => {
            ReplayError::NotWhole(error.to_string())
        }
    })
}
