//! Replays a recorded history with the code as it is now.

use abide_core::{
    codec::{self, DecodeError},
    event::{Event, Fact},
    ids::WorkflowKey,
    replay::{Error, Mismatch, Replay},
};
use abide_sdk::{
    Workflow,
    executor::Machine,
    registry::{Fault, WorkflowCode},
};
use bytes::Bytes;

/// Why a recorded history does not replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The bytes are no history.
    #[error("the history cannot be read: {0}")]
    Unreadable(#[from] DecodeError),
    /// Its beginning is missing, or an event in between.
    #[error("the history is not whole: {0}")]
    NotWhole(String),
    /// It is of another workflow.
    #[error("the history is of workflow {recorded}, not of {code}")]
    OtherWorkflow {
        /// Whose history it is.
        recorded: String,
        /// The workflow that was to replay it.
        code: &'static str,
    },
    /// The code takes other steps than it did then: shown as a small diff.
    #[error("workflow {code} does not fit its history: {mismatch}")]
    Mismatch {
        /// The workflow.
        code: &'static str,
        /// Where and how they differ.
        mismatch: Box<Mismatch>,
    },
    /// The code panicked, or did what workflow code must not do.
    #[error("workflow {code} cannot be replayed: {}", .fault.failure.message)]
    Fault {
        /// The workflow.
        code: &'static str,
        /// What happened.
        fault: Box<Fault>,
    },
}

/// A recorded history: events as a client fetches them, or the bytes of [`record`].
pub trait History {
    /// Its events.
    fn events(self) -> Result<Vec<Event>, DecodeError>;
}

impl History for Vec<Event> {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        Ok(self)
    }
}

impl History for &[Event] {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        Ok(self.to_vec())
    }
}

impl History for Bytes {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(self)
    }
}

impl History for Vec<u8> {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(self.into())
    }
}

impl History for &[u8] {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(Bytes::copy_from_slice(self))
    }
}

/// The bytes of a history, to be kept beside the tests. They can be read by every later version.
pub fn record(events: &[Event]) -> Bytes {
    codec::encode_events(events)
}

/// Checks that the code of `W` as it is now takes the steps of a recorded history:
/// `replay_history::<Order>(include_bytes!("order.history").as_slice())?`.
///
/// The history may be of an open run. Payloads are not compared.
pub fn replay_history<W: Workflow>(history: impl History) -> Result<(), ReplayError> {
    let events = history.events()?;
    let Some(Fact::RunStarted(started)) = events.first().map(|event| &event.body.fact) else {
        return Err(ReplayError::NotWhole("it does not begin with RunStarted".into()));
    };
    if started.spec.workflow_type != W::NAME {
        let recorded = started.spec.workflow_type.clone();
        return Err(ReplayError::OtherWorkflow { recorded, code: W::NAME });
    }
    let workflow =
        WorkflowKey { namespace: started.namespace.clone(), workflow: started.workflow.clone() };
    let mut replay = Replay::new(Machine::<W>::new(workflow, started.run));
    let replayed = replay.feed(events).and_then(|()| replay.settle());
    // A fault comes first: code that was stopped fits no history.
    if let Some(fault) = replay.code_mut().take_fault() {
        return Err(ReplayError::Fault { code: W::NAME, fault: Box::new(fault) });
    }
    replayed.map_err(|error| match error {
        Error::Mismatch(mismatch) => ReplayError::Mismatch { code: W::NAME, mismatch },
        error @ (Error::Gap { .. } | Error::TurnDiscarded { .. } | Error::NoOpenTask) => {
            ReplayError::NotWhole(error.to_string())
        }
    })
}
