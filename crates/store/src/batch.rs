//! What is written: a batch is a list of writes to one shard that commit together or not at all. A
//! store applies it and decides nothing.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use bytes::Bytes;

use crate::rows::{
    AttributeRow, DueKey, DueRow, InboxRow, LogRow, OutboxRow, RunRow, SnapshotRow, TaskKey,
    TaskRow, WaitRow,
};

/// Writes to one shard, committed atomically and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Shard that all writes belong to.
    pub shard: ShardId,
    /// Epoch of the shard as the writer knows it. If the store has another one, it refuses the
    /// batch.
    pub epoch: u64,
    /// Writes, applied in this order.
    pub writes: Vec<Write>,
}

/// One write. A put replaces the row; deleting a row that does not exist has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Claims the shard: sets its owner, and its epoch, which must be higher than the batch's.
    Claim {
        /// Epoch from this claim on.
        epoch: u64,
        /// Node that claims the shard.
        owner: String,
    },
    /// Appends a row to a run's log. If the log already has a row of that sequence, the batch is
    /// refused.
    AppendLog(LogRow),
    /// Inserts or replaces the run's snapshot.
    PutSnapshot(SnapshotRow),
    /// Inserts or replaces the run's row.
    PutRun(RunRow),
    /// Deletes a run: its row, its search attributes, its log and its snapshot.
    DeleteRun(RunId),
    /// Inserts or replaces a task.
    PutTask(TaskRow),
    /// Deletes the task with this key.
    DeleteTask(TaskKey),
    /// Inserts an entry of the due index, unless it exists.
    PutDue(DueRow),
    /// Deletes an entry of the due index.
    DeleteDue(DueKey),
    /// Inserts or replaces a wait.
    PutWait(WaitRow),
    /// Deletes the wait with this key.
    DeleteWait {
        /// Run that waits.
        run: RunId,
        /// Key of the wait within the run; opaque to stores.
        wait: Bytes,
    },
    /// Inserts an entry of the index of search attributes, unless it exists.
    PutAttribute(AttributeRow),
    /// Deletes an entry of the index of search attributes.
    DeleteAttribute {
        /// Run that has the attribute.
        run: RunId,
        /// Name of the attribute.
        name: String,
        /// Type and value.
        value: Bytes,
    },
    /// Inserts or replaces an effect on another workflow.
    PutOutbox(OutboxRow),
    /// Deletes an effect.
    DeleteOutbox {
        /// Run that has the effect.
        run: RunId,
        /// Number of the effect within that run.
        number: u64,
    },
    /// Inserts or replaces the result of an effect.
    PutInbox(InboxRow),
    /// Deletes the result of an effect.
    DeleteInbox {
        /// Run that has the effect.
        source: RunId,
        /// Number of the effect within that run.
        number: u64,
    },
    /// Deletes all results older than this.
    DeleteInboxBefore(Timestamp),
}

impl Batch {
    /// Approximate size in bytes: its blobs, plus a constant for each row.
    pub fn size(&self) -> usize {
        const ROW: usize = 200;
        let blobs = |write: &Write| match write {
            Write::AppendLog(row) => row.events.len() + row.notes.len(),
            Write::PutSnapshot(row) => row.state.len(),
            Write::PutRun(row) => row.details.len(),
            Write::PutWait(row) => row.details.len(),
            Write::PutOutbox(row) => row.effect.len(),
            Write::PutInbox(row) => row.outcome.len(),
            Write::PutAttribute(row) => row.name.len() + row.value.len(),
            Write::Claim { .. }
            | Write::DeleteRun(_)
            | Write::PutTask(_)
            | Write::DeleteTask(_)
            | Write::PutDue(_)
            | Write::DeleteDue(_)
            | Write::DeleteWait { .. }
            | Write::DeleteAttribute { .. }
            | Write::DeleteOutbox { .. }
            | Write::DeleteInbox { .. }
            | Write::DeleteInboxBefore(_) => 0,
        };
        self.writes.iter().map(|write| ROW + blobs(write)).sum()
    }
}
