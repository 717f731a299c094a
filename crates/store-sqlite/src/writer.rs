//! The one thread that writes. It takes the queued batches of all shards, executes them in one
//! transaction, and replies once that is on the disk, never before.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
    mpsc::Receiver,
};

use abide_core::ids::ShardId;
use abide_store::{Batch, CommitError, Write, counts::Counter, rows::RegistryRow};
use futures_channel::oneshot;
use rusqlite::Connection;

use crate::{
    Options,
    fault::{self, Fault},
    mark::Mark,
    tables,
    upkeep::{Chore, Upkeep},
    writer::epochs::Epochs,
};

mod checkpoint;
mod epochs;
mod waiting;

use checkpoint::Checkpoint;
use waiting::{WaitingJobs, large_bytes};

/// The reply to a caller. `Ok(true)` for a committed batch.
pub(crate) type WriteResult = Result<bool, CommitError>;

/// Something to write, and its reply channel.
pub(crate) struct Job {
    pub(crate) work: WriteRequest,
    pub(crate) reply: oneshot::Sender<WriteResult>,
}

pub(crate) enum WriteRequest {
    Batch(Batch),
    Registry(RegistryRow),
}

/// Whether each batch of a transaction can be undone by itself. That costs two statements per
/// batch, so it is used only after a batch of the group was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undo {
    Group,
    Batch,
}

pub(crate) struct Writer {
    connection: Connection,
    epochs: Epochs,
    checkpoint: Checkpoint,
    group_batches_max: usize,
    upkeep: Upkeep,
    /// The last row of the log, as the open transaction leaves it.
    log_row: u64,
    /// The last row of the log, as the last commit left it.
    committed_log_row: u64,
    /// The mark beside the file. `None` with a test's file layer.
    mark: Option<Mark>,
    /// Why the writer has stopped: after a failed write or sync the content of the disk is unknown,
    /// and the next sync would not reveal it.
    stopped: Option<String>,
}

