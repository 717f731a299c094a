//! The connection of one node to the in-memory store that all nodes share. Once it is cut, no request
//! reaches the store and none is answered.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use abide_core::{
    ids::{RunId, ShardId},
    tally::{Tallied, Tally},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Pending, RunFilter, Store, WaitFilter, WorkflowRuns,
    memory::MemoryStore,
    rows::{
        DueKey, DueRow, InboxRow, Loaded, LogLimit, LogRow, OutboxRow, RegistryRow, RunRow,
        ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};

pub(crate) struct Cable {
    store: Arc<MemoryStore>,
    cut: AtomicBool,
}

impl Cable {
    pub(crate) fn new(store: &Arc<MemoryStore>) -> Self {
        Self { store: Arc::clone(store), cut: AtomicBool::new(false) }
    }

    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn ask<'a, T: Send + 'a, E: Send + 'a>(
        &'a self,
        answer: impl FnOnce(&'a MemoryStore) -> Pending<'a, T, E>,
    ) -> Pending<'a, T, E> {
        if self.cut.load(Ordering::SeqCst) { Box::pin(pending()) } else { answer(&self.store) }
    }
}

impl Store for Cable {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        self.ask(|store| store.commit(batch))
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        self.ask(|store| store.shard(shard))
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunRow>> {
        self.ask(|store| store.runs_of(shard, workflow, limit))
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        self.ask(|store| store.load(shard, run, limit))
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        self.ask(|store| store.log(shard, run, after, limit))
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        self.ask(|store| store.tasks(shard, after, limit))
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        self.ask(|store| store.due(shard, after, until, limit))
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        self.ask(|store| store.waits(filter, limit))
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        self.ask(|store| store.outbox(shard, after, limit))
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        self.ask(|store| store.inbox(shard, source, number))
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Pending<'_, Vec<RunRow>> {
        self.ask(|store| store.runs(filter, limit))
    }

    fn count_runs(&self, filter: RunFilter) -> Pending<'_, u64> {
        self.ask(|store| store.count_runs(filter))
    }

    fn tally(&self, tally: Tally, rows: usize) -> Pending<'_, Tallied> {
        self.ask(|store| store.tally(tally, rows))
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        self.ask(|store| store.stranded(shard, after, limit))
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        self.ask(|store| store.registry(prefix))
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        self.ask(|store| store.put_registry(row))
    }
}
