//! What a store must do: commit batches, answer a dozen reads, decide nothing.
//!
//! - [`rows`]: what is kept, one type per table.
//! - [`batch`]: what is written.
//! - [`memory`]: the store in memory, which is the readable specification of all others.
//! - `conformance`: the suite that every backend runs by one call (feature of that name).
//!
//! Futures here need no runtime. Ids, times and status rules never originate in a store.

#![warn(missing_docs)]

use std::{future::Future, pin::Pin};

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    time::Timestamp,
};
use bytes::Bytes;

pub mod batch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod memory;
pub mod rows;

pub use batch::{Batch, Write};
use rows::{
    DueKey, DueRow, InboxRow, LogRow, OutboxRow, RegistryRow, RunRow, RunStatus, ShardRow,
    SnapshotRow, TaskKey, TaskRow, WaitKind, WaitRow,
};

/// The answer of a store, some time later.
pub type Pending<'a, T, E = ReadError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A durable place for shards.
///
/// Reads see everything that was committed before they began. Pages are in key order, begin after
/// the key `after` and hold at most `limit` rows; a shorter page is the last one. A run id belongs to
/// one shard only. Sequences, ordinals, epochs and other numbers stay below 2^63.
pub trait Store: Send + Sync {
    /// Commits the batch. Batches of one shard are committed in the order of these calls. When the
    /// future answers `Ok`, the writes survive any crash.
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError>;

    /// Who owns the shard; a shard that was never claimed has epoch zero and no owner.
    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow>;

    /// One run.
    fn run(&self, shard: ShardId, run: RunId) -> Pending<'_, Option<RunRow>>;

    /// The retained runs of a workflow, highest ordinal first, below `before` if that is given.
    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunRow>>;

    /// The run's snapshot.
    fn snapshot(&self, shard: ShardId, run: RunId) -> Pending<'_, Option<SnapshotRow>>;

    /// Rows of a run's log, after the row of sequence `after`.
    fn log(&self, shard: ShardId, run: RunId, after: u64, limit: usize)
    -> Pending<'_, Vec<LogRow>>;

    /// Tasks of a shard in key order.
    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>>;

    /// Entries of the due index in order of due time, not later than `until`.
    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>>;

    /// Waits over all shards, as `filter` says.
    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>>;

    /// Undelivered effects of a shard, in order of run and number.
    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>>;

    /// The answer that an effect got.
    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>>;

    /// Runs over all shards, newest first, as `filter` says.
    fn runs(&self, filter: RunFilter, limit: usize) -> Pending<'_, Vec<RunRow>>;

    /// Open runs, after run `after`, that have no row in tasks, due index, waits and outbox: nothing
    /// in the store would ever resume them.
    fn stranded(
        &self,
        shard: ShardId,
        after: Option<RunId>,
        limit: usize,
    ) -> Pending<'_, Vec<RunRow>>;

    /// Registry rows whose name begins with `prefix`, in order of name.
    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>>;

    /// Writes a registry row if the stored version is one less than the row's (none counts as zero).
    /// Answers whether it was written.
    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError>;
}

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

/// Why a commit did not answer `Ok`, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Another owner claimed the shard. Nothing was written; stop serving it.
    #[error("shard {shard} is at epoch {stored}, the batch at {batch}: another owner took it")]
    Stale {
        /// The shard.
        shard: ShardId,
        /// The epoch in the store.
        stored: u64,
        /// The epoch of the batch.
        batch: u64,
    },
    /// The batch contradicts what is stored. Nothing was written; reload and decide anew.
    #[error("batch refused: {0}")]
    Refused(String),
    /// Nothing was written; the same batch may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The writes may or may not be there. Claim the shard anew, then read.
    #[error("outcome of the commit unknown: {0}")]
    Unknown(String),
    /// The store takes no further write until it is opened again.
    #[error("store stopped: {0}")]
    Stopped(String),
}

impl CommitError {
    /// The refusal of a log row that is there already, in the words that every backend uses.
    pub fn log_row_exists(run: RunId, sequence: u64) -> Self {
        Self::Refused(format!("run {run} already has a log row {sequence}"))
    }

    /// The refusal of a claim that does not raise the shard's epoch.
    pub fn claim_not_higher(shard: ShardId, stored: u64, claimed: u64) -> Self {
        Self::Refused(format!("shard {shard} is at epoch {stored}, which {claimed} does not raise"))
    }
}

/// Why a read failed, named by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The same read may succeed later.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be read.
    #[error("store corrupt: {0}")]
    Corrupt(String),
}
