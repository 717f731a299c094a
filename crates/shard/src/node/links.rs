//! The links to and from other nodes. When a link is replaced, both ends drop what was in flight
//! and send again what the other must know.

use std::{sync::Arc, time::Duration};

use super::{
    Node, NodeOutput, PeerMessage,
    neighbours::{Lost, Spare},
};
use crate::{message::Message, queue::QueueMessage};

impl<S: Clone> Node<S> {
    /// Handles a message from another node.
    pub(super) fn received(&mut self, now: Duration, node: &str, message: PeerMessage) {
        match message {
            PeerMessage::Mail(shard, mail) => {
                // The sender repeats it when the shard is opened elsewhere.
                if self.served.contains(&shard) {
                    self.tell_shard(shard, mail.into());
                }
            }
            PeerMessage::Spare { queue, build, credits } => {
                let spare = self.neighbours.lends(node, Spare { queue, build, credits });
                self.borrow(node, spare);
            }
            PeerMessage::Offer(offer) => self.lend(node, offer),
            PeerMessage::Declined(offer) => self.declined(node, offer),
            PeerMessage::Matched(offer, worker) => self.hear_match(node, offer, worker),
            PeerMessage::Unmatched(offer, worker) => self.hear_unmatched(node, offer, worker),
            PeerMessage::Dispatch(worker, dispatch) => {
                self.hear_dispatch(node, worker.session, *dispatch);
            }
            PeerMessage::SessionCame(session) => {
                let elsewhere = self.neighbours.came(session.clone(), node);
                if !self.superseded(&session) && elsewhere {
                    self.tell_shards(Message::SessionLost(session));
                }
            }
            PeerMessage::SessionLost(session) => {
                // A worker that was forgotten with the link to its node may have presented attempts
                // since, through a link in the other direction.
                let elsewhere = self.neighbours.left(&session, node);
                if !elsewhere && !self.streams.contains_key(&session) {
                    self.tell_shards(Message::SessionLost(session));
                }
            }
            PeerMessage::Opened(shards) => {
                self.neighbours.opened(node, &shards, now);
                for shard in &shards {
                    self.moved(now, *shard);
                }
                self.ask_for_attempts(&shards);
                self.tell_shards(Message::SendAgain(shards));
            }
            PeerMessage::NewBuild(queue, build) => {
                self.tell_shards(Message::NewBuild(Arc::new(queue), build))
            }
            PeerMessage::Look => self.emit(NodeOutput::Look),
        }
    }

    /// A link to another node was opened or replaced. Credit that the node has already lent can be
    /// used.
    pub(super) fn linked(&mut self, node: &str) {
        let early = self.neighbours.linked(node);
        self.borrow(node, early);
        self.meet_again(node);
    }

    /// The link to another node is closed.
    pub(super) fn unlinked(&mut self, node: &str) {
        self.neighbours.unlinked(node);
        self.lost(node);
    }

    /// A link from another node was opened or replaced: its earlier messages may be lost.
    pub(super) fn called(&mut self, node: &str) {
        self.lost(node);
        self.meet_again(node);
    }

    /// A link to or from another node is closed: drops what was in flight. Workers of that node
    /// lose what they have of the shards of this node, unless they present it.
    pub(super) fn lost(&mut self, node: &str) {
        self.tell_queues(QueueMessage::NodeGone(node.to_owned()));
        let Lost { workers, offers, lent } = self.neighbours.lose(node);
        for session in workers {
            self.tell_shards(Message::SessionLost(session));
        }
        for offer in offers {
            self.offer_again(offer);
        }
        for (offer, worker) in lent {
            self.tell_queues(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// Another node has credit to lend.
    fn borrow(&mut self, node: &str, spare: impl IntoIterator<Item = Spare>) {
        for Spare { queue, build, credits } in spare {
            let node = node.to_owned();
            self.tell_queues(QueueMessage::Lent { node, queue, build, credits });
        }
    }

    /// Sends again what the other node must know and what may be lost. Whichever link is new, the
    /// other node has forgotten the workers of this node, and must know them before they present
    /// attempts.
    fn meet_again(&mut self, node: &str) {
        let sessions: Vec<_> = self.streams.keys().cloned().collect();
        for session in sessions {
            self.tell_peer(node, PeerMessage::SessionCame(session));
        }
        if !self.open.is_empty() {
            self.tell_peer(node, PeerMessage::Opened(self.open.clone()));
        }
        let theirs = self.neighbours.shards_of(node);
        if !theirs.is_empty() {
            self.tell_shards(Message::SendAgain(theirs));
        }
        self.tell_queues(QueueMessage::NodeCame);
    }
}
