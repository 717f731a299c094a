//! What nodes tell each other, and what comes of it at the queues and shards of either: a driver, as the
//! engine is one.

use std::collections::BTreeSet;

use abide_core::{
    call::{Dispatch, QueueKey, Worker as Taker},
    ids::{BuildId, SessionId, ShardId},
};
use abide_shard::{
    lease::LeaseMessage,
    message::{Message, Offer, Work},
    neighbours::{Lost, Spare},
    queue::{QueueMessage, QueueOutput},
};

use super::{
    World,
    nodes::{Node, NodeEvent, NodeId, name, number},
    slots::SlotId,
};
use crate::{checks::Checked, schedule::MILLIS, settings::delay, trace::brief};

/// What nodes tell each other.
#[derive(Clone, Debug)]
pub(crate) enum PeerMessage {
    /// For a shard of yours.
    ToShard(ShardId, Box<Message>),
    /// My workers have credit to lend.
    Spare { queue: QueueKey, build: Option<BuildId>, credits: usize },
    /// Work for the credit that you lent.
    Offer(Offer),
    /// There is no credit left for it.
    Declined(Offer),
    /// A worker of mine takes the work of your shard.
    Matched(Offer, Taker),
    /// The work has gone: your worker has its credit back.
    Unmatched(Offer, Taker),
    /// Work for a worker of yours.
    Dispatch(Taker, Box<Dispatch>),
    /// A worker is connected to me: whatever stream it had before has ended.
    SessionCame(SessionId),
    /// The stream of a worker that was mine has ended.
    SessionLost(SessionId),
    /// I have these shards in memory: what was sent to them is sent again, and your workers present
    /// their attempts.
    Opened(BTreeSet<ShardId>),
    /// There is something new in the nodes' rows.
    Look,
    /// Workers of a build that was not seen before serve a queue.
    NewBuild(QueueKey, BuildId),
}

impl World {
    /// Another node says something.
    pub(super) fn hear(&mut self, node: NodeId, from: NodeId, message: PeerMessage) -> Checked {
        let neighbours = &mut self.nodes[node].neighbours;
        match message {
            PeerMessage::ToShard(shard, message) => self.deliver_to_shard(node, shard, *message),
            PeerMessage::Spare { queue, build, credits } => {
                let spare = neighbours.lends(&name(from), Spare { queue, build, credits });
                self.lent(node, from, spare)
            }
            PeerMessage::Offer(offer) => self.lend(node, from, offer),
            PeerMessage::Declined(offer) => {
                neighbours.answered(&name(from), &offer);
                self.declined(node, from, offer)
            }
            PeerMessage::Matched(offer, taker) => self.hear_match(node, from, offer, taker),
            PeerMessage::Unmatched(offer, taker) => {
                let known = neighbours.settle(&name(from), offer.run, offer.work, &taker.session);
                match known && !self.saboteur.forgets_loan() {
                    true => self.tell_queues(node, QueueMessage::Unmatched(offer, taker)),
                    false => Ok(()),
                }
            }
            PeerMessage::Dispatch(taker, dispatch) => {
                self.take_dispatch(node, from, taker.session, dispatch);
                Ok(())
            }
            PeerMessage::SessionCame(session) => {
                let elsewhere = neighbours.came(session.clone(), &name(from));
                if !self.superseded(node, &session)? && elsewhere {
                    self.tell_shards(node, &Message::SessionLost(session));
                }
                Ok(())
            }
            PeerMessage::SessionLost(session) => {
                if neighbours.left(&session, &name(from)) {
                    self.tell_shards(node, &Message::SessionLost(session));
                }
                Ok(())
            }
            PeerMessage::Opened(shards) => {
                self.nodes[node].hear_opened(from, &shards, self.now);
                for shard in &shards {
                    self.ask_for_attempts(node, *shard);
                }
                self.tell_shards(node, &Message::SendAgain(shards));
                Ok(())
            }
            PeerMessage::NewBuild(queue, build) => {
                self.tell_shards(node, &Message::NewBuild(queue, build));
                Ok(())
            }
            PeerMessage::Look => self.lease(node, LeaseMessage::Look),
        }
    }

    /// A worker of another node takes work of a shard here. One that is connected to this node by now has
    /// left the other, which does not know it yet.
    fn hear_match(&mut self, node: NodeId, from: NodeId, offer: Offer, taker: Taker) -> Checked {
        let Node { neighbours, streams, .. } = &mut self.nodes[node];
        neighbours.answered(&name(from), &offer);
        if streams.contains_key(&taker.session) {
            self.say(node, from, PeerMessage::Unmatched(offer.clone(), taker));
            // The other node has credit left, of which it thinks that it is known here.
            return match self.nodes[node].shards.contains_key(&offer.shard) {
                true => self.tell_queues(node, QueueMessage::Offer(offer)),
                false => Ok(()),
            };
        }
        if neighbours.welcome(&taker.session, &name(from)) {
            self.tell_shards(node, &Message::SessionLost(taker.session.clone()));
        }
        self.deliver_to_shard(node, offer.shard, Message::Matched(offer, taker))
    }

