//! Values that code records once and reads back on replay, and data that code publishes for lists.

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    ids::EventNumber,
    payload::{PayloadMap, Payloads},
};

/// Code recorded a value.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkerRecorded {
    pub marker: Marker,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// A value that code records once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    pub kind: MarkerKind,
    /// Distinguishes markers of one kind: the change id of a version, the id of a local activity.
    pub id: String,
    pub details: std::collections::BTreeMap<String, Payloads>,
    /// The failure of a local activity.
    pub failure: Option<Failure>,
    /// Context propagated to the receiver.
    pub header: PayloadMap,
}

impl Marker {
    /// Part of a version marker that says that the code has deprecated the change.
    pub const DEPRECATED: &str = "deprecated";

    /// Whether code may omit the marker on replay: a version that was recorded by code that had
    /// already deprecated the change.
    pub fn is_optional_on_replay(&self) -> bool {
        self.kind == MarkerKind::Version && self.details.contains_key(Self::DEPRECATED)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MarkerKind {
    /// Result of non-deterministic code.
    SideEffect,
    /// Version of a changed part of the code that the run follows.
    Version,
    /// Result of an activity that ran inside the workflow's worker.
    LocalActivity,
    /// A kind of another SDK.
    Named(String),
}

/// Code changed search attributes. An empty payload removes one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAttributesUpserted {
    pub attributes: PayloadMap,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}

/// Code changed the memo. An empty payload removes an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoUpserted {
    pub memo: PayloadMap,
    /// Number of the TaskCompleted event of the task that requested it.
    pub task_completed: EventNumber,
}
