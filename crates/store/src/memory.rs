//! An in-memory store, the readable specification of all others. [`Tables`] is plain data with
//! synchronous methods, so that a simulator can clone it, crash, and restore the clone;
//! [`MemoryStore`] wraps it in a lock and implements the trait. Nothing survives the process.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use abide_core::{
    ids::{RunId, ShardId, WorkflowKey},
    tally::{RunTally, TallyWaits, WaitTally},
    time::Timestamp,
};
use bytes::Bytes;

use crate::{
    Batch, CommitError, Pending, RunFilter, Store, WaitFilter, WorkflowRuns,
    rows::{
        AttributeRow, DueKey, DueRow, InboxRow, ListLimit, ListPart, Loaded, LogLimit, LogRow,
        OutboxRow, RegistryRow, RunKey, RunRow, ShardRow, SnapshotRow, Swept, TaskKey, TaskRow,
        WaitRow,
    },
};

mod read;
mod runs;
mod write;

/// All rows of a store. Cloning takes a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    shards: BTreeMap<ShardId, ShardRow>,
    log: BTreeMap<(ShardId, RunId, u64), LogRow>,
    snapshots: BTreeMap<(ShardId, RunId), SnapshotRow>,
    runs: BTreeMap<(ShardId, RunId), RunRow>,
    /// Index of `runs` by workflow: a shard may have thousands of workflows, and each is looked up
    /// by its id.
    runs_of: BTreeMap<(ShardId, WorkflowKey), BTreeSet<RunId>>,
    tasks: BTreeMap<(ShardId, TaskKey), TaskRow>,
    due: BTreeMap<(ShardId, DueKey), DueRow>,
    waits: BTreeMap<(ShardId, RunId, Bytes), WaitRow>,
    attributes: BTreeMap<(ShardId, RunId, String, Bytes), AttributeRow>,
    outbox: BTreeMap<(ShardId, RunId, u64), OutboxRow>,
    inbox: BTreeMap<(ShardId, RunId, u64), InboxRow>,
    registry: BTreeMap<String, RegistryRow>,
}

/// [`Tables`] behind a lock. Clones share the rows.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
}

impl MemoryStore {
    /// A panic elsewhere cannot leave a batch half applied, so a poisoned lock is safe to use.
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer<'a, T: Send + 'a, E: Send + 'a>(result: Result<T, E>) -> Pending<'a, T, E> {
    Box::pin(ready(result))
}

impl Store for MemoryStore {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        answer(self.tables().apply(&batch))
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        answer(Ok(self.tables().shard(shard)))
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunKey>> {
        answer(Ok(self.tables().runs_of(shard, &workflow, limit)))
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        answer(Ok(self.tables().load(shard, run, limit)))
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        answer(Ok(self.tables().log(shard, run, after, limit)))
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        answer(Ok(self.tables().tasks(shard, after.as_ref(), limit)))
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        answer(Ok(self.tables().due(shard, after.as_ref(), until, limit)))
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        answer(Ok(self.tables().waits(&filter, limit)))
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        answer(Ok(self.tables().outbox(shard, after, limit)))
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        answer(Ok(self.tables().inbox(shard, source, number)))
    }

    fn runs(&self, filter: RunFilter, limit: ListLimit) -> Pending<'_, ListPart<Vec<RunRow>>> {
        answer(Ok(self.tables().part_of_runs(&filter, limit)))
    }

    fn count_runs(&self, filter: RunFilter, examined: usize) -> Pending<'_, ListPart<u64>> {
        answer(Ok(self.tables().count_runs(&filter, examined)))
    }

    fn tally_runs(&self, filter: RunFilter, rows: usize) -> Pending<'_, RunTally> {
        answer(Ok(self.tables().tally_runs(&filter, rows)))
    }

    fn tally_waits(&self, asked: TallyWaits, rows: usize) -> Pending<'_, WaitTally> {
        answer(Ok(self.tables().tally_waits(&asked, rows)))
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        answer(Ok(self.tables().stranded(shard, after, limit)))
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        answer(Ok(self.tables().registry(&prefix)))
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        answer(Ok(self.tables().put_registry(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforms() {
        crate::conformance::run(MemoryStore::default);
        crate::conformance::run_reopened(MemoryStore::default(), |store| store);
    }
}
