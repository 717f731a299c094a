//! Streams of workers: how they start and end, at the node and at the worker, which do not always
//! agree.

use abide_core::{dispatch::Dispatch, ids::ShardId};
use abide_shard::node::NodeInput;

use super::{
    Event, World,
    nodes::{NodeEvent, NodeId},
    workers::WorkerEvent,
};
use crate::{
    checks::Checked,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// The stream of a worker, as its node knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Identifies it: messages of an older one are void.
    pub(crate) number: u64,
    /// The worker, and its session.
    pub(crate) worker: usize,
    pub(crate) session: u64,
}

impl World {
    /// Sends work to a worker.
    pub(super) fn give(&mut self, stream: Stream, dispatch: Dispatch) {
        let Some(dispatch) = self.unless_unread(stream, dispatch) else { return };
        let slow = self.trouble(20);
        let later = delay(&mut self.rng, 3 * MILLIS, slow);
        let event = WorkerEvent::Work(stream.number, Box::new(dispatch));
        self.plan_in(later, Event::Worker(stream.worker, stream.session, event));
    }

    /// A shard has a new owner, or its owner was reset: a worker presents its attempts there.
    pub(super) fn ask_for_attempts(&mut self, stream: Stream, shard: ShardId) {
        let grace = self.settings.limits.session_grace;
        let grace = Micros::try_from(grace.as_micros()).unwrap_or(SECOND);
        let most = if self.rng.chance(800) { grace / 2 } else { grace * 2 };
        let later = self.rng.between(5 * MILLIS, most.max(6 * MILLIS));
        let event = WorkerEvent::Present(shard);
        self.plan_in(later, Event::Worker(stream.worker, stream.session, event));
    }

    /// The stream breaks. The process continues, and reconnects with the same session.
    pub(super) fn lose_stream(&mut self, index: usize) -> Checked {
        let grace = self.settings.limits.session_grace;
        let grace = Micros::try_from(grace.as_micros()).unwrap_or(SECOND);
        let Some(worker) = self.workers.get_mut(index) else { return Ok(()) };
        worker.connected = false;
        let number = worker.session_number;
        let back = self.rng.between(MILLIS, grace * 2);
        self.plan_in(back, Event::Worker(index, number, WorkerEvent::Connect));
        self.tell_gone(index)
    }

    /// The server's side of a stream ends.
    pub(super) fn tell_gone(&mut self, index: usize) -> Checked {
        let Some(worker) = self.workers.get(index) else { return Ok(()) };
        let (session, stream) = (worker.session.clone(), worker.stream);
        let ended = NodeInput::StreamEnded { session, stream };
        self.tell_node(worker.node, NodeEvent::Input(Box::new(ended)))
    }

    /// The streams at a node end silently with its process.
    pub(super) fn cut_streams_of(&mut self, node: NodeId) {
        for index in 0..self.workers.len() {
            let back = self.rng.between(MILLIS, 2 * SECOND);
            let worker = self.workers.get_mut(index).filter(|worker| worker.node == node);
            if let Some(worker) = worker.filter(|worker| worker.connected) {
                worker.connected = false;
                let number = worker.session_number;
                self.plan_in(back, Event::Worker(index, number, WorkerEvent::Connect));
            }
        }
    }

    /// A node ends the stream of a worker, which notices.
    pub(super) fn end_stream(&mut self, stream: Stream) {
        let event = WorkerEvent::StreamDead(stream.number);
        self.plan_in(MILLIS, Event::Worker(stream.worker, stream.session, event));
    }

    /// Workers at a stalled node may notice it.
    pub(super) fn suspect_streams_of(&mut self, node: NodeId) {
        for index in 0..self.workers.len() {
            let later = self.rng.below(2 * SECOND);
            let notices = self.rng.chance(500);
            let Some(worker) = self.workers.get(index) else { continue };
            if worker.node == node && worker.connected && notices {
                let event = WorkerEvent::StreamDead(worker.stream);
                let number = worker.session_number;
                self.plan_in(later, Event::Worker(index, number, event));
            }
        }
    }
}
