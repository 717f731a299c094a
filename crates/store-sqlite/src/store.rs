//! The handle: passes batches to the writer and reads to the readers, and waits for their answers.

use std::{
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread::{self, JoinHandle},
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
use futures_channel::oneshot;

use crate::{
    Counts, OpenError, Options,
    open::{self, IndexRoom, Lock},
    readers::Readers,
    tables::{due, inbox, log, outbox, registry, runs, search, shards, snapshots, tasks, waits},
    writer::{Job, WriteRequest, WriteResult, Writer},
};

/// A store in one SQLite file. Dropping it finishes queued work, leaves an empty write-ahead log
/// and releases the file, which may take a moment.
pub struct SqliteStore {
    // Drop order: the last checkpoint needs all readers gone, and the lock goes last.
    readers: Readers,
    /// Reader for lists, which may be slow and must not delay the reads of a shard.
    lists: Readers,
    /// Reader for counts and tallies, which examine many rows and must not delay lists.
    counts: Readers,
    writer: WriterThread,
    counter: Arc<Counter>,
    _index_room: IndexRoom,
    _lock: Lock,
}

impl SqliteStore {
    /// Opens the file, or creates it.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let options = &Options { path: open::canonical(&options.path)?, ..options.clone() };
        let unavailable =
            |reason: String| OpenError::Unavailable { path: options.path.clone(), reason };
        let lock = open::lock(&options.path)?;
        let connection = open::writer(options)?;
        let index_room = open::reserve_index(options, &connection)?;
        let connections =
            (0..options.readers.max(1)).map(|_| open::reader(options)).collect::<Result<_, _>>()?;
        let for_lists = vec![open::reader(options)?];
        let for_counts = vec![open::reader(options)?];
        let mark = open::mark(options, &connection)?;
        let writer = Writer::new(connection, options, mark)
            .map_err(|error| open::failed(&options.path, error))?;
        let readers = |connections| {
            Readers::start(connections).map_err(|error| unavailable(error.to_string()))
        };
        Ok(Self {
            counter: writer.counter(),
            readers: readers(connections)?,
            lists: readers(for_lists)?,
            counts: readers(for_counts)?,
            writer: WriterThread::start(writer).map_err(|error| unavailable(error.to_string()))?,
            _index_room: index_room,
            _lock: lock,
        })
    }

    /// Counters since the store was opened: commits, and failed chores beside them.
    pub fn counts(&self) -> Counts {
        self.counter.counts()
    }
}

/// The writer's queue. Dropping it ends the thread.
struct WriterThread {
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    fn start(writer: Writer) -> std::io::Result<Self> {
        let (queue, jobs) = channel();
        let thread = thread::Builder::new().name("abide-sqlite-writer".to_owned());
        let thread = thread.spawn(move || writer.run(&jobs))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues at once, so that the order is that of calls and not of polls.
    fn write(&self, work: WriteRequest) -> impl Future<Output = WriteResult> + Send + 'static {
        let (reply, answer) = oneshot::channel();
        let job = Job { work, reply };
        let queued = self.queue.as_ref().is_some_and(|queue| queue.send(job).is_ok());
        async move {
            if !queued {
                return Err(CommitError::Stopped("the writer has ended".to_owned()));
            }
            // A writer that ends early drops the reply channel, and it is unknown whether the batch
            // was committed.
            let ended = |_| CommitError::Unknown("the writer has ended".to_owned());
            answer.await.map_err(ended)?
        }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has dropped the reply channels, which tells its callers.
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        let answer = self.writer.write(WriteRequest::Batch(batch));
        Box::pin(async move { answer.await.map(drop) })
    }

