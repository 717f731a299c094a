//! The way to an engine: in the same process, or over the network. Both speak the core's words, so
//! clients and workers are the same code on either. What is lost on the way is told as
//! [`CallError::Unavailable`]; repeating it is the business of whoever called.

use std::sync::Arc;

use abide_core::{
    dispatch::{Dispatch, QueueKey, Worker},
    ids::ShardId,
    operation::{AnyAnswer, AnyOperation, CallError, Operation},
    report::{Report, ReportAnswer},
};

pub use crate::future::BoxFuture;

/// What comes of asking an engine.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, CallError>>;

/// An engine, as clients and workers see it.
pub trait Transport: Send + Sync + 'static {
    /// Performs an operation. [`ask`] gives the answer in its type.
    fn ask(&self, operation: AnyOperation) -> Answer<'_, AnyAnswer>;

    /// Connects a worker, which says how much it takes at once of which queues. This gives no credit:
    /// it is said so that a queue that cannot be served is refused here, as [`CallError::Invalid`]. A
    /// worker that comes back names the same session and keeps its attempts.
    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> Answer<'_, Box<dyn Session>>;
}

/// Performs an operation, once, and gives the answer in its type.
pub async fn ask<O: Operation>(
    transport: &dyn Transport,
    operation: O,
) -> Result<O::Answer, CallError> {
    transport.ask(operation.into()).await.and_then(O::answer)
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

    /// Says what became of work that was given. The future ends when the engine has acknowledged it.
    fn report(&self, report: Report) -> Answer<'static, ReportAnswer>;
}

/// What a connected worker is given.
#[derive(Debug)]
pub enum Given {
    /// Work.
    Work(Dispatch),
    /// The shard was taken into memory anew and asks which attempts of its activities the worker
    /// still has. They are presented by [`Report::PresentAttempt`], within the session's grace.
    PresentAttempts(ShardId),
}