    /// Another node has credit to lend.
    pub(super) fn lent(
        &mut self,
        node: NodeId,
        lender: NodeId,
        spare: impl IntoIterator<Item = Spare>,
    ) -> Checked {
        for Spare { queue, build, credits } in spare {
            let lent = QueueMessage::Lent { node: name(lender), queue, build, credits };
            self.tell_queues(node, lent)?;
        }
        Ok(())
    }

    /// Another node passes an offer on, and is told what came of it.
    fn lend(&mut self, node: NodeId, from: NodeId, offer: Offer) -> Checked {
        for output in self.ask_queues(node, QueueMessage::Borrow(offer)) {
            match output {
                QueueOutput::Match(offer, taker) => self.tell_match(node, from, offer, taker)?,
                QueueOutput::Declined(offer) => {
                    self.say(node, from, PeerMessage::Declined(offer));
                }
                other => self.pass_on(node, other)?,
            }
        }
        Ok(())
    }

    /// Tells another node that a worker here takes work of its shard.
    fn tell_match(&mut self, node: NodeId, to: NodeId, offer: Offer, taker: Taker) -> Checked {
        self.nodes[node].neighbours.lent(&name(to), offer.clone(), taker.clone());
        let told = self.say(node, to, PeerMessage::Matched(offer.clone(), taker.clone()));
        let neighbours = &mut self.nodes[node].neighbours;
        if !told && neighbours.settle(&name(to), offer.run, offer.work, &taker.session) {
            return self.tell_queues(node, QueueMessage::Unmatched(offer, taker));
        }
        Ok(())
    }

    /// Nobody at the other node takes the work, which has not moved meanwhile.
    fn declined(&mut self, node: NodeId, by: NodeId, offer: Offer) -> Checked {
        match self.nodes[node].shards.contains_key(&offer.shard) {
            true => self.tell_queues(node, QueueMessage::Declined { node: name(by), offer }),
            false => Ok(()),
        }
    }

    /// A node sends work for a worker here. What was not waited for goes back, with all else that the
    /// worker has.
    fn take_dispatch(
        &mut self,
        node: NodeId,
        from: NodeId,
        session: SessionId,
        dispatch: Box<Dispatch>,
    ) {
        let (run, work) = Work::of(&dispatch);
        let neighbours = &mut self.nodes[node].neighbours;
        let expected = eager(&dispatch) || neighbours.settle(&name(from), run, work, &session);
        if expected && self.give(node, &session, dispatch) {
            return;
        }
        self.say(node, from, PeerMessage::SessionLost(session.clone()));
        if self.nodes[node].streams.contains_key(&session) {
            self.say(node, from, PeerMessage::SessionCame(session));
        }
        for shard in self.nodes[node].neighbours.shards_of(&name(from)) {
            self.ask_for_attempts(node, shard);
        }
    }

    /// A link to or from another node is gone: what was under way is given up.
    pub(super) fn lose_node(&mut self, node: NodeId, lost: NodeId) -> Checked {
        self.tell_queues(node, QueueMessage::NodeGone(name(lost)))?;
        let Lost { workers, offers, lent } = self.nodes[node].neighbours.lose(&name(lost));
        for session in workers {
            self.tell_shards(node, &Message::SessionLost(session));
        }
        for offer in offers {
            let here = self.nodes[node].shards.contains_key(&offer.shard);
            if here && !self.saboteur.drops_passed() {
                self.tell_queues(node, QueueMessage::Offer(offer))?;
            }
        }
        for (offer, taker) in lent {
            self.tell_queues(node, QueueMessage::Unmatched(offer, taker))?;
        }
        Ok(())
    }

    /// Says again what the other node must know, and what may be lost.
    pub(super) fn meet_again(&mut self, node: NodeId, other: NodeId) -> Checked {
        let sessions: Vec<_> = self.nodes[node].streams.keys().cloned().collect();
        for session in sessions {
            self.say(node, other, PeerMessage::SessionCame(session));
        }
        let shards = &self.nodes[node].shards;
        let in_memory =
            |slot: &SlotId| self.slots.get(slot).is_some_and(|slot| slot.machine.is_open());
        let open = shards.iter().filter(|(_, slot)| in_memory(slot)).map(|(shard, _)| *shard);
        let open: BTreeSet<_> = open.collect();
        if !open.is_empty() {
            self.say(node, other, PeerMessage::Opened(open));
        }
        let theirs = self.nodes[node].neighbours.shards_of(&name(other));
        self.tell_shards(node, &Message::SendAgain(theirs));
        self.tell_queues(node, QueueMessage::NodeCame)
    }

