//! Work and workers: offers matched locally or passed on to a node that has lent credit, matches
//! that come back, and dispatches to workers.

use std::sync::Arc;

use abide_core::{
    dispatch::{Dispatch, Worker},
    ids::SessionId,
};

use super::{Node, PeerMessage, neighbours::Borrowed};
use crate::{
    message::{Message, Offer, Work},
    queue::{QueueMessage, QueueOutput},
};

impl<S: Clone> Node<S> {
    /// Sends a message to the queues and carries out their outputs.
    pub(super) fn tell_queues(&mut self, message: QueueMessage) {
        self.queues.handle(message);
        self.pass_on_all();
    }

    fn pass_on_all(&mut self) {
        while let Some(output) = self.queues.poll() {
            self.pass_on(output);
        }
    }

    fn pass_on(&mut self, output: QueueOutput) {
        match output {
            QueueOutput::Match(offer, worker) => self.matched(offer, worker),
            QueueOutput::Refill(queue) => self.tell_shards(Message::Refill(Arc::new(queue))),
            QueueOutput::NewBuild(queue, build) => {
                self.broadcast(&PeerMessage::NewBuild(queue.clone(), build.clone()));
                self.tell_shards(Message::NewBuild(Arc::new(queue), build));
            }
            QueueOutput::Pass(offer, node) => self.pass(&node, offer),
            QueueOutput::Spare { queue, build, credits } => {
                self.broadcast(&PeerMessage::Spare { queue, build, credits });
            }
        }
    }

    /// A worker takes work of a shard. Offers of a shard that has moved away are void.
    fn matched(&mut self, offer: Offer, worker: Worker) {
        if self.served.contains(&offer.shard) {
            self.tell_shard(offer.shard, Message::Matched(offer, worker));
        } else {
            self.unmatched(offer, worker);
        }
    }

    /// A match failed: the worker gets its credit back from the node that made the match.
    pub(super) fn unmatched(&mut self, offer: Offer, worker: Worker) {
        let session = &worker.session;
        let made = self.neighbours.take_borrowed(offer.run, offer.work, session);
        let home = || self.neighbours.home_of(session).cloned();
        match made.map(|Borrowed { node, .. }| node).or_else(home) {
            // Without a link that node returns the credit itself, when it drops what was in flight.
            Some(node) => drop(self.tell_peer(&node, PeerMessage::Unmatched(offer, worker))),
            None => self.tell_queues(QueueMessage::Unmatched(offer, worker)),
        }
    }

    /// Sends work to a worker. One that cannot be reached loses it as if its stream had ended.
    pub(super) fn dispatch(&mut self, worker: Worker, dispatch: Box<Dispatch>) {
        let session = worker.session.clone();
        let home = self.neighbours.home_of(&session).cloned();
        let (run, work) = Work::of(&dispatch);
        // Eager work was not matched.
        let eager = matches!(*dispatch, Dispatch::Activity { eager: true, .. });
        if !eager
            && let Some(Borrowed { node, offer }) =
                self.neighbours.take_borrowed(run, work, &session)
            && home.as_ref() != Some(&node)
        {
            // The node where the worker seems to be has not charged it for this work.
            self.tell_peer(&node, PeerMessage::Unmatched(offer, worker.clone()));
        }
        let given = match home {
            Some(node) => self.tell_peer(&node, PeerMessage::Dispatch(worker, dispatch)),
            None => self.give(&session, *dispatch),
        };
        if !given {
            self.tell_shards(Message::SessionLost(session));
        }
    }

    /// Passes an offer on to another node, and remembers it until that node answers.
    fn pass(&mut self, node: &str, offer: Offer) {
        self.neighbours.passed(node, offer.clone());
        if !self.tell_peer(node, PeerMessage::Offer(offer.clone())) {
            self.declined(node, offer);
        }
    }

    /// The node has no worker for the offer. Its shard may have moved meanwhile.
    pub(super) fn declined(&mut self, node: &str, offer: Offer) {
        self.neighbours.answered(node, &offer);
        if self.served.contains(&offer.shard) {
            self.tell_queues(QueueMessage::Declined { node: node.to_owned(), offer });
        }
    }

    /// Requeues work that has no worker, unless its shard has moved meanwhile.
    pub(super) fn offer_again(&mut self, offer: Offer) {
        if self.served.contains(&offer.shard) {
            self.tell_queues(QueueMessage::Offer(offer));
        }
    }

    /// A worker of another node takes work of a shard of this node. If the worker is connected to
    /// this node by now, it has left the other, which has not noticed yet.
    pub(super) fn hear_match(&mut self, node: &str, offer: Offer, worker: Worker) {
        self.neighbours.answered(node, &offer);
        if self.streams.contains_key(&worker.session) {
            self.tell_peer(node, PeerMessage::Unmatched(offer.clone(), worker));
            // The other node has credit left and assumes that this node knows about it.
            return self.offer_again(offer);
        }
        if self.neighbours.welcome(&worker.session, node) {
            self.tell_shards(Message::SessionLost(worker.session.clone()));
        }
        self.neighbours.borrowed(node, offer.clone(), worker.session.clone());
        self.matched(offer, worker);
    }

    /// Another node passes an offer on. It gets an answer, no matter which node serves the shard by
    /// now.
    pub(super) fn lend(&mut self, node: &str, offer: Offer) {
        match self.queues.lend(&offer) {
            Some(worker) => self.tell_match(node, offer, worker),
            None => {
                // Without a link that node requeues the work itself.
                self.tell_peer(node, PeerMessage::Declined(offer));
            }
        }
        self.pass_on_all();
    }

    fn tell_match(&mut self, node: &str, offer: Offer, worker: Worker) {
        if self.tell_peer(node, PeerMessage::Matched(offer.clone(), worker.clone())) {
            self.neighbours.lent(node, offer, worker);
        } else {
            self.tell_queues(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// A node returns a worker whose match failed.
    pub(super) fn hear_unmatched(&mut self, node: &str, offer: Offer, worker: Worker) {
        if self.neighbours.settle(node, offer.run, offer.work, &worker.session) {
            self.tell_queues(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// A node sends work for a local worker. If the match was dropped with a link, or the worker is
    /// gone, the work is requeued together with everything else that the worker has of that node.
    pub(super) fn hear_dispatch(&mut self, node: &str, session: SessionId, dispatch: Dispatch) {
        let (run, work) = Work::of(&dispatch);
        // Eager work was not offered and needs no credit.
        let eager = matches!(dispatch, Dispatch::Activity { eager: true, .. });
        let expected = eager || self.neighbours.settle(node, run, work, &session);
        if expected && self.give(&session, dispatch) {
            return;
        }
        let shards = self.neighbours.shards_of(node);
        // `SessionCame` also means that the worker has lost what it had. With two messages (lost,
        // then came) the node would not know in between where to send work of other matches, and
        // their credit would be lost.
        let told = match self.streams.contains_key(&session) {
            true => PeerMessage::SessionCame(session.clone()),
            false => PeerMessage::SessionLost(session.clone()),
        };
        self.tell_peer(node, told);
        self.ask_one_for_attempts(&session, &shards);
    }
}
