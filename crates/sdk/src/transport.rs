//! The way to an engine: in the same process, or over the network. Both speak the core's words, so
//! clients and workers are the same code on either. What is lost on the way is told as
//! [`CallError::Unavailable`]; repeating it is the business of whoever called.

use std::sync::Arc;

use abide_core::{
    call::{
        Call, CallError, CallReply, Dispatch, HistoryPage, HistoryRequest, QueueKey, RunTarget,
        Worker,
    },
    ids::ShardId,
    list::{RunFilter, RunRow, WaitFilter, WaitRow},
    node::NodeListing,
    run::Description,
};

pub use crate::future::BoxFuture;

/// What comes of asking an engine.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, CallError>>;

/// An engine, as clients and workers see it.
pub trait Transport: Send + Sync + 'static {
    /// Makes a call and waits for its answer.
    fn call(&self, call: Call) -> Answer<'_, CallReply>;

    /// Shows a run as it is.
    fn describe(&self, target: RunTarget) -> Answer<'_, Description>;

    /// Reads a part of a run's history, as bytes of whole log rows.
    fn history(&self, request: HistoryRequest) -> Answer<'_, HistoryPage>;

    /// Lists runs, newest first.
    fn runs(&self, filter: RunFilter, limit: usize) -> Answer<'_, Vec<RunRow>>;

    /// Counts runs.
    fn count_runs(&self, filter: RunFilter) -> Answer<'_, u64>;

    /// Lists what runs wait for, by the end of the wait.
    fn waits(&self, filter: WaitFilter, limit: usize) -> Answer<'_, Vec<WaitRow>>;

    /// Lists the nodes that serve the runs.
    fn nodes(&self) -> Answer<'_, Vec<NodeListing>>;

    /// Connects a worker, which says how much it takes at once of which queues. This gives no credit:
    /// it is said so that a queue that cannot be served is refused here, as [`CallError::Invalid`]. A
    /// worker that comes back names the same session and keeps its attempts.
    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Answer<'_, Box<dyn Session>>;
}

/// A connected worker. To drop it is to end the stream.
pub trait Session: Send {
    /// The way back to the engine.
    fn sender(&self) -> Arc<dyn SessionSender>;

    /// What comes next; nothing when the stream has ended, and then the worker connects again. A
    /// call that is dropped loses nothing: the next one gives what it would have given.
    fn next(&mut self) -> BoxFuture<'_, Option<Given>>;
}

/// The way from a connected worker to the engine.
pub trait SessionSender: Send + Sync {
    /// Takes so much more work of a queue. Credit ends with the stream.
    fn credit(&self, queue: QueueKey, credits: usize);

    /// Takes all credit back, because the worker is about to leave: nothing follows but what is on its
    /// way.
    fn withdraw(&self);

    /// Answers for work that was given: `CompleteTask`, `FailTask`, `AnswerQuery`, `ResolveActivity`,
    /// `DetachAttempt`, `Heartbeat` or `PresentAttempt`. The future ends when the engine has acknowledged it.
    fn call(&self, call: Call) -> Answer<'static, CallReply>;
}

/// What a connected worker is given.
#[derive(Debug)]
pub enum Given {
    /// Work.
    Work(Dispatch),
    /// The shard was taken into memory anew and asks which attempts of its activities the worker
    /// still has. They are presented by `PresentAttempt`, within the session's grace.
    PresentAttempts(ShardId),
}