    /// Something happens to the queues of a node; what they ask for is carried out.
    pub(super) fn tell_queues(&mut self, node: NodeId, message: QueueMessage) -> Checked {
        let outputs = self.ask_queues(node, message);
        self.no_credit_is_made_up(node)?;
        for output in outputs {
            self.pass_on(node, output)?;
        }
        Ok(())
    }

    fn ask_queues(&mut self, node: NodeId, message: QueueMessage) -> Vec<QueueOutput> {
        self.trace.note(None, || format!("{:>12} queues {node} <- {}", self.now, brief(&message)));
        let queues = &mut self.nodes[node].queues;
        queues.handle(message);
        let outputs: Vec<_> = std::iter::from_fn(|| queues.poll()).collect();
        for output in &outputs {
            self.trace
                .note(None, || format!("{:>12} queues {node} -> {}", self.now, brief(output)));
        }
        outputs
    }

    fn pass_on(&mut self, node: NodeId, output: QueueOutput) -> Checked {
        match output {
            QueueOutput::Match(offer, taker) => self.matched(node, offer, taker),
            QueueOutput::Refill(queue) => self.tell_shards(node, &Message::Refill(queue)),
            QueueOutput::NewBuild(queue, build) => {
                self.broadcast(node, &PeerMessage::NewBuild(queue.clone(), build.clone()));
                self.tell_shards(node, &Message::NewBuild(queue, build));
            }
            QueueOutput::Pass(offer, to) => return self.pass(node, &to, offer),
            // Only what was borrowed is declined, and who borrowed it is told at once.
            QueueOutput::Declined(_) => {}
            QueueOutput::Spare { queue, build, credits } => {
                self.broadcast(node, &PeerMessage::Spare { queue, build, credits });
            }
        }
        Ok(())
    }

    /// Passes an offer on to another node, and keeps it until that has answered.
    fn pass(&mut self, node: NodeId, to: &str, offer: Offer) -> Checked {
        let Some(other) = number(to) else { return Ok(()) };
        self.nodes[node].neighbours.passed(to, offer.clone());
        if self.say(node, other, PeerMessage::Offer(offer.clone())) {
            return Ok(());
        }
        self.nodes[node].neighbours.answered(to, &offer);
        self.declined(node, other, offer)
    }

    /// A worker here takes work of a shard. Offers of a shard that has moved are void.
    fn matched(&mut self, node: NodeId, offer: Offer, taker: Taker) {
        let later = delay(&mut self.rng, 2 * MILLIS, false);
        let shard = offer.shard;
        let message = Message::Matched(offer, taker);
        self.plan_at_node(node, later, NodeEvent::ToShard(shard, message));
    }

    /// A match came to nothing: the worker has its credit back, wherever it is connected.
    pub(super) fn unmatched(&mut self, node: NodeId, offer: Offer, taker: Taker) -> Checked {
        match self.home_of(node, &taker.session) {
            Some(home) => {
                self.say(node, home, PeerMessage::Unmatched(offer, taker));
                Ok(())
            }
            None => self.tell_queues(node, QueueMessage::Unmatched(offer, taker)),
        }
    }

    /// Sends work to a worker, wherever it is connected; one that is gone loses it as if its stream had
    /// ended.
    pub(super) fn send_work(&mut self, node: NodeId, taker: Taker, dispatch: Box<Dispatch>) {
        let session = taker.session.clone();
        let sent = match self.home_of(node, &session) {
            Some(home) => self.say(node, home, PeerMessage::Dispatch(taker, dispatch)),
            None => self.give(node, &session, dispatch),
        };
        if !sent {
            self.tell_shards(node, &Message::SessionLost(session));
        }
    }

    fn home_of(&self, node: NodeId, session: &SessionId) -> Option<NodeId> {
        self.nodes[node].neighbours.home_of(session).and_then(|home| number(home))
    }

    /// Sends a message to a shard, here or at the node that serves it.
    pub(super) fn reach(&mut self, node: NodeId, shard: ShardId, message: Message) {
        if !self.leased() || self.nodes[node].shards.contains_key(&shard) {
            return self.send(node, shard, message);
        }
        if let Some(owner) = self.nodes[node].owner(shard) {
            self.say(node, owner, PeerMessage::ToShard(shard, Box::new(message)));
        }
    }
}

/// It came with the completion that scheduled it, and costs no credit.
pub(super) fn eager(dispatch: &Dispatch) -> bool {
    matches!(dispatch, Dispatch::Activity { eager: true, .. })
}
