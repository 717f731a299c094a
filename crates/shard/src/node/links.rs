//! The links to and from other nodes. What is lost with a link is made good when one begins anew: both
//! ends give up what was in flight, and say again what the other must know.

use std::time::Duration;

use super::{
    Node, NodeOutput, PeerMessage,
    neighbours::{Lost, Spare},
};
use crate::{message::Message, queue::QueueMessage};

impl<S: Clone> Node<S> {
    /// Another node says something.
    pub(super) fn heard(&mut self, now: Duration, node: &str, message: PeerMessage) {
        match message {
            PeerMessage::Mail(shard, mail) => {
                // Whoever sent it sends it again when the shard is in memory elsewhere.
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
                if self.neighbours.left(&session, node) {
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
                self.tell_shards(Message::NewBuild(queue, build))
            }
            PeerMessage::Look => self.emit(NodeOutput::Look),
        }
    }

    /// There is a link to another node, new or anew. What it has lent already can be used.
    pub(super) fn linked(&mut self, node: &str) {
        let early = self.neighbours.linked(node);
        self.borrow(node, early);
        self.meet_again(node);
    }

    /// The link to another node is gone.
    pub(super) fn unlinked(&mut self, node: &str) {
        self.neighbours.unlinked(node);
        self.lost(node);
    }

    /// There is a link from another node, new or anew: what it said before may be lost.
    pub(super) fn called(&mut self, node: &str) {
        self.lost(node);
        self.meet_again(node);
    }

    /// A link to or from another node is gone: what was in flight is given up, its workers have lost
    /// what they have of the shards here, until they present it.
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

    /// Says again what the other node must know, and what may be lost. It has forgotten which workers are
    /// connected here, whichever link is new; who presents its attempts must be known before.
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
