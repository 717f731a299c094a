//! The contract of a store: commit batches, answer 14 reads, decide nothing.
//!
//! - [`rows`]: the rows that a store keeps, one type per table.
//! - [`batch`]: what a commit writes.
//! - [`memory`]: an in-memory store, the readable specification of all others.
//! - `conformance`: the suite that every backend runs by one call (feature `conformance`).
//! - `search`: lists and counts of runs as SQL, for stores that speak it.
//! - [`throttle`]: how often stores, and what is built on them, log the same line.
//! - `forward`: a store in front of another one, for tests (feature `conformance`).
//!
//! Futures here need no particular runtime. Stores never create ids or times, and never change a
//! status on their own.

#![warn(missing_docs)]

use std::{future::Future, pin::Pin};

use abide_core::{
    ids::{RunId, ShardId},
    tally::{RunTally, TallyWaits, WaitTally},
    time::Timestamp,
};

pub mod batch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod counts;
mod error;
#[cfg(any(test, feature = "conformance"))]
pub mod forward;
pub mod memory;
pub mod rows;
#[doc(hidden)]
pub mod search;
pub mod throttle;

pub use abide_core::list::{RunFilter, WaitFilter, WaitPosition};
pub use batch::{Batch, Write};
pub use error::{CommitError, ReadError};
pub use rows::WorkflowRuns;
use rows::{
    DueKey, DueRow, InboxRow, ListLimit, ListPart, Loaded, LogLimit, LogRow, OutboxRow,
    RegistryRow, RunKey, RunRow, ShardRow, Swept, TaskKey, TaskRow, WaitRow,
};

/// Future returned by the methods of a store.
pub type Pending<'a, T, E = ReadError> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Durable storage for shards.
///
/// Reads see everything that was committed before they began. Pages are in key order, start after
/// the key `after` and hold at most `limit` rows; a shorter page is the last one, unless its size in
/// bytes ended it. A run id belongs to one shard only. Sequences, ordinals, epochs and other numbers
/// stay below 2^63.
pub trait Store: Send + Sync {
    /// Commits the batch. Batches of one shard commit in the order of these calls. Once the future
    /// returns `Ok`, the writes survive any crash.
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError>;

    /// Owner and epoch of the shard; a shard that was never claimed has epoch zero and no owner.
    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow>;

    /// Retained runs of a workflow, highest ordinal first, below `before` if given.
    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunKey>>;

    /// Latest snapshot of the run and the first page of its log after it, as of the same moment.
    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded>;

    /// Rows of a run's log after sequence `after`.
    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>>;

    /// Tasks of a shard, in key order.
    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>>;

    /// Entries of the due index up to and including `until`, ordered by due time.
    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>>;

    /// Waits of all shards that match `filter`. The run of every wait has a row among the runs.
    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>>;

    /// Undelivered effects of a shard, ordered by run and number.
    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>>;

    /// Result of an effect, if it has been applied.
    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>>;

    /// Runs of all shards that match `filter`, in its order. Those of one workflow id in one namespace
    /// may all be examined at once, since they are sorted first.
    fn runs(&self, filter: RunFilter, limit: ListLimit) -> Pending<'_, ListPart<Vec<RunRow>>>;

    /// Number of runs that match `filter`, among at most `examined` as in [`Self::runs`].
    fn count_runs(&self, filter: RunFilter, examined: usize) -> Pending<'_, ListPart<u64>>;

    /// Counts runs of all shards by status and type, or by the field of the query's GROUP BY. Examines at
    /// most `rows` and one more, from the newest, whether they pass the filter or not. Only those that a
    /// part of the query finds need to be examined.
    fn tally_runs(&self, filter: RunFilter, rows: usize) -> Pending<'_, RunTally>;

    /// Counts waits of all shards by interval and kind. Examines at most `rows` and one more, from the
    /// earliest end, at least by day, whether they pass the filter or not.
    fn tally_waits(&self, asked: TallyWaits, rows: usize) -> Pending<'_, WaitTally>;

    /// Examines `limit` open runs after run `after` for those that nothing in the store would
    /// resume. Such a run has no row in tasks or outbox, and either none in waits and due index, or
    /// a wait whose deadline is missing from the due index. The other runs without a row in tasks and
    /// outbox are named too.
    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept>;

    /// Registry rows whose name begins with `prefix`, ordered by name.
    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>>;

    /// Writes a registry row if the stored version is one less than the row's; a missing row has
    /// version zero. Returns whether it was written.
    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError>;

    /// Number of failed maintenance steps since the store was opened. They do not affect commits; the
    /// store has logged why. For figures.
    fn upkeep_failures(&self) -> u64 {
        0
    }
}
