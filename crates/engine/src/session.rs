//! A connected worker. Its stream ends when the session is dropped: tasks go back at once, attempts of
//! activities have a grace.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use abide_core::dispatch::{QueueKey, Worker};
use abide_shard::node::{Given, NodeInput};

use crate::{
    gauge::Work,
    node::{Node, Stream},
};

/// A connected worker.
pub struct Session {
    node: Arc<Node>,
    worker: Worker,
    stream: u64,
    given: Stream,
    /// What was given last is under way until the worker asks for more.
    last: Option<Work>,
}

impl Session {
    pub(crate) fn new(node: Arc<Node>, worker: Worker, (stream, given): (u64, Stream)) -> Self {
        Self { node, worker, stream, given, last: None }
    }

    /// The worker.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Says how much more work of a queue the worker takes.
    pub fn credit(&self, queue: QueueKey, credits: usize) {
        self.credits().give(queue, credits);
    }

    /// The way to give credit while something else waits for what comes next.
    pub fn credits(&self) -> Credits {
        let (node, worker) = (Arc::clone(&self.node), self.worker.clone());
        Credits { node, worker, stream: self.stream }
    }

    /// What comes next; nothing when the engine has stopped.
    pub async fn next(&mut self) -> Option<Given> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`next`](Self::next), for those who wait for other things too.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Given>> {
        self.last = None;
        let next = ready!(self.given.poll_recv(context));
        Poll::Ready(next.map(|(given, work)| {
            self.last = Some(work);
            given
        }))
    }
}

/// Says for a connected worker how much more work it takes.
pub struct Credits {
    node: Arc<Node>,
    worker: Worker,
    stream: u64,
}

impl Credits {
    /// So much more work of a queue.
    pub fn give(&self, queue: QueueKey, credits: usize) {
        let (stream, worker) = (self.stream, self.worker.clone());
        self.node.tell(NodeInput::Credit { stream, queue, worker, credits });
    }

    /// Takes back all that was given: nothing follows but what is on its way.
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
