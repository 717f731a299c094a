//! What workflow threads are told to do.

use std::sync::Arc;

use abide_core::{
    ids::{EventNumber, RunId, StartId},
    operation::QueryRequest,
    report::{QueryToken, TaskToken},
    run::GivenTask,
};
use bytes::Bytes;

use super::{
    history::{Log, Unread},
    local::LocalEnded,
    shared::TaskSlot,
};
use crate::transport::SessionSender;

/// What a thread is told.
pub(super) enum Order {
    /// Run a task.
    Task(Box<TaskOrder>),
    /// Answer a query.
    Query(Box<QueryOrder>),
    /// A local activity ended.
    LocalEnded(Box<LocalEnded>),
    /// A task that waits for local activities has waited long enough: by its run and its start.
    LocalPause(RunId, StartId),
    /// End.
    Close,
}

/// A workflow task.
pub(super) struct TaskOrder {
    /// Where the answer goes.
    pub(super) sender: Arc<dyn SessionSender>,
    /// Names it.
    pub(super) token: TaskToken,
    /// What is not in the log.
    pub(super) given: GivenTask,
    /// The last event in the log that the code must see.
    pub(super) last_event: EventNumber,
    /// The end of the log, or all of it.
    pub(super) log: TaskLog,
    /// Given back when the order is done with.
    pub(super) slot: TaskSlot,
}

/// What a task brings of its log.
pub(super) enum TaskLog {
    /// The rows since the last completed task.
    Recent(Vec<Bytes>),
    /// Everything, read because memory was no good.
    Whole(Result<Log, Unread>),
}

/// A query.
pub(super) struct QueryOrder {
    /// Where the answer goes.
    pub(super) sender: Arc<dyn SessionSender>,
    /// Names it.
    pub(super) token: QueryToken,
    /// The last event that the code must see.
    pub(super) last_event: EventNumber,
    /// What is asked.
    pub(super) query: QueryRequest,
    /// What was read of the log.
    pub(super) log: QueryLog,
    /// Given back when the order is done with.
    pub(super) slot: TaskSlot,
}

/// What was read for a query.
pub(super) enum QueryLog {
    /// Nothing yet: memory may be enough.
    Unread,
    /// What the machine in memory lacks.
    Rest(Result<Log, Unread>),
    /// Everything, because memory was no good.
    Whole(Result<Log, Unread>),
}
