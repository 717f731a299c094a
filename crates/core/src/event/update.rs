//! Updates: input from outside that code may reject, and that has an outcome. A rejected update
//! writes no event.

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    failure::Failure,
    ids::{EventNumber, UpdateId},
    payload::{PayloadMap, Payloads},
};

/// Request of a caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateRequest {
    pub name: String,
    pub input: Payloads,
    /// Context propagated to the handler.
    pub header: PayloadMap,
    pub identity: String,
}

impl UpdateRequest {
    /// Distinguishes it from other requests.
    pub fn digest(&self) -> Digest {
        Digest::of_message(&self.name, &self.input)
    }
}

/// An update was carried over from another run, to be delivered again.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateAdmitted {
    pub update: UpdateId,
    pub request: UpdateRequest,
}

/// Code accepted an update.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateAccepted {
    pub update: UpdateId,
    pub request: UpdateRequest,
}

/// An accepted update completed or failed.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateCompleted {
    pub update: UpdateId,
    /// Number of the UpdateAccepted event.
    pub accepted: EventNumber,
    pub outcome: UpdateOutcome,
}

/// A result or a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum UpdateOutcome {
    Completed(Payloads),
    Failed(Failure),
}
