//! The connection to an engine: in the same process, or over the network. Both use the core's
//! types, so clients and workers run the same code on either. A call that is lost fails with
//! [`CallError::Unavailable`]; retrying is up to the caller.

use std::sync::Arc;

use abide_core::{
    dispatch::{QueueKey, Worker},
    operation::{AnyAnswer, AnyOperation, CallError, Operation},
    report::{Report, ReportAnswer},
};

pub use abide_core::dispatch::Given;

pub use crate::future::BoxFuture;

/// The future of an engine's answer.
pub type AnswerFuture<'a, T> = BoxFuture<'a, Result<T, CallError>>;

/// An engine, as clients and workers see it.
pub trait Transport: Send + Sync + 'static {
    /// Sends an operation and returns its answer. The function [`ask`] returns the answer in its
    /// own type.
    fn ask(&self, operation: AnyOperation) -> AnswerFuture<'_, AnyAnswer>;

    /// Connects a worker, with the amount of work that it takes at once from each queue. This
    /// grants no credit: the amounts let the engine refuse a queue that it cannot serve, as
    /// [`CallError::Invalid`]. A worker that reconnects names the same session and keeps its
    /// attempts.
    fn connect(
        &self,
        worker: Worker,
        takes: Vec<(QueueKey, usize)>,
    ) -> AnswerFuture<'_, Box<dyn Session>>;
}

/// Sends an operation once, and returns the answer in its own type.
pub async fn ask<O: Operation>(
    transport: &dyn Transport,
    operation: O,
) -> Result<O::Answer, CallError> {
    transport.ask(operation.into()).await.and_then(O::answer)
}

/// A connected worker. Dropping it ends the stream.
pub trait Session: Send {
    /// The sending half of the stream, which grants credit and sends reports.
    fn sender(&self) -> Arc<dyn SessionSender>;

    /// The next message; none when the stream has ended, and then the worker reconnects. Cancel
    /// safe: dropping the future loses no message.
    fn next(&mut self) -> BoxFuture<'_, Option<Given>>;
}

/// The sending half of a worker's stream.
pub trait SessionSender: Send + Sync {
    /// Grants credit for this much more work of a queue. Credit ends with the stream.
    fn credit(&self, queue: QueueKey, credits: usize);

    /// Withdraws all credit, because the worker shuts down: only work that is already in flight
    /// follows.
    fn withdraw(&self);

    /// Reports the result of dispatched work. The future resolves when the engine acknowledges it.
    fn report(&self, report: Report) -> AnswerFuture<'static, ReportAnswer>;
}
