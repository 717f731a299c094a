//! The streams of workers: how they begin and end, at the node and at the worker, which do not always agree.

use abide_core::ids::SessionId;
use abide_shard::{message::Message, queue::QueueMessage};

use super::{
    Event, World,
    nodes::{NodeEvent, NodeId},
    peers::PeerMessage,
    workers::WorkerEvent,
};
use crate::{
    checks::{Checked, Violation},
    schedule::{MILLIS, Micros, SECOND},
};

impl World {
    /// A worker's stream begins. One that its session had before, here or elsewhere, has ended by that.
    pub(super) fn stream_begins(
        &mut self,
        node: NodeId,
        session: SessionId,
        stream: u64,
        worker: usize,
    ) -> Checked {
        let begun = &mut self.nodes[node];
        let replaced = begun.streams.insert(session.clone(), (stream, worker)).is_some();
        if begun.neighbours.came_home(&session) || replaced {
            self.lose_session(node, &session)?;
        }
        self.broadcast(node, &PeerMessage::SessionCame(session));
        Ok(())
    }

    pub(super) fn stream_ends(&mut self, node: NodeId, session: SessionId) -> Checked {
        self.nodes[node].streams.remove(&session);
        self.lose_session(node, &session)?;
        if !self.saboteur.keeps_session_lost() {
            self.broadcast(node, &PeerMessage::SessionLost(session));
        }
        Ok(())
    }

    /// The session is connected to another node: the stream that it had here has ended.
    pub(super) fn superseded(
        &mut self,
        node: NodeId,
        session: &SessionId,
    ) -> Result<bool, Violation> {
        let Some((stream, worker)) = self.nodes[node].streams.remove(session) else {
            return Ok(false);
        };
        self.end_stream(worker, session, stream);
        self.lose_session(node, session)?;
        Ok(true)
    }

    /// What a session had here on a stream that has ended is lost.
    fn lose_session(&mut self, node: NodeId, session: &SessionId) -> Checked {
        self.nodes[node].neighbours.forget_lent(session);
        self.tell_queues(node, QueueMessage::Gone(session.clone()))?;
        self.tell_shards(node, &Message::SessionLost(session.clone()));
        Ok(())
    }

    /// The stream breaks. The process goes on, and comes back with the same session.
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
        self.tell_node(worker.node, NodeEvent::Disconnected { session, stream })
    }

    /// The streams at a node end with its process, which tells nobody.
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
    pub(super) fn end_stream(&mut self, index: usize, session: &SessionId, stream: u64) {
        let worker = self.workers.get(index).filter(|worker| worker.session == *session);
        if let Some(number) = worker.map(|worker| worker.session_number) {
            let event = WorkerEvent::StreamDead(stream);
            self.plan_in(MILLIS, Event::Worker(index, number, event));
        }
    }

    /// Those at a node that stands still may notice it.
    pub(super) fn worry_about(&mut self, node: NodeId) {
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
