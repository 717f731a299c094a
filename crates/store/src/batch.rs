//! What is written: a batch is a list of writes to one shard that are committed together or not at
//! all. A store interprets it and decides nothing.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use bytes::Bytes;

use crate::rows::{
    DueKey, DueRow, InboxRow, LogRow, OutboxRow, RunRow, SnapshotRow, TaskKey, TaskRow, WaitRow,
};

/// Writes to one shard, committed atomically and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The shard.
    pub shard: ShardId,
    /// The shard's epoch as the writer knows it; another one in the store refuses the batch.
    pub epoch: u64,
    /// What to write, in order.
    pub writes: Vec<Write>,
}

/// One write. Puts replace, deletes of what is not there do nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Takes the shard: sets its epoch, which must be higher than the batch's, and its owner.
    Claim {
        /// The new epoch.
        epoch: u64,
        /// The new owner.
        owner: String,
    },
    /// Adds a row to a run's log. A row of that sequence must not exist: the batch is refused.
    AppendLog(LogRow),
    /// Replaces the run's snapshot.
    PutSnapshot(SnapshotRow),
    /// Replaces the run's row.
    PutRun(RunRow),
    /// Removes a run: its row, its log and its snapshot.
    DeleteRun(RunId),
    /// Replaces a task.
    PutTask(TaskRow),
    /// Removes a task.
    DeleteTask(TaskKey),
    /// Ensures an entry of the due index.
    PutDue(DueRow),
    /// Removes an entry of the due index.
    DeleteDue(DueKey),
    /// Replaces a wait.
    PutWait(WaitRow),
    /// Removes a wait.
    DeleteWait {
        /// The run.
        run: RunId,
        /// The wait within the run.
        wait: Bytes,
    },
    /// Replaces an effect.
    PutOutbox(OutboxRow),
    /// Removes an effect.
    DeleteOutbox {
        /// The source run.
        run: RunId,
        /// Number of the effect.
        number: u64,
    },
    /// Replaces an answer.
    PutInbox(InboxRow),
    /// Removes an answer.
    DeleteInbox {
        /// The source run.
        source: RunId,
        /// Number of the effect.
        number: u64,
    },
    /// Removes all answers older than this.
    DeleteInboxBefore(Timestamp),
}
