//! The orders that workflow threads receive.

use std::{sync::Arc, time::Instant};

use abide_core::{
    event::Event,
    failure::Failure,
    ids::{EventNumber, RunId, StartId},
    operation::QueryRequest,
    report::{QueryToken, TaskToken},
    run::GivenTask,
};
use bytes::Bytes;

use super::{
    encoded::Unasked,
    history::{Log, UnreadLog},
    local::LocalEnded,
    shared::TaskSlot,
};
use crate::transport::SessionSender;

pub(super) enum ThreadMessage {
    Task(Box<TaskMessage>),
    Query(Box<QueryMessage>),
    LocalEnded(Box<LocalEnded>),
    /// The pause of a task that waits for local activities is over; names its run and start.
    LocalPause(RunId, StartId),
    Close,
}

pub(super) struct TaskMessage {
    /// The stream on which the task came and the answer is sent.
    pub(super) sender: Arc<dyn SessionSender>,
    pub(super) token: TaskToken,
    /// The part of the task that is not in the log.
    pub(super) given: GivenTask,
    /// The number of the last event that the code must see.
    pub(super) last_event: EventNumber,
    /// The end of the log, or all of it.
    pub(super) log: TaskLog,
    /// Updates of the task that code is not asked; they are rejected with it.
    pub(super) unasked: Unasked,
    /// Released when the order is dropped.
    pub(super) slot: TaskSlot,
    pub(super) arrived: Instant,
}

/// The part of the log that comes with a task.
pub(super) enum TaskLog {
    /// The rows since the last completed task.
    Recent(Vec<Bytes>),
    /// The same as events, whose payloads were encoded.
    Decoded(Result<Vec<Event>, UnreadLog>),
    /// The whole log, read because the machine in memory is missing or stale.
    Whole(Result<Log, UnreadLog>),
}

pub(super) struct QueryMessage {
    /// The stream on which the query came and the answer is sent.
    pub(super) sender: Arc<dyn SessionSender>,
    pub(super) token: QueryToken,
    /// The number of the last event that the code must see.
    pub(super) last_event: EventNumber,
    pub(super) query: QueryRequest,
    /// The part of the log that was read for the query.
    pub(super) log: QueryLog,
    /// Released when the order is dropped.
    pub(super) slot: TaskSlot,
}

/// The part of the log that was read for a query.
pub(super) enum QueryLog {
    /// Nothing yet: the machine in memory may be up to date.
    Unread,
    /// The query cannot be asked, for this reason.
    Unanswerable(Failure),
    /// The part that the machine in memory lacks.
    Rest(Result<Log, UnreadLog>),
    /// The whole log, because the machine in memory is missing or stale.
    Whole(Result<Log, UnreadLog>),
}
