//! A store that passes everything on to another one, and may interfere. Test stores implement
//! [`Forward`] instead of [`Store`], so that a new method of `Store` is written here once.

use abide_core::{
    ids::{RunId, ShardId},
    tally::{RunTally, TallyWaits, WaitTally},
    time::Timestamp,
};

use crate::{
    Batch, CommitError, Pending, RunFilter, Store, WaitFilter, WorkflowRuns,
    rows::{
        DueKey, DueRow, InboxRow, ListLimit, ListPart, Loaded, LogLimit, LogRow, OutboxRow,
        RegistryRow, RunKey, RunRow, ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};

/// Lets another store answer. Every type that implements it is a [`Store`].
pub trait Forward: Send + Sync {
    /// Store that answers.
    fn target(&self) -> &dyn Store;

    /// Passes a batch on.
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        self.target().commit(batch)
    }

    /// Passes the answer to a read on. The answer is that of the target at the time of the call.
    fn read<'a, T: Send + 'a>(&'a self, _read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        answer
    }

    /// Passes a registry row on.
    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        self.target().put_registry(row)
    }
}

/// Which method of [`Store`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method of the same name")]
pub enum Read {
    Shard,
    RunsOf,
    Load,
    Log,
    Tasks,
    Due,
    Waits,
    Outbox,
    Inbox,
    Runs,
    CountRuns,
    TallyRuns,
    TallyWaits,
    Stranded,
    Registry,
}

impl<S: Forward> Store for S {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        Forward::commit(self, batch)
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        self.read(Read::Shard, self.target().shard(shard))
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunKey>> {
        self.read(Read::RunsOf, self.target().runs_of(shard, workflow, limit))
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        self.read(Read::Load, self.target().load(shard, run, limit))
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        self.read(Read::Log, self.target().log(shard, run, after, limit))
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        self.read(Read::Tasks, self.target().tasks(shard, after, limit))
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        self.read(Read::Due, self.target().due(shard, after, until, limit))
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        self.read(Read::Waits, self.target().waits(filter, limit))
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        self.read(Read::Outbox, self.target().outbox(shard, after, limit))
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        self.read(Read::Inbox, self.target().inbox(shard, source, number))
    }

    fn runs(&self, filter: RunFilter, limit: ListLimit) -> Pending<'_, ListPart<Vec<RunRow>>> {
        self.read(Read::Runs, self.target().runs(filter, limit))
    }

    fn count_runs(&self, filter: RunFilter, examined: usize) -> Pending<'_, ListPart<u64>> {
        self.read(Read::CountRuns, self.target().count_runs(filter, examined))
    }

    fn tally_runs(&self, filter: RunFilter, rows: usize) -> Pending<'_, RunTally> {
        self.read(Read::TallyRuns, self.target().tally_runs(filter, rows))
    }

    fn tally_waits(&self, asked: TallyWaits, rows: usize) -> Pending<'_, WaitTally> {
        self.read(Read::TallyWaits, self.target().tally_waits(asked, rows))
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        self.read(Read::Stranded, self.target().stranded(shard, after, limit))
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        self.read(Read::Registry, self.target().registry(prefix))
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        Forward::put_registry(self, row)
    }

    fn upkeep_failures(&self) -> u64 {
        self.target().upkeep_failures()
    }
}
