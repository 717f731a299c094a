//! Work on its way to workers: the queues, who serves them, and what is handed out.

use bytes::Bytes;

use crate::{
    attempt::ActivityToken,
    ids::{BuildId, EventNumber, NamespaceId, SessionId, ShardId},
    operation::QueryRequest,
    payload::{self, map_size},
    report::{QueryToken, TaskToken},
    run::{ActivityGiven, GivenTask},
};

/// A queue of one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    pub namespace: NamespaceId,
    pub queue: String,
    /// What kind of work. Queries are workflow work.
    pub kind: WorkKind,
}

/// What kind of work a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Workflow and query tasks.
    Workflow,
    Activity,
}

impl WorkKind {
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

/// A worker that takes work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    pub session: SessionId,
    pub identity: String,
    pub build: Option<BuildId>,
}

/// What an engine sends to a connected worker.
#[derive(Clone, Debug)]
pub enum Given {
    /// A workflow task, a query or an attempt of an activity.
    Work(Dispatch),
    /// The shard was loaded into memory again: the worker presents the attempts of its runs that it
    /// still has, by [`Report::PresentAttempt`](crate::report::Report::PresentAttempt), within the
    /// session's grace.
    PresentAttempts(ShardId),
}

/// Work on its way to a worker.
#[derive(Clone, Debug)]
pub enum Dispatch {
    Workflow {
        token: TaskToken,
        /// What is not in the log.
        given: GivenTask,
        /// The last event in the log that the worker must have.
        last_event: EventNumber,
        /// The log rows since the completed task on which this one builds: all that is needed by a
        /// worker that has the run in memory so far, and by any worker if no task was completed yet.
        /// None if they are not at hand; then the worker asks for the history.
        recent: Option<Vec<Bytes>>,
    },
    Activity {
        token: ActivityToken,
        given: Box<ActivityGiven>,
        /// It was taken with the completion that scheduled it, and costs no credit of the queue.
        eager: bool,
    },
    /// A query task, on the state after the last completed task.
    Query {
        token: QueryToken,
        /// The last event that the worker must have.
        last_event: EventNumber,
        query: QueryRequest,
    },
}

impl Dispatch {
    /// Bytes of memory that it takes until it is sent, roughly.
    pub fn memory(&self) -> usize {
        match self {
            Self::Workflow { given, recent, .. } => {
                let recent = recent.as_deref().unwrap_or_default();
                given.memory() + recent.iter().map(Bytes::len).sum::<usize>()
            }
            Self::Activity { given, .. } => given.memory(),
            Self::Query { query, .. } => {
                size_of::<Self>() + (payload::size(&query.input) + map_size(&query.header)).memory()
            }
        }
    }
}
