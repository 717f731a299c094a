//! What a store keeps: one type per table. The log is the only authority; every other row is an
//! index of it and can be rebuilt. Blobs are opaque to stores.

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

/// One run, for lists, as the current pointer and as the start key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Its workflow's id.
    pub workflow: WorkflowId,
    /// Counts the runs of the workflow id; the highest is the current one.
    pub ordinal: u64,
    /// The workflow's type.
    pub workflow_type: String,
    /// How the run stands.
    pub status: RunStatus,
    /// Idempotency key of the start that made the run.
    pub start_key: Option<String>,
    /// When the run started.
    pub started_at: Timestamp,
    /// When it closed.
    pub closed_at: Option<Timestamp>,
    /// Memo, search attributes and the like, opaque to stores.
    pub details: Bytes,
}

/// How a run stands, as lists show and filter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunStatus {
    /// Open.
    Running,
    /// Open; nothing new is scheduled until it is unpaused.
    Paused,
    /// Open; its code does not fit its history.
    ReplayBlocked,
    /// Closed with a result.
    Completed,
    /// Closed with a failure.
    Failed,
    /// Closed by its run or execution timeout.
    TimedOut,
    /// Closed by its own answer to a cancel request.
    Cancelled,
    /// Closed from outside.
    Terminated,
    /// Closed; the next run of the workflow goes on.
    ContinuedAsNew,
}

impl RunStatus {
    /// All statuses, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Paused,
        Self::ReplayBlocked,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Terminated,
        Self::ContinuedAsNew,
    ];

    /// The number that stands in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Running => 1,
            Self::Paused => 2,
            Self::ReplayBlocked => 3,
            Self::Completed => 4,
            Self::Failed => 5,
            Self::TimedOut => 6,
            Self::Cancelled => 7,
            Self::Terminated => 8,
            Self::ContinuedAsNew => 9,
        }
    }

    /// The status of a number, if it is known.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }

    /// The run may still change.
    pub const fn open(self) -> bool {
        matches!(self, Self::Running | Self::Paused | Self::ReplayBlocked)
    }
}

/// Names a task: a run has at most one workflow task, and one activity task per scheduling event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// The namespace of the queue.
    pub namespace: NamespaceId,
    /// The queue's name.
    pub queue: String,
    /// What kind of work.
    pub kind: TaskKind,
    /// The run.
    pub run: RunId,
    /// Number of the event that scheduled the activity; zero for a workflow task.
    pub scheduled: u64,
}

/// What kind of work a task row stands for. Query tasks are never rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskKind {
    /// Run the workflow's code.
    Workflow,
    /// Run an activity.
    Activity,
}

impl TaskKind {
    /// The number that stands in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Workflow => 1,
            Self::Activity => 2,
        }
    }

    /// The kind of a number, if it is known.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Workflow),
            2 => Some(Self::Activity),
            _ => None,
        }
    }
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
    /// No: it waits for its next attempt, for an unpause, or for other code.
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

/// One thing that a run waits for, as lists and inboxes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitRow {
    /// The run.
    pub run: RunId,
    /// The wait within the run; opaque to stores.
    pub wait: Bytes,
    /// The run's namespace.
    pub namespace: NamespaceId,
    /// The run's workflow.
    pub workflow: WorkflowId,
    /// What is waited for.
    pub kind: WaitKind,
    /// Name of the signal, key of the condition, id of the timer.
    pub name: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when; [`Timestamp::NEVER`] without a deadline.
    pub until: Timestamp,
    /// Subject, who may act, data: opaque to stores.
    pub details: Bytes,
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// Time to pass.
    Timer,
    /// A signal.
    Signal,
    /// A condition on the run's own state.
    Condition,
    /// The next attempt of an activity.
    ActivityRetry,
    /// The next attempt of a child.
    ChildRetry,
}

impl WaitKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Timer, Self::Signal, Self::Condition, Self::ActivityRetry, Self::ChildRetry];

    /// The number that stands in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Timer => 1,
            Self::Signal => 2,
            Self::Condition => 3,
            Self::ActivityRetry => 4,
            Self::ChildRetry => 5,
        }
    }

    /// The kind of a number, if it is known.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
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
