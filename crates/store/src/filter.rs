//! Which rows a list asks for, which rows pass, and where the next page begins.

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    time::Timestamp,
};
use bytes::Bytes;

use crate::rows::{RunRow, RunStatus, WaitKind, WaitRow};

/// Which runs of which workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRuns {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The workflow.
    pub workflow: WorkflowId,
    /// Only ordinals below this one.
    pub before: Option<u64>,
}

/// Which runs to list. Empty lists everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only this namespace.
    pub namespace: Option<NamespaceId>,
    /// Only this workflow id.
    pub workflow: Option<WorkflowId>,
    /// Only this type.
    pub workflow_type: Option<String>,
    /// Only these statuses; none means all.
    pub statuses: Vec<RunStatus>,
    /// Only runs started at or after this.
    pub started_from: Option<Timestamp>,
    /// Only runs started before this.
    pub started_before: Option<Timestamp>,
    /// Where the page before ended.
    pub after: Option<(Timestamp, RunId)>,
}

impl RunFilter {
    /// Whether the row passes; how a backend finds the rows is its own affair.
    pub fn matches(&self, row: &RunRow) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && self.workflow.as_ref().is_none_or(|workflow| row.workflow == *workflow)
            && self.workflow_type.as_ref().is_none_or(|name| row.workflow_type == *name)
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.started_from.is_none_or(|from| row.started_at >= from)
            && self.started_before.is_none_or(|before| row.started_at < before)
            && self.after.is_none_or(|after| (row.started_at, row.run) < after)
    }
}

/// Which waits to list. Empty lists everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitFilter {
    /// Only this namespace.
    pub namespace: Option<NamespaceId>,
    /// Only waits of this run.
    pub run: Option<(ShardId, RunId)>,
    /// Only this kind.
    pub kind: Option<WaitKind>,
    /// Only this name; needs a kind.
    pub name: Option<String>,
    /// Only waits that end at or before this.
    pub until: Option<Timestamp>,
    /// Where the page before ended: order is by `until`, run, shard and wait.
    pub after: Option<WaitPosition>,
}

impl WaitFilter {
    /// Whether the row at this position passes.
    pub fn matches(&self, position: &WaitPosition, row: &WaitRow) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && self.run.is_none_or(|run| run == (position.shard, position.run))
            && self.kind.is_none_or(|kind| row.kind == kind)
            && self.name.as_ref().is_none_or(|name| row.name == *name)
            && self.until.is_none_or(|until| row.until <= until)
            && self.after.as_ref().is_none_or(|after| position > after)
    }
}

/// A place in a list of waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitPosition {
    /// Until when the wait lasts.
    pub until: Timestamp,
    /// Its run. Stands before the shard, because run ids grow with time and shards do not: new
    /// waits without a deadline then go to one end of an index.
    pub run: RunId,
    /// Its shard.
    pub shard: ShardId,
    /// The wait within the run.
    pub wait: Bytes,
}

impl WaitPosition {
    /// Where the row stands in lists.
    pub fn of(shard: ShardId, row: &WaitRow) -> Self {
        Self { until: row.until, run: row.run, shard, wait: row.wait.clone() }
    }
}
