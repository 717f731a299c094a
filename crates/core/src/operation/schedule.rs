//! Schedules: what starts workflows by itself.

use crate::{
    ids::{Key, NamespaceId, RunId, WorkflowKey},
    list::WaitPosition,
    schedule::{Schedule, ScheduleChange, ScheduleListing, ScheduleState},
    time::Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchedule {
    /// The workflow that the schedule is, see [`key_of`](crate::schedule::key_of).
    pub workflow: WorkflowKey,
    pub schedule: Schedule,
    /// Whether it is paused from the beginning.
    pub paused: bool,
    /// Why.
    pub note: String,
    /// Whether it starts once at once, whatever its times.
    pub trigger: bool,
    pub identity: String,
    pub key: Option<Key>,
}

/// Updates, pauses, unpauses or triggers a schedule, or makes up for times of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSchedule {
    pub workflow: WorkflowKey,
    pub change: ScheduleChange,
    /// Only if this is its revision.
    pub revision: Option<u64>,
    pub identity: String,
    pub key: Option<Key>,
}

/// Deletes a schedule. The runs that it started go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteSchedule {
    pub workflow: WorkflowKey,
    pub identity: String,
    pub key: Option<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeSchedule {
    pub workflow: WorkflowKey,
}

/// A schedule and what it does.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleDescription {
    pub workflow: WorkflowKey,
    /// The run that the schedule is at present.
    pub run: RunId,
    pub state: ScheduleState,
    /// The next nominal times. While it is paused: what they would be.
    pub next_times: Vec<Timestamp>,
}

/// Lists schedules, the next to act first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListSchedules {
    /// Only in this namespace.
    pub namespace: Option<NamespaceId>,
    /// Where the page before ended.
    pub after: Option<WaitPosition>,
    /// How many; the engine's bound if none is said.
    pub limit: Option<usize>,
}

/// A page of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRows {
    pub rows: Vec<ScheduleRow>,
    /// Where this page ends, if there may be more.
    pub next: Option<WaitPosition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    pub workflow: WorkflowKey,
    pub listing: ScheduleListing,
}
