//! A connected worker. Its stream ends when the session is dropped: tasks go back at once, attempts of
//! activities have a grace.

use std::sync::Arc;

use abide_shard::{
    message::{Dispatch, QueueKey, Worker},
    queue::QueueMessage,
};
use tokio::sync::mpsc;

use crate::node::Node;

/// A connected worker.
pub struct Session {
    node: Arc<Node>,
    worker: Worker,
    dispatches: mpsc::UnboundedReceiver<Dispatch>,
}

impl Session {
    pub(crate) fn new(
        node: Arc<Node>,
        worker: Worker,
        dispatches: mpsc::UnboundedReceiver<Dispatch>,
    ) -> Self {
        Self { node, worker, dispatches }
    }

    /// The worker.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Says how much more work of a queue the worker takes.
    pub fn credit(&self, queue: QueueKey, credits: usize) {
        let worker = self.worker.clone();
        self.node.queue(QueueMessage::Credit { queue, worker, credits });
    }

    /// The next piece of work; none when the engine has stopped.
    pub async fn next(&mut self) -> Option<Dispatch> {
        self.dispatches.recv().await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.node.disconnect(&self.worker.session);
    }
}
