//! What a store keeps: one type per table. The log is the only authority; every other row is an
//! index of it and can be rebuilt. Blobs are opaque to stores.

pub use abide_core::{
    call::WorkKind,
    list::{RunRow, RunStatus, WaitKind, WaitRow},
};
use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    time::Timestamp,
};
use bytes::Bytes;

/// One shard's ownership: who may write, told by the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// The shard.
    pub shard: ShardId,
    /// Grows with every claim. A batch with another epoch is refused as stale.
    pub epoch: u64,
    /// The node that holds the shard.
    pub owner: String,
}

/// One transition of a run: its numbered events and its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// The run.
    pub run: RunId,
    /// Number of the row in the run's log, from 1, without gaps.
    pub sequence: u64,
    /// Number of the first event in `events`, or of the next event if there is none.
    pub first_event: u64,
    /// Length-delimited entries of `History.events`.
    pub events: Bytes,
    /// Length-delimited notes, which workers never see.
    pub notes: Bytes,
}

impl LogRow {
    /// Bytes of what it holds.
    pub fn bytes(&self) -> usize {
        self.events.len() + self.notes.len()
    }
}

/// How much of a log a page holds. Rows differ much in size, and a page is in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimit {
    /// Rows at most.
    pub rows: usize,
    /// The page ends with the row by which it has so many bytes.
    pub bytes: usize,
}

impl LogLimit {
    /// So many rows, however large they are.
    pub const fn rows(rows: usize) -> Self {
        Self { rows, bytes: usize::MAX }
    }

    /// The page of the rows that follow each other.
    pub fn page<E>(
        self,
        rows: impl IntoIterator<Item = Result<LogRow, E>>,
    ) -> Result<Vec<LogRow>, E> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for row in rows.into_iter().take(self.rows) {
            let row = row?;
            bytes += row.bytes();
            page.push(row);
            // The next one is not even looked at.
            if bytes >= self.bytes {
                break;
            }
        }
        Ok(page)
    }

    /// Whether a page is full, so that more may follow.
    pub fn filled_by(self, page: &[LogRow]) -> bool {
        page.len() >= self.rows || page.iter().map(LogRow::bytes).sum::<usize>() >= self.bytes
    }
}

/// A folded log, as a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    /// The run.
    pub run: RunId,
    /// The last log row that is folded in.
    pub sequence: u64,
    /// Versioned state; an unknown version is ignored.
    pub state: Bytes,
}

/// Names a task: a run has at most one workflow task, and one activity task per scheduling event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// The namespace of the queue.
    pub namespace: NamespaceId,
    /// The queue's name.
    pub queue: String,
    /// What kind of work.
    pub kind: WorkKind,
    /// The run.
    pub run: RunId,
    /// Number of the event that scheduled the activity; zero for a workflow task.
    pub scheduled: u64,
}

/// Work for a worker, from the batch that schedules it to the batch that closes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Its name.
    pub key: TaskKey,
    /// The workflow, so that the task can be routed without its run.
    pub workflow: WorkflowId,
    /// Whether it can be handed out now.
    pub phase: TaskPhase,
}

/// Whether a task can be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskPhase {
    /// Yes.
    Ready,
    /// No: an attempt is with a worker.
    Started,
    /// No: it waits for its next attempt, for an unpause, for other code, for somebody outside to whom
    /// it was left, or for the end of a task that is not written.
    Held,
}

impl TaskPhase {
    /// The number that stands in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ready => 1,
            Self::Started => 2,
            Self::Held => 3,
        }
    }

    /// The phase of a number, if it is known.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Ready),
            2 => Some(Self::Started),
            3 => Some(Self::Held),
            _ => None,
        }
    }
}

/// An entry of the due index: something happens to `run` at `due`. Only finite due times have one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueRow {
    /// When.
    pub due: Timestamp,
    /// To which run.
    pub run: RunId,
    /// To which of its timers; opaque to stores.
    pub timer: Bytes,
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// In which namespace.
    pub namespace: NamespaceId,
}

/// The place of an entry in the due index, computable from run, timer and due time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueKey {
    /// When.
    pub due: Timestamp,
    /// To which run.
    pub run: RunId,
    /// To which of its timers.
    pub timer: Bytes,
}

impl DueRow {
    /// The row's place in the index.
    pub fn key(&self) -> DueKey {
        DueKey { due: self.due, run: self.run, timer: self.timer.clone() }
    }
}

/// An effect that a run has on another workflow, until its result is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// The source run.
    pub run: RunId,
    /// Number of the effect within the source run.
    pub number: u64,
    /// The source's namespace and workflow, to find the run without an index.
    pub namespace: NamespaceId,
    /// The source's workflow.
    pub workflow: WorkflowId,
    /// Target and effect; opaque to stores.
    pub effect: Bytes,
}

/// What an effect did to its target, so that a repeat gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// The source run.
    pub source: RunId,
    /// Number of the effect within the source run.
    pub number: u64,
    /// When it was applied.
    pub at: Timestamp,
    /// The answer; opaque to stores.
    pub outcome: Bytes,
}

/// A row that belongs to no slot: a namespace, a search attribute, a node's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryRow {
    /// Its name, for example `namespace/default`.
    pub name: String,
    /// Grows with every change; compared on write.
    pub version: u64,
    /// Opaque to stores.
    pub value: Bytes,
}

/// What one look for runs that nothing would resume came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The runs that were found, in order.
    pub stranded: Vec<RunRow>,
    /// The next look goes on after this run; none if all open runs were looked at.
    pub next: Option<RunId>,
}

/// Which runs of which workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRuns {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The workflow.
    pub workflow: WorkflowId,
    /// Only ordinals below this one.
    pub before: Option<u64>,
}
