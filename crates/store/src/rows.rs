//! The rows that a store keeps, one type per table. The log is the only authority; every other row
//! is an index of it and can be rebuilt. Blobs are opaque to stores.

pub use abide_core::{
    dispatch::WorkKind,
    list::{AttributeRow, RunParent, RunRow, RunStatus, WaitKind, WaitRow},
};
use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    search::Order,
    time::Timestamp,
};
use bytes::Bytes;

/// Ownership of one shard. The epoch decides who may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRow {
    /// Shard that the row describes.
    pub shard: ShardId,
    /// Grows with every claim. A batch with another epoch is refused as stale.
    pub epoch: u64,
    /// Node that owns the shard; empty if it was never claimed.
    pub owner: String,
}

/// One transition of a run: its numbered events and its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Run that the row belongs to.
    pub run: RunId,
    /// Number of the row in the run's log, from 1, without gaps.
    pub sequence: u64,
    /// Number of the first event in `events`, or of the next event if there is none.
    pub first_event: u64,
    /// Length-delimited entries of `History.events`.
    pub events: Bytes,
    /// Length-delimited notes; workers never see them.
    pub notes: Bytes,
}

impl LogRow {
    /// Size of events and notes in bytes.
    pub fn bytes(&self) -> usize {
        self.events.len() + self.notes.len()
    }
}

/// Limits of a page of a log. Rows differ much in size, and a whole page is held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimit {
    /// Maximum number of rows.
    pub rows: usize,
    /// The page ends with the row that reaches this many bytes.
    pub bytes: usize,
}

impl LogLimit {
    /// This many rows, of any size.
    pub const fn rows(rows: usize) -> Self {
        Self { rows, bytes: usize::MAX }
    }

    /// Takes rows until the page is full.
    pub fn page<E>(
        self,
        rows: impl IntoIterator<Item = Result<LogRow, E>>,
    ) -> Result<Vec<LogRow>, E> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for row in rows.into_iter().take(self.rows) {
            let row = row?;
            bytes += row.bytes();
            page.push(row);
            // The next row is not even decoded.
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

/// A folded log, kept as a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRow {
    /// Run whose log is folded.
    pub run: RunId,
    /// Sequence of the last log row that is folded in.
    pub sequence: u64,
    /// Versioned state; readers ignore an unknown version.
    pub state: Bytes,
}

/// What a run is folded from: a snapshot, and the log rows after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Latest snapshot, if there is one.
    pub snapshot: Option<SnapshotRow>,
    /// First page of the log after the snapshot, or of the whole log if there is no snapshot.
    pub log: Vec<LogRow>,
    /// The run's row was written by a version that stored neither its queue nor its parent.
    pub row_outdated: bool,
}

/// Identifies a task: a run has at most one workflow task, and one activity task per scheduling
/// event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// Namespace of the queue.
    pub namespace: NamespaceId,
    /// Name of the queue.
    pub queue: String,
    /// Whether workflow or activity workers take it.
    pub kind: WorkKind,
    /// Run that the task belongs to.
    pub run: RunId,
    /// Number of the event that scheduled the activity; zero for a workflow task.
    pub scheduled: u64,
}

/// Work for a worker. The batch that schedules it inserts the row, and the batch that closes it
/// deletes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    /// Identifies the task.
    pub key: TaskKey,
    /// Workflow of the run, so that the task can be routed without loading it.
    pub workflow: WorkflowId,
    /// Whether it can be handed out now.
    pub phase: TaskPhase,
}

/// Whether a task can be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskPhase {
    /// Can be handed out now.
    Ready,
    /// An attempt is in flight on a worker.
    Started,
    /// Waits for its next attempt, an unpause, a worker with other code, a completion from outside
    /// the worker, or the end of a task that is not written.
    Held,
}

impl TaskPhase {
    /// Number that is stored in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ready => 1,
            Self::Started => 2,
            Self::Held => 3,
        }
    }

    /// Phase with this number, if it is known.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Ready),
            2 => Some(Self::Started),
            3 => Some(Self::Held),
            _ => None,
        }
    }
}

/// Entry of the due index: something happens to `run` at `due`. Waits without a deadline have no
/// entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueRow {
    /// When the timer fires.
    pub due: Timestamp,
    /// Run whose timer fires.
    pub run: RunId,
    /// Timer within the run; opaque to stores.
    pub timer: Bytes,
    /// Workflow of the run, so that it can be routed without loading it.
    pub workflow: WorkflowId,
    /// Namespace of the workflow.
    pub namespace: NamespaceId,
}