    fn shard(&self, shard: ShardId) -> Pending<'_, ShardRow> {
        self.readers.read(move |connection| shards::read(connection, shard))
    }

    fn runs_of(
        &self,
        shard: ShardId,
        workflow: WorkflowRuns,
        limit: usize,
    ) -> Pending<'_, Vec<RunKey>> {
        self.readers.read(move |connection| runs::of_workflow(connection, shard, &workflow, limit))
    }

    fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Pending<'_, Loaded> {
        self.readers.read(move |connection| {
            let snapshot = snapshots::read(connection, shard, run)?;
            let after = snapshot.as_ref().map_or(0, |row| row.sequence);
            let log = log::page(connection, shard, run, after, limit)?;
            let row_outdated = runs::outdated(connection, shard, run)?;
            Ok(Loaded { snapshot, log, row_outdated })
        })
    }

    fn log(
        &self,
        shard: ShardId,
        run: RunId,
        after: u64,
        limit: LogLimit,
    ) -> Pending<'_, Vec<LogRow>> {
        self.readers.read(move |connection| log::page(connection, shard, run, after, limit))
    }

    fn tasks(
        &self,
        shard: ShardId,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Pending<'_, Vec<TaskRow>> {
        self.readers.read(move |connection| tasks::page(connection, shard, after.as_ref(), limit))
    }

    fn due(
        &self,
        shard: ShardId,
        after: Option<DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Pending<'_, Vec<DueRow>> {
        self.readers
            .read(move |connection| due::page(connection, shard, after.as_ref(), until, limit))
    }

    fn waits(&self, filter: WaitFilter, limit: usize) -> Pending<'_, Vec<(ShardId, WaitRow)>> {
        self.lists.read(move |connection| waits::list(connection, &filter, limit))
    }

    fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Pending<'_, Vec<OutboxRow>> {
        self.readers.read(move |connection| outbox::page(connection, shard, after, limit))
    }

    fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Pending<'_, Option<InboxRow>> {
        self.readers.read(move |connection| inbox::read(connection, shard, source, number))
    }

    fn runs(&self, filter: RunFilter, limit: ListLimit) -> Pending<'_, ListPart<Vec<RunRow>>> {
        self.lists.read(move |connection| search::list(connection, &filter, limit))
    }

    fn count_runs(&self, filter: RunFilter, examined: usize) -> Pending<'_, ListPart<u64>> {
        self.counts.read(move |connection| search::count(connection, &filter, examined))
    }

    fn tally_runs(&self, filter: RunFilter, rows: usize) -> Pending<'_, RunTally> {
        self.counts.read(move |connection| match filter.search {
            Some(_) => search::tally(connection, &filter, rows),
            None => runs::tally(connection, &filter, rows),
        })
    }

    fn tally_waits(&self, asked: TallyWaits, rows: usize) -> Pending<'_, WaitTally> {
        self.counts.read(move |connection| waits::tally(connection, &asked, rows))
    }

    fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Pending<'_, Swept> {
        self.readers.read(move |connection| runs::stranded(connection, shard, after, limit))
    }

    fn registry(&self, prefix: String) -> Pending<'_, Vec<RegistryRow>> {
        self.readers.read(move |connection| registry::read(connection, &prefix))
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        Box::pin(self.writer.write(WriteRequest::Registry(row)))
    }

    fn upkeep_failures(&self) -> u64 {
        self.counter.counts().upkeep_failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> WriteRequest {
        WriteRequest::Batch(Batch { shard: ShardId::new(0).unwrap(), epoch: 0, writes: Vec::new() })
    }

    /// Counts examine many rows; a list is short and does not wait for them.
    #[test]
    fn a_list_does_not_wait_for_counts() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&Options::new(folder.path().join("abide.db"))).unwrap();
        let (release, released) = channel::<()>();
        let long = store.counts.read(move |_| Ok(released.recv().is_ok()));
        let counts: Vec<_> = (0..100).map(|_| store.count_runs(RunFilter::default(), 1)).collect();
        let listed = pollster::block_on(store.runs(RunFilter::default(), ListLimit::rows(1)));
        assert_eq!(listed, Ok(ListPart::default()));
        release.send(()).unwrap();
        assert_eq!(pollster::block_on(long), Ok(true));
        for count in counts {
            assert_eq!(pollster::block_on(count), Ok(ListPart::default()));
        }
    }

    #[test]
    fn a_writer_that_has_ended_wrote_nothing() {
        let (queue, jobs) = channel();
        let writer = WriterThread { queue: Some(queue), thread: None };
        let queued = writer.write(batch());
        drop(jobs);
        let unknown = pollster::block_on(queued);
        assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
        let stopped = pollster::block_on(writer.write(batch()));
        assert!(matches!(stopped, Err(CommitError::Stopped(_))), "{stopped:?}");
    }
}
