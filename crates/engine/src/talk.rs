//! What nodes tell each other, carried out on either side.

use abide_core::ids::{RunId, ShardId};
use abide_shard::{
    message::{Message, Offer, Work},
    queue::{QueueMessage, QueueOutput},
};

use crate::{
    node::{Node, Post},
    peers::PeerMessage,
};

impl Node {
    /// Tells a shard something, here or at the node that serves it.
    pub(crate) fn reach(&self, shard: ShardId, message: PeerMessage) {
        let owner = self.cluster.as_ref().filter(|_| !self.serves(shard));
        match owner.map(|cluster| cluster.owner(shard)) {
            None => self.tell_shard(shard, message),
            Some(Some(node)) => self.send(&node, message),
            // Nobody serves it. What is lost is said again.
            Some(None) => {}
        }
    }

    pub(crate) fn send(&self, node: &str, message: PeerMessage) {
        if let Some(cluster) = &self.cluster {
            cluster.peers.send(node, message);
        }
    }

    pub(crate) fn broadcast(&self, message: &PeerMessage) {
        if let Some(cluster) = &self.cluster {
            cluster.broadcast(message);
        }
    }

    /// Another node says something.
    pub(crate) fn hear(&self, node: &str, message: PeerMessage) {
        match message {
            PeerMessage::Spare { queue, build, credits } => {
                let node = node.to_owned();
                self.queue(QueueMessage::Lent { node, queue, build, credits });
            }
            PeerMessage::Offer(offer) => self.lend(node, offer),
            PeerMessage::Declined(offer) => {
                self.answered(node, &offer);
                self.queue(QueueMessage::Declined { node: node.to_owned(), offer });
            }
            PeerMessage::Matched(offer, worker) => {
                if let Some(cluster) = &self.cluster {
                    cluster.welcome(worker.session.clone(), node);
                }
                self.answered(node, &offer);
                if self.serves(offer.shard) {
                    self.tell_shard(offer.shard, PeerMessage::Matched(offer, worker));
                } else {
                    self.send(node, PeerMessage::Unmatched(offer, worker));
                }
            }
            PeerMessage::Unmatched(offer, worker) => {
                self.settled(node, offer.run, offer.work);
                self.queue(QueueMessage::Unmatched(offer, worker));
            }
            PeerMessage::Dispatch(worker, dispatch) => {
                let (run, work) = Work::of(&dispatch);
                self.settled(node, run, work);
                if !self.give(&worker.session, *dispatch) {
                    self.send(node, PeerMessage::SessionLost(worker.session));
                }
            }
            PeerMessage::SessionLost(session) => {
                if let Some(cluster) = &self.cluster {
                    cluster.forget(&session);
                }
                self.post_all(&Message::SessionLost(session));
            }
            PeerMessage::PresentAttempts(shard) => self.ask_own_for_attempts(shard),
            PeerMessage::NewBuild(queue, build) => self.post_all(&Message::NewBuild(queue, build)),
            PeerMessage::Deliver(shard, _)
            | PeerMessage::Answered(shard, ..)
            | PeerMessage::Confirmed(shard, _) => self.tell_shard(shard, message),
        }
    }

    /// Another node passes an offer on, and is told what came of it, whoever serves the shard by now.
    fn lend(&self, node: &str, offer: Offer) {
        for output in self.ask_queues(QueueMessage::Borrow(offer)) {
            match output {
                QueueOutput::Match(offer, worker) => {
                    if let Some(cluster) = &self.cluster {
                        cluster.lent(node, offer.clone(), worker.clone());
                    }
                    self.send(node, PeerMessage::Matched(offer, worker));
                }
                QueueOutput::Declined(offer) => self.send(node, PeerMessage::Declined(offer)),
                other => self.pass_on(other),
            }
        }
    }

    /// Passes an offer on to another node, and keeps it until that has answered.
    pub(crate) fn pass(&self, node: &str, offer: Offer) {
        if let Some(cluster) = &self.cluster {
            cluster.passed(node, offer.clone());
            cluster.peers.send(node, PeerMessage::Offer(offer));
        }
    }

    fn settled(&self, node: &str, run: RunId, work: Work) {
        if let Some(cluster) = &self.cluster {
            cluster.settled(node, run, work);
        }
    }

    /// There is a way to another node, new or anew. What was said before may have been lost.
    pub(crate) fn reached_node(&self, node: &str) {
        let passed = self.cluster.as_ref().map(|cluster| {
            cluster.link(node, true);
            cluster.take_passed(node)
        });
        for offer in passed.unwrap_or_default() {
            self.queue(QueueMessage::Offer(offer));
        }
        self.queue(QueueMessage::NodeCame);
    }

    /// The way to another node is gone: what it was told of workers here it may not know.
    pub(crate) fn missed_node(&self, node: &str) {
        self.lost_node(node);
        let lent = self.cluster.as_ref().map(|cluster| {
            cluster.link(node, false);
            cluster.take_lent(node)
        });
        for (offer, worker) in lent.unwrap_or_default() {
            self.queue(QueueMessage::Unmatched(offer, worker));
        }
    }

    fn answered(&self, node: &str, offer: &Offer) {
        if let Some(cluster) = &self.cluster {
            cluster.answered(node, offer);
        }
    }

    /// Another node is gone, or says everything anew: what it lent is gone, and its workers are, until they come back.
    pub(crate) fn lost_node(&self, node: &str) {
        self.queue(QueueMessage::NodeGone(node.to_owned()));
        let Some(cluster) = &self.cluster else { return };
        let (workers, offers) = cluster.lost(node);
        for session in workers {
            self.post_all(&Message::SessionLost(session));
        }
        for offer in offers {
            self.queue(QueueMessage::Offer(offer));
        }
    }

    /// Tells a shard that is served here; what is meant for none is dropped.
    fn tell_shard(&self, shard: ShardId, message: PeerMessage) {
        let message = match message {
            PeerMessage::Deliver(_, envelope) => Message::Deliver(envelope),
            PeerMessage::Answered(_, key, answer) => Message::Answered(key, answer),
            PeerMessage::Confirmed(_, key) => Message::Confirmed(key),
            PeerMessage::Matched(offer, worker) => Message::Matched(offer, worker),
            PeerMessage::Spare { .. }
            | PeerMessage::Declined(_)
            | PeerMessage::Offer(_)
            | PeerMessage::Unmatched(..)
            | PeerMessage::Dispatch(..)
            | PeerMessage::SessionLost(_)
            | PeerMessage::PresentAttempts(_)
            | PeerMessage::NewBuild(..) => return,
        };
        self.post(shard, Post::Message(message));
    }
}
