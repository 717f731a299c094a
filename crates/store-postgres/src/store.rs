//! The handle: passes batches to the writer and reads to the readers, and awaits their replies.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

use abide_core::{
    ids::{RunId, ShardId},
    tally::{RunTally, TallyWaits, WaitTally},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Pending, RunFilter, Store, WaitFilter, WorkflowRuns,
    counts::Counter,
    rows::{
        DueKey, DueRow, InboxRow, ListLimit, ListPart, Loaded, LogLimit, LogRow, OutboxRow,
        RegistryRow, RunKey, RunRow, ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    Counts, OpenError, Options, open,
    readers::Readers,
    registrar::Registrar,
    tables::{due, inbox, log, outbox, registry, runs, search, shards, tasks, waits},
    writer::Writer,
};

/// A store in a PostgreSQL database. Dropping it first writes what is queued, which may take a
/// moment.
pub struct PostgresStore {
    readers: Readers,
    /// Lists may be slow, so they never delay reads that a shard waits for.
    lists: Readers,
    /// Counts and tallies examine many rows, so they never delay lists.
    counts: Readers,
    registrar: Registrar,
    counter: Arc<Counter>,
    writer: Option<Writer>,
    /// Disconnected when the writer has finished.
    finished: Mutex<Receiver<()>>,
    /// Runs the database I/O, so that the store needs no runtime from its users.
    runtime: Option<Runtime>,
}

impl PostgresStore {
    /// Opens the store and creates its tables if necessary. Blocks until the database responds.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("abide-postgres")
            .enable_all()
            .build()
            .map_err(|error| open::unavailable(options, error.to_string()))?;
        let options = Arc::new(options.clone());
        let (send, opened) = channel();
        let opening = Arc::clone(&options);
        runtime.spawn(async move {
            // The receiver waits below.
            let _ = send.send(open::prepare(&opening).await);
        });
        let ended = |_| Err(open::unavailable(&options, "its threads have ended".to_owned()));
        opened.recv().unwrap_or_else(ended)?;
        let counter = Arc::<Counter>::default();
        let (writer, work) = Writer::new(&options, Arc::clone(&counter));
        let (finishing, finished) = channel();
        runtime.spawn(async move {
            work.await;
            drop(finishing);
        });
        Ok(Self {
            readers: Readers::new(runtime.handle().clone(), &options, options.readers),
            lists: Readers::new(runtime.handle().clone(), &options, 1),
            counts: Readers::new(runtime.handle().clone(), &options, 1),
            registrar: Registrar::new(runtime.handle().clone(), &options),
            counter,
            writer: Some(writer),
            finished: Mutex::new(finished),
            runtime: Some(runtime),
        })
    }

    /// Counters since the store was opened.
    pub fn counts(&self) -> Counts {
        self.counter.counts()
    }
}

/// How long dropping the store waits for a database that does not respond.
const END_PATIENCE: Duration = Duration::from_secs(30);

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.writer = None;
        // No message is ever sent: this waits for the channel to close, or for the timeout.
        let finished = self.finished.get_mut().unwrap_or_else(PoisonError::into_inner);
        if finished.recv_timeout(END_PATIENCE) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("the database does not answer: what was queued last may not be written");
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Store for PostgresStore {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        match &self.writer {
            Some(writer) => Box::pin(writer.write(batch)),
            None => Box::pin(async {
                Err(CommitError::Stopped("the store is being closed".to_owned()))
            }),
        }
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        let stored = self.readers.first(shards::read(shard), shards::decode);
        Box::pin(async move {
            let unclaimed = || ShardRow { shard, epoch: 0, owner: String::new() };
            Ok(stored.await?.unwrap_or_else(unclaimed))
        })
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunKey>> {
        self.readers.read(runs::of_workflow(shard, &workflow, limit), runs::decode_key)
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        let parts = self.readers.read(log::load(shard, run, limit), log::decode_part);
        Box::pin(async move { Ok(log::loaded(parts.await?)) })
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        self.readers.read(log::page(shard, run, after, limit), log::decode)
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        self.readers.read(tasks::page(shard, after.as_ref(), limit), tasks::decode)
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        self.readers.read(due::page(shard, after.as_ref(), until, limit), due::decode)
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        self.lists.read(waits::list(&filter, limit), waits::decode)
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        self.readers.read(outbox::page(shard, after, limit), outbox::decode)
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        match inbox::read(shard, source, number) {
            Some(query) => self.readers.first(query, inbox::decode),
            None => Box::pin(async { Ok(None) }),
        }
    }

    fn runs(&self, filter: RunFilter, limit: ListLimit) -> Pending<'_, ListPart<Vec<RunRow>>> {
        Box::pin(async move { search::list(&self.lists, &filter, limit).await })
    }

    fn count_runs(&self, filter: RunFilter, examined: usize) -> Pending<'_, ListPart<u64>> {
        Box::pin(async move { search::count(&self.counts, &filter, examined).await })
    }

    fn tally_runs(&self, filter: RunFilter, rows: usize) -> Pending<'_, RunTally> {
        if filter.search.is_some() {
            return Box::pin(async move { search::tally(&self.counts, &filter, rows).await });
        }
        let groups = self.counts.read(runs::tally(&filter, rows), runs::decode_tally);
        Box::pin(async move { Ok(runs::tallied(groups.await?, rows)) })
    }

    fn tally_waits(&self, asked: TallyWaits, rows: usize) -> Pending<'_, WaitTally> {
        let groups = self.counts.read(waits::tally(&asked, rows), waits::decode_tally);
        Box::pin(async move { Ok(waits::tallied(&asked, groups.await?, rows)) })
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        let seen = self.readers.read(runs::stranded(shard, after, limit), runs::decode_seen);
        Box::pin(async move { Ok(runs::swept(seen.await?, limit)) })
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        self.registrar.read(registry::read(&prefix))
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        self.registrar.put(row)
    }
}
