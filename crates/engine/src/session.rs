//! The session of a connected worker. Its stream ends when the session is dropped: workflow tasks
//! are requeued at once, activity attempts after the session grace.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use abide_core::dispatch::{Given, QueueKey, Worker};
use abide_shard::node::NodeInput;

use crate::{gauge::InFlight, node::Node, outbox::Inbox};

/// A connected worker and the stream of its work.
pub struct Session {
    node: Arc<Node>,
    worker: Worker,
    stream: u64,
    given: Inbox,
    /// The last item counts as in flight until the worker asks for the next.
    last: Option<InFlight>,
}

impl Session {
    pub(crate) fn new(node: Arc<Node>, worker: Worker, (stream, given): (u64, Inbox)) -> Self {
        Self { node, worker, stream, given, last: None }
    }

    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Gives credit for more work of a queue.
    pub fn credit(&self, queue: QueueKey, credits: usize) {
        self.credits().give(queue, credits);
    }

    /// A handle to give credit while another task waits in [`Self::next`].
    pub fn credits(&self) -> Credits {
        let (node, worker) = (Arc::clone(&self.node), self.worker.clone());
        Credits { node, worker, stream: self.stream }
    }

    /// Waits for the next item; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Given> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Like [`next`](Self::next), for callers that poll other sources too.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Given>> {
        self.last = None;
        let next = ready!(self.given.poll_next(context));
        if self.given.resumes() {
            let (session, stream) = (self.worker.session.clone(), self.stream);
            self.node.tell(NodeInput::Resume { session, stream });
        }
        Poll::Ready(next.map(|(given, work)| {
            self.last = Some(work);
            given
        }))
    }
}

/// Gives credit on behalf of a connected worker.
pub struct Credits {
    node: Arc<Node>,
    worker: Worker,
    stream: u64,
}

impl Credits {
    /// Gives credit for this many more tasks of a queue.
    pub fn give(&self, queue: QueueKey, credits: usize) {
        let (stream, worker) = (self.stream, self.worker.clone());
        self.node.tell(NodeInput::Credit { stream, queue, worker, credits });
    }

    /// Withdraws all credit: only work in flight still arrives.
    pub fn withdraw(&self) {
        let (session, stream) = (self.worker.session.clone(), self.stream);
        self.node.tell(NodeInput::Withdraw { session, stream });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (session, stream) = (self.worker.session.clone(), self.stream);
        self.node.tell(NodeInput::StreamEnded { session, stream });
    }
}
