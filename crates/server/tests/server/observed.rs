//! A store in memory that counts reads of its log, may lose the answer to a commit, and may be cut off.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use abide_core::{
    ids::{RunId, ShardId},
    tally::{Tallied, Tally},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Pending, ReadError, RunFilter, Store, WaitFilter, WorkflowRuns,
    memory::MemoryStore,
    rows::{
        DueKey, DueRow, InboxRow, Loaded, LogLimit, LogRow, OutboxRow, RegistryRow, RunRow,
        ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};

#[derive(Default)]
pub(crate) struct ObservedStore {
    kept: Arc<MemoryStore>,
    cut_off: AtomicBool,
    log_reads: AtomicUsize,
    loses_answer: AtomicBool,
}

impl ObservedStore {
    /// The way of one node to a store that others use as well.
    pub(crate) fn of(kept: &Arc<MemoryStore>) -> Self {
        Self { kept: Arc::clone(kept), ..Self::default() }
    }

    /// Nothing can be committed any more, no log can be read, and nodes can neither read nor write their
    /// rows.
    pub(crate) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::SeqCst);
    }

    /// All is well again.
    pub(crate) fn mend(&self) {
        self.cut_off.store(false, Ordering::SeqCst);
    }

    fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::SeqCst)
    }

    /// Reads of the log until now.
    pub(crate) fn log_reads(&self) -> usize {
        self.log_reads.load(Ordering::SeqCst)
    }

    /// The next batch is written, and nobody is told.
    pub(crate) fn lose_next_answer(&self) {
        self.loses_answer.store(true, Ordering::SeqCst);
    }
}

impl Store for ObservedStore {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(CommitError::Unavailable("cut off".into()))));
        }
        let lost = self.loses_answer.swap(false, Ordering::SeqCst);
        let written = self.kept.commit(batch);
        Box::pin(async move {
            written.await?;
            if lost { Err(CommitError::Unknown("the answer is lost".into())) } else { Ok(()) }
        })
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        self.kept.shard(shard)
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunRow>> {
        self.kept.runs_of(shard, workflow, limit)
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(ReadError::Unavailable("cut off".into()))));
        }
        self.log_reads.fetch_add(1, Ordering::SeqCst);
        self.kept.load(shard, run, limit)
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(ReadError::Unavailable("cut off".into()))));
        }
        self.log_reads.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            // As with a store on disk, the answer is not there at once.
            tokio::task::yield_now().await;
            self.kept.log(shard, run, after, limit).await
        })
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        self.kept.tasks(shard, after, limit)
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        self.kept.due(shard, after, until, limit)
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        self.kept.waits(filter, limit)
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        self.kept.outbox(shard, after, limit)
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        self.kept.inbox(shard, source, number)
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> Pending<'_, Vec<RunRow>> {
        self.kept.runs(filter, limit)
    }

    fn count_runs(&self, filter: RunFilter) -> Pending<'_, u64> {
        self.kept.count_runs(filter)
    }

    fn tally(&self, tally: Tally, rows: usize) -> Pending<'_, Tallied> {
        self.kept.tally(tally, rows)
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        self.kept.stranded(shard, after, limit)
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(ReadError::Unavailable("cut off".into()))));
        }
        self.kept.registry(prefix)
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        if self.is_cut_off() {
            return Box::pin(ready(Err(CommitError::Unavailable("cut off".into()))));
        }
        self.kept.put_registry(row)
    }
}
