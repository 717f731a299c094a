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
    ids::{RunId, ShardId},
    time::Timestamp,
};

pub mod batch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod counts;
mod error;
pub mod memory;
pub mod rows;

pub use abide_core::list::{RunFilter, WaitFilter, WaitPosition};
pub use batch::{Batch, Write};
pub use error::{CommitError, ReadError};
pub use rows::WorkflowRuns;
use rows::{
    DueKey, DueRow, InboxRow, LogLimit, LogRow, OutboxRow, RegistryRow, RunRow, ShardRow,
    SnapshotRow, Swept, TaskKey, TaskRow, WaitRow,
};

/// The answer of a store, some time later.
pub type Pending<'a, T, E = ReadError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A durable place for shards.
///
/// Reads see everything that was committed before they began. Pages are in key order, begin after
/// the key `after` and hold at most `limit` rows; a shorter page is the last one, unless its bytes have
/// filled it. A run id belongs to one shard only. Sequences, ordinals, epochs and other numbers stay
/// below 2^63.
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
    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>>;

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

    /// Waits over all shards, as `filter` says. The run of a wait has a row among the runs.
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

    /// How many runs pass the filter.
    fn count_runs(&self, filter: RunFilter) -> Pending<'_, u64>;

    /// Looks at `limit` open runs after run `after` for those that nothing in the store would resume.
    /// Such a run has no row in tasks and outbox, and either none in waits and due index, or a wait
    /// with an end that is not in the due index.
    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept>;

    /// Registry rows whose name begins with `prefix`, in order of name.
    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>>;

    /// Writes a registry row if the stored version is one less than the row's (none counts as zero).
    /// Answers whether it was written.
    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError>;

    /// How often something failed, since the store was opened, that it does beside its commits and without
    /// harm to them. The store has logged why. For figures.
    fn upkeep_failures(&self) -> u64 {
        0
    }
}
