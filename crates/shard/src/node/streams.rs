//! Workers connected to this node. A session has one stream, on the node to which it connected
//! last.

use std::collections::BTreeSet;

use abide_core::{
    dispatch::{Dispatch, Given},
    ids::{SessionId, ShardId},
};

use super::{Node, NodeOutput, PeerMessage};
use crate::{message::Message, queue::QueueMessage};

/// The open stream of a session.
#[derive(Debug)]
pub(super) struct Stream<S> {
    pub(super) number: u64,
    pub(super) handle: S,
}

impl<S: Clone> Node<S> {
    /// Opens a stream. It replaces an earlier stream of the session, here or elsewhere, whose end
    /// may not have been noticed yet.
    pub(super) fn stream_opened(&mut self, session: SessionId, stream: Stream<S>) {
        let replaced = self.streams.insert(session.clone(), stream);
        let moved = self.neighbours.came_home(&session);
        if moved || replaced.is_some() {
            self.lose(&session);
        }
        if let Some(Stream { handle, .. }) = replaced {
            self.emit(NodeOutput::EndStream(handle));
        }
        self.broadcast(&PeerMessage::SessionCame(session));
    }

    /// The driver ends a stream when the reports that it carried are answered or dropped. If this node
    /// has ended the stream itself, they may have presented attempts since: the session is lost again,
    /// unless its worker is back, here or elsewhere.
    pub(super) fn stream_ended(&mut self, session: &SessionId, stream: u64) {
        let nowhere =
            !self.streams.contains_key(session) && self.neighbours.home_of(session).is_none();
        if nowhere || self.is_open(session, stream) {
            self.streams.remove(session);
            self.lose(session);
            self.broadcast(&PeerMessage::SessionLost(session.clone()));
        }
    }

    /// The session connected to another node: ends its stream here. Returns whether there was one.
    pub(super) fn superseded(&mut self, session: &SessionId) -> bool {
        let Some(Stream { handle, .. }) = self.streams.remove(session) else { return false };
        self.lose(session);
        self.emit(NodeOutput::EndStream(handle));
        true
    }

    /// Sends the queues a change of a stream's credit, unless the stream has ended or was replaced.
    pub(super) fn tell_credit(&mut self, session: &SessionId, stream: u64, message: QueueMessage) {
        if self.is_open(session, stream) && !self.withdrawn {
            self.tell_queues(message);
        }
    }

    pub(super) fn withdraw_all(&mut self) {
        self.withdrawn = true;
        let sessions: Vec<_> = self.streams.keys().cloned().collect();
        for session in sessions {
            self.tell_queues(QueueMessage::Gone(session));
        }
    }

    pub(super) fn end_streams(&mut self) {
        for (session, Stream { handle, .. }) in std::mem::take(&mut self.streams) {
            self.lose(&session);
            self.emit(NodeOutput::EndStream(handle));
            self.broadcast(&PeerMessage::SessionLost(session));
        }
    }

    /// Delivers work to a local worker; returns `false` if it is not connected.
    pub(super) fn give(&mut self, session: &SessionId, dispatch: Dispatch) -> bool {
        let Some(handle) = self.streams.get(session).map(|stream| stream.handle.clone()) else {
            return false;
        };
        // Eager work was not matched.
        let matched = !matches!(dispatch, Dispatch::Activity { eager: true, .. });
        self.emit(NodeOutput::ToWorker(handle, Given::Work(dispatch)));
        if matched {
            self.tell_queues(QueueMessage::Delivered(session.clone()));
        }
        true
    }

    /// Asks all local workers to present their attempts of these shards.
    pub(super) fn ask_for_attempts(&mut self, shards: &BTreeSet<ShardId>) {
        for Stream { handle, .. } in self.streams.values() {
            self.outputs.extend(attempts_of(handle, shards));
        }
    }

    /// Asks one local worker to present its attempts of these shards.
    pub(super) fn ask_one_for_attempts(&mut self, session: &SessionId, shards: &BTreeSet<ShardId>) {
        if let Some(Stream { handle, .. }) = self.streams.get(session) {
            self.outputs.extend(attempts_of(handle, shards));
        }
    }

    fn is_open(&self, session: &SessionId, stream: u64) -> bool {
        self.streams.get(session).is_some_and(|open| open.number == stream)
    }

    /// The session's stream has ended: its credit and its work are lost.
    fn lose(&mut self, session: &SessionId) {
        self.neighbours.forget_lent(session);
        self.tell_queues(QueueMessage::Gone(session.clone()));
        self.tell_shards(Message::SessionLost(session.clone()));
    }
}

fn attempts_of<S: Clone>(
    handle: &S,
    shards: &BTreeSet<ShardId>,
) -> impl Iterator<Item = NodeOutput<S>> {
    let given = shards.iter().map(|shard| Given::PresentAttempts(*shard));
    given.map(|given| NodeOutput::ToWorker(handle.clone(), given))
}