impl Writer {
    pub(crate) fn new(
        mut connection: Connection,
        options: &Options,
        mark: Option<Mark>,
    ) -> rusqlite::Result<Self> {
        let log_pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&log_pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            seen.store(pages.unsigned_abs(), Relaxed);
            Ok(())
        }))?;
        // The page size of the file, which may have been created with other options.
        let page_bytes = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let log_row = mark.as_ref().map_or(0, Mark::rows);
        Ok(Self {
            epochs: Epochs::new(tables::shards::epochs(&connection)?),
            checkpoint: Checkpoint::new(log_pages, options.checkpoint_bytes, page_bytes),
            group_batches_max: options.group_batches_max,
            upkeep: Upkeep::new(options.path.clone()),
            log_row,
            committed_log_row: log_row,
            mark,
            stopped: None,
            connection,
        })
    }

    /// Counts commits, and failed chores beside them.
    pub(crate) fn counter(&self) -> Arc<Counter> {
        Arc::clone(self.upkeep.counter())
    }

    /// Runs until the last sender is dropped and the queue is empty.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        let mut waiting = WaitingJobs::new(self.group_batches_max);
        while let Some(group) = waiting.next_group(jobs) {
            self.commit(group);
            self.copy_when_due();
        }
        if self.stopped.is_none()
            && let Err(fault) = self.checkpoint.at_the_end(&self.connection)
        {
            self.upkeep.failed(Chore::Copy, fault);
        }
    }

    fn copy_when_due(&mut self) {
        if self.stopped.is_none() {
            let copied = self.checkpoint.when_due(&self.connection);
            self.stop_unless_sound(copied);
        }
    }

    /// A copy that did not start leaves the log as it was. A copy that failed half-way may later be
    /// indistinguishable from a complete one, so the writer stops.
    fn stop_unless_sound(&mut self, copied: Result<(), Fault>) {
        match copied {
            Ok(()) => {}
            Err(Fault::Io(reason) | Fault::Corrupt(reason)) => self.stopped = Some(reason),
            Err(fault) => self.upkeep.failed(Chore::Copy, fault),
        }
    }

    fn commit(&mut self, group: Vec<Job>) {
        let (work, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|job| (job.work, job.reply)).unzip();
        let answers = self.answers(&work);
        for (reply, answer) in replies.into_iter().zip(answers) {
            // The caller may have dropped its future.
            let _ = reply.send(answer);
        }
    }

    /// Commits the group together. On a full disk it makes room and retries, unless that did not
    /// help a moment ago; then it commits each batch by itself: a small one may fit where the group
    /// does not.
    fn answers(&mut self, group: &[WriteRequest]) -> Vec<WriteResult> {
        let mut outcome = self.attempt(group);
        if matches!(outcome, Err(Fault::Full(_))) && !self.checkpoint.pausing() {
            let made = self.checkpoint.make_room(&self.connection);
            self.stop_unless_sound(made);
            outcome = self.attempt(group);
            if matches!(outcome, Err(Fault::Full(_))) {
                self.checkpoint.pause();
            }
        }
        if matches!(outcome, Err(Fault::Full(_))) && group.len() > 1 {
            let mut answers = Vec::with_capacity(group.len());
            for one in group.chunks(1) {
                let outcome = self.attempt(one);
                answers.extend(self.told(one.len(), outcome));
            }
            return answers;
        }
        self.told(group.len(), outcome)
    }

    /// The replies to a group. Stops the writer if the state of the disk is unknown.
    fn told(
        &mut self,
        batches: usize,
        outcome: Result<Vec<WriteResult>, Fault>,
    ) -> Vec<WriteResult> {
        let error = match outcome {
            Ok(answers) => return answers,
            Err(Fault::Refused(error)) => error,
            Err(Fault::Full(reason)) => CommitError::Full(reason),
            Err(Fault::Unavailable(reason)) => CommitError::Unavailable(reason),
            Err(Fault::Io(reason)) => {
                self.stopped = Some(reason.clone());
                CommitError::Unknown(reason)
            }
            Err(Fault::Corrupt(reason)) => {
                self.stopped = Some(reason.clone());
                CommitError::Stopped(reason)
            }
        };
        vec![Err(error); batches]
    }

    /// Uses one transaction, or a second one if a batch is refused in the first. If it fails,
    /// nothing of it remains.
    fn attempt(&mut self, group: &[WriteRequest]) -> Result<Vec<WriteResult>, Fault> {
        if let Some(reason) = &self.stopped {
            return Ok(vec![Err(CommitError::Stopped(reason.clone())); group.len()]);
        }
        match self.whole_transaction(group, Undo::Group) {
            Err(Fault::Refused(_)) => self.whole_transaction(group, Undo::Batch),
            outcome => outcome,
        }
    }

    fn whole_transaction(
        &mut self,
        group: &[WriteRequest],
        undo: Undo,
    ) -> Result<Vec<WriteResult>, Fault> {
        let outcome = self.transaction(group, undo);
        match &outcome {
            Ok(_) => {
                self.epochs.settle();
                self.committed_log_row = self.log_row;
                self.checkpoint.wrote_large(group.iter().map(large_bytes).sum());
                self.raise_mark();
            }
            Err(_) => self.roll_back()?,
        }
        outcome
    }

    fn transaction(
        &mut self,
        group: &[WriteRequest],
        undo: Undo,
    ) -> Result<Vec<WriteResult>, Fault> {
        self.execute("BEGIN IMMEDIATE")?;
        let mut answers = Vec::with_capacity(group.len());
        for work in group {
            answers.push(match undo {
                Undo::Group => self.apply(work)?,
                Undo::Batch => self.apply_or_undo(work)?,
            });
        }
        self.lower_mark()?;
        self.connection
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute([]))
            .map_err(fault::of_commit)?;
        self.upkeep.counter().committed(group.len());
        Ok(answers)
    }

    /// Some errors end the transaction by themselves; after the others it is rolled back here. If
    /// that fails, the writer cannot go on.
    fn roll_back(&mut self) -> Result<(), Fault> {
        self.epochs.revert();
        self.log_row = self.committed_log_row;
        if self.connection.is_autocommit() {
            return Ok(());
        }
        let rolled_back = self.connection.execute_batch("ROLLBACK");
        rolled_back.map_err(|error| Fault::Io(format!("cannot roll back: {error}")))
    }

    /// Undoes a refused batch by itself. Other errors may have ended the transaction, and the
    /// savepoint with it, so they undo the group.
    fn apply_or_undo(&mut self, work: &WriteRequest) -> Result<WriteResult, Fault> {
        let (epochs, log_row) = (self.epochs.clone(), self.log_row);
        self.execute("SAVEPOINT batch")?;
        let outcome = self.apply(work);
        if let Err(Fault::Refused(error)) = outcome {
            (self.epochs, self.log_row) = (epochs, log_row);
            self.execute("ROLLBACK TO batch")?;
            self.execute("RELEASE batch")?;
            return Ok(Err(error));
        }
        let answer = outcome?;
        self.execute("RELEASE batch")?;
        Ok(answer)
    }

    fn apply(&mut self, work: &WriteRequest) -> Result<WriteResult, Fault> {
        match work {
            WriteRequest::Registry(row) => Ok(Ok(tables::registry::put(&self.connection, row)?)),
            WriteRequest::Batch(batch) => {
                if let Err(stale) = self.epochs.check(batch) {
                    return Ok(Err(stale));
                }
                for write in &batch.writes {
                    self.write(batch.shard, write)?;
                }
                Ok(Ok(true))
            }
        }
    }

    fn write(&mut self, shard: ShardId, write: &Write) -> Result<(), Fault> {
        if let Write::Claim { epoch, .. } = write {
            self.epochs.raise(shard, *epoch).map_err(Fault::Refused)?;
        }
        tables::write(&self.connection, shard, write)?;
        match write {
            Write::AppendLog(_) => {
                self.log_row = u64::try_from(self.connection.last_insert_rowid()).unwrap_or(0);
            }
            Write::DeleteRun(_) => self.log_row = tables::log::last(&self.connection)?,
            _ => {}
        }
        Ok(())
    }

    /// The mark must never exceed the rows in the log, or an intact store would be refused when it
    /// is opened. So it is lowered before a commit that removes rows, which fails if that is
    /// impossible, and raised after a commit.
    fn lower_mark(&mut self) -> Result<(), Fault> {
        match &mut self.mark {
            Some(mark) if self.log_row < mark.rows() => mark
                .lower(self.log_row)
                .map_err(|error| Fault::of_file("the mark beside the store", &error)),
            _ => Ok(()),
        }
    }

    /// A mark that lags behind detects less, and harms nothing.
    fn raise_mark(&mut self) {
        if let Some(mark) = &mut self.mark
            && let Err(error) = mark.note(self.log_row)
        {
            self.upkeep.failed(Chore::Mark, error);
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Fault> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
