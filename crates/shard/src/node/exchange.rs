//! Work and workers: offers that are matched at home or passed on to a node that has lent credit,
//! matches that come back, and work on its way to its worker.

use abide_core::{
    dispatch::{Dispatch, Worker},
    ids::SessionId,
};

use super::{Node, PeerMessage};
use crate::{
    message::{Message, Offer, Work},
    queue::{QueueMessage, QueueOutput},
};

impl<S: Clone> Node<S> {
    /// Tells the queues, and whoever is concerned what they answer.
    pub(super) fn tell_queues(&mut self, message: QueueMessage) {
        self.queues.handle(message);
        while let Some(output) = self.queues.poll() {
            self.pass_on(output);
        }
    }

    fn pass_on(&mut self, output: QueueOutput) {
        match output {
            QueueOutput::Match(offer, worker) => self.matched(offer, worker),
            QueueOutput::Refill(queue) => self.tell_shards(Message::Refill(queue)),
            QueueOutput::NewBuild(queue, build) => {
                self.broadcast(&PeerMessage::NewBuild(queue.clone(), build.clone()));
                self.tell_shards(Message::NewBuild(queue, build));
            }
            QueueOutput::Pass(offer, node) => self.pass(&node, offer),
            QueueOutput::Spare { queue, build, credits } => {
                self.broadcast(&PeerMessage::Spare { queue, build, credits });
            }
            // Only what was borrowed is declined, and who borrowed it is told there.
            QueueOutput::Declined(_) => {}
        }
    }

    /// A worker takes work of a shard. Offers of a shard that has moved are void.
    fn matched(&mut self, offer: Offer, worker: Worker) {
        if self.served.contains(&offer.shard) {
            self.tell_shard(offer.shard, Message::Matched(offer, worker));
        } else {
            self.unmatched(offer, worker);
        }
    }

    /// A match came to nothing: the worker has its credit back, wherever it is connected.
    pub(super) fn unmatched(&mut self, offer: Offer, worker: Worker) {
        match self.neighbours.home_of(&worker.session).cloned() {
            // If it cannot be told, it gives the credit back by itself at the end of the link.
            Some(node) => drop(self.tell_peer(&node, PeerMessage::Unmatched(offer, worker))),
            None => self.tell_queues(QueueMessage::Unmatched(offer, worker)),
        }
    }

    /// Sends work to a worker; one that is gone or cannot be reached loses it as if its stream had
    /// ended.
    pub(super) fn dispatch(&mut self, worker: Worker, dispatch: Box<Dispatch>) {
        let session = worker.session.clone();
        let given = match self.neighbours.home_of(&session).cloned() {
            Some(node) => self.tell_peer(&node, PeerMessage::Dispatch(worker, dispatch)),
            None => self.give(&session, *dispatch),
        };
        if !given {
            self.tell_shards(Message::SessionLost(session));
        }
    }

    /// Passes an offer on to another node, and keeps it until that has answered.
    fn pass(&mut self, node: &str, offer: Offer) {
        self.neighbours.passed(node, offer.clone());
        if !self.tell_peer(node, PeerMessage::Offer(offer.clone())) {
            self.declined(node, offer);
        }
    }

    /// Nobody at the node takes the work, which may have moved meanwhile.
    pub(super) fn declined(&mut self, node: &str, offer: Offer) {
        self.neighbours.answered(node, &offer);
        if self.served.contains(&offer.shard) {
            self.tell_queues(QueueMessage::Declined { node: node.to_owned(), offer });
        }
    }

    /// The work has nobody yet, and may have moved meanwhile.
    pub(super) fn offer_again(&mut self, offer: Offer) {
        if self.served.contains(&offer.shard) {
            self.tell_queues(QueueMessage::Offer(offer));
        }
    }

    /// A worker of another node takes work of a shard here. One that is connected to this node by now has
    /// left the other, which does not know it yet.
    pub(super) fn hear_match(&mut self, node: &str, offer: Offer, worker: Worker) {
        self.neighbours.answered(node, &offer);
        if self.streams.contains_key(&worker.session) {
            self.tell_peer(node, PeerMessage::Unmatched(offer.clone(), worker));
            // The other node has credit left, of which it thinks that it is known here.
            return self.offer_again(offer);
        }
        if self.neighbours.welcome(&worker.session, node) {
            self.tell_shards(Message::SessionLost(worker.session.clone()));
        }
        self.matched(offer, worker);
    }

    /// Another node passes an offer on, and is told what came of it, whoever serves the shard by now.
    pub(super) fn lend(&mut self, node: &str, offer: Offer) {
        self.queues.handle(QueueMessage::Borrow(offer));
        while let Some(output) = self.queues.poll() {
            match output {
                QueueOutput::Match(offer, worker) => self.tell_match(node, offer, worker),
                QueueOutput::Declined(offer) => {
                    // If it cannot be told, it offers the work again by itself.
                    self.tell_peer(node, PeerMessage::Declined(offer));
                }
                other => self.pass_on(other),
            }
        }
    }

    fn tell_match(&mut self, node: &str, offer: Offer, worker: Worker) {
        if self.tell_peer(node, PeerMessage::Matched(offer.clone(), worker.clone())) {
            self.neighbours.lent(node, offer, worker);
        } else {
            self.tell_queues(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// A node gives a worker back.
    pub(super) fn hear_unmatched(&mut self, node: &str, offer: Offer, worker: Worker) {
        if self.neighbours.settle(node, offer.run, offer.work, &worker.session) {
            self.tell_queues(QueueMessage::Unmatched(offer, worker));
        }
    }

    /// A node sends work for a worker here. Work that was not waited for, because the match was given
    /// up with a link, or for a worker that has gone, goes back with all else that the worker has.
    pub(super) fn hear_dispatch(&mut self, node: &str, session: SessionId, dispatch: Dispatch) {
        let (run, work) = Work::of(&dispatch);
        // Work that comes without having been offered needs no credit.
        let eager = matches!(dispatch, Dispatch::Activity { eager: true, .. });
        let expected = eager || self.neighbours.settle(node, run, work, &session);
        if expected && self.give(&session, dispatch) {
            return;
        }
        let shards = self.neighbours.shards_of(node);
        // That a worker has come means that it has lost what it had. In two words, the node would not know
        // in between to whom work of other matches goes, and their credit would be lost.
        let told = match self.streams.contains_key(&session) {
            true => PeerMessage::SessionCame(session.clone()),
            false => PeerMessage::SessionLost(session.clone()),
        };
        self.tell_peer(node, told);
        self.ask_one_for_attempts(&session, &shards);
    }
}
