//! Values that code records once and reads again on replay, and facts that code states for lists.

use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    ids::EventNumber,
    payload::{PayloadMap, Payloads},
};

/// Code recorded a value.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkerRecorded {
    /// The value.
    pub marker: Marker,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// A value that code records once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    /// What kind of value.
    pub kind: MarkerKind,
    /// Tells markers of one kind apart: the change id of a version, the id of a local activity.
    pub id: String,
    /// The value, by name of its parts.
    pub details: std::collections::BTreeMap<String, Payloads>,
    /// The failure of a local activity.
    pub failure: Option<Failure>,
    /// Context that is passed along.
    pub header: PayloadMap,
}

impl Marker {
    /// The part of a version that says that code is about to stop asking for it.
    pub const DEPRECATED: &str = "deprecated";

    /// Code need not ask for it again: a version that was recorded by code which had no other way left.
    pub fn may_be_left_out(&self) -> bool {
        self.kind == MarkerKind::Version && self.details.contains_key(Self::DEPRECATED)
    }
}

/// What kind of value a marker holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MarkerKind {
    /// The result of code that is not deterministic.
    SideEffect,
    /// Which version of a changed part the run follows.
    Version,
    /// The result of an activity that ran inside the workflow's worker.
    LocalActivity,
    /// A foreign SDK's own kind.
    Named(String),
}

/// Code changed search attributes. An empty payload removes one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAttributesUpserted {
    /// The new values.
    pub attributes: PayloadMap,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}

/// Code changed the memo. An empty payload removes an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoUpserted {
    /// The new values.
    pub memo: PayloadMap,
    /// The task whose code asked.
    pub task_completed: EventNumber,
}
