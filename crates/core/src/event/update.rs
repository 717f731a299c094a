//! Updates: input from outside that code may refuse, and that has an outcome. A refused update leaves
//! no event.

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    failure::Failure,
    ids::{EventNumber, UpdateId},
    payload::{PayloadMap, Payloads},
};

/// What the caller asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateRequest {
    /// The handler's name.
    pub name: String,
    /// Arguments.
    pub input: Payloads,
    /// Context that is passed along.
    pub header: PayloadMap,
    /// Who asks.
    pub identity: String,
}

impl UpdateRequest {
    /// What tells it from another request.
    pub fn digest(&self) -> Digest {
        Digest::of_message(&self.name, &self.input)
    }
}

/// An update was carried over from another run, to be delivered again.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateAdmitted {
    /// The update.
    pub update: UpdateId,
    /// What the caller asks for.
    pub request: UpdateRequest,
}

/// Code accepted an update.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateAccepted {
    /// The update.
    pub update: UpdateId,
    /// What the caller asks for.
    pub request: UpdateRequest,
}

/// An accepted update has its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateCompleted {
    /// The update.
    pub update: UpdateId,
    /// The event of its acceptance.
    pub accepted: EventNumber,
    /// What came of it.
    pub outcome: Outcome,
}

/// A result or a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It has a result.
    Completed(Payloads),
    /// It failed.
    Failed(Failure),
}
