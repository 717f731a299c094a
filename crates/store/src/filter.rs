//! Which rows a list asks for, and where its next page begins.

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    time::Timestamp,
};
use bytes::Bytes;

use crate::rows::{RunStatus, WaitKind};

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