/// Position of an entry in the due index, derived from due time, run and timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueKey {
    /// When the timer fires.
    pub due: Timestamp,
    /// Run whose timer fires.
    pub run: RunId,
    /// Timer within the run; opaque to stores.
    pub timer: Bytes,
}

impl DueRow {
    /// Position of the row in the index.
    pub fn key(&self) -> DueKey {
        DueKey { due: self.due, run: self.run, timer: self.timer.clone() }
    }
}

/// An effect of a run on another workflow, kept until the run has recorded its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Run that has the effect.
    pub run: RunId,
    /// Number of the effect within the source run.
    pub number: u64,
    /// Namespace of the source run, to find it without an index.
    pub namespace: NamespaceId,
    /// Workflow of the source run, to find it without an index.
    pub workflow: WorkflowId,
    /// Encoded target and effect; opaque to stores.
    pub effect: Bytes,
}

/// Result of an effect on its target, so that a repeated delivery returns the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Run that has the effect.
    pub source: RunId,
    /// Number of the effect within the source run.
    pub number: u64,
    /// When the effect was applied.
    pub at: Timestamp,
    /// Encoded result; opaque to stores.
    pub outcome: Bytes,
}

/// A row that belongs to no slot: a namespace, a search attribute, the lease of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryRow {
    /// Unique name, for example `namespace/default`.
    pub name: String,
    /// Grows by one with every change; writes compare it.
    pub version: u64,
    /// Encoded value; opaque to stores.
    pub value: Bytes,
}

/// Result of one search for runs that nothing would resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Stranded runs, in order of id.
    pub stranded: Vec<RunId>,
    /// Other open runs without a row in tasks and outbox, in order of id. Only their logs tell whether
    /// they lack a task.
    pub quiet: Vec<RunId>,
    /// Where the next search continues; `None` if all open runs were examined.
    pub next: Option<RunId>,
}

/// Limits of one read of a list over all shards: other reads get their turn after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimit {
    /// Maximum number of rows in the answer.
    pub rows: usize,
    /// Maximum number of rows examined, whether they pass the filter or not; at least one is.
    pub examined: usize,
    /// The answer ends with the row whose details reach this many bytes.
    pub bytes: usize,
}

impl ListLimit {
    /// This many rows of any size, however many have to be examined for them.
    pub const fn rows(rows: usize) -> Self {
        Self { rows, examined: usize::MAX, bytes: usize::MAX }
    }

    /// Takes rows until the answer is full. `end` is where the read stopped examining rows, if it did.
    pub fn part<E>(
        self,
        rows: impl IntoIterator<Item = Result<RunRow, E>>,
        order: Order,
        end: Option<RunPosition>,
    ) -> Result<ListPart<Vec<RunRow>>, E> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for row in rows.into_iter().take(self.rows) {
            let row = row?;
            bytes += row.details.len();
            found.push(row);
            // The next row is not even decoded.
            if bytes >= self.bytes {
                break;
            }
        }
        let full = found.last().filter(|_| self.filled_by(&found));
        let next = full.map(|row| order.position(row)).or(end);
        Ok(ListPart { found, next })
    }

    /// Whether an answer is full, so that more may follow.
    pub fn filled_by(self, found: &[RunRow]) -> bool {
        let bytes: usize = found.iter().map(|row| row.details.len()).sum();
        found.len() >= self.rows || bytes >= self.bytes
    }
}

/// Where a run stands in lists: the time by which they are ordered, and its id.
pub type RunPosition = (Timestamp, RunId);

/// What one read of a list found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPart<T> {
    /// The rows found, or how many.
    pub found: T,
    /// Position after which the next read continues; `None` if there is nothing left to examine.
    pub next: Option<RunPosition>,
}

/// A run among those of its workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunKey {
    /// Id of the run.
    pub run: RunId,
    /// Number of the run among the runs of its workflow id.
    pub ordinal: u64,
    /// Idempotency key of the start that made the run.
    pub start_key: Option<String>,
}

impl RunKey {
    /// The key of this row.
    pub fn of(row: &RunRow) -> Self {
        Self { run: row.run, ordinal: row.ordinal, start_key: row.start_key.clone() }
    }
}

/// Selects runs of one workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRuns {
    /// Namespace of the workflow.
    pub namespace: NamespaceId,
    /// Id of the workflow.
    pub workflow: WorkflowId,
    /// Only runs with an ordinal below this one.
    pub before: Option<u64>,
}
