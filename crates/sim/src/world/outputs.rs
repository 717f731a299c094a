//! What machines of shards ask for is carried out.

use std::collections::BTreeSet;

use abide_core::{
    call::{CallError, Dispatch, Worker as Taker},
    ids::{RunId, SessionId},
};
use abide_shard::{
    message::{Message, Output, Work},
    queue::QueueMessage,
};

use super::{Event, World, nodes::NodeId, peers::PeerMessage, slots::SlotId, workers::WorkerEvent};
use crate::{checks::Checked, schedule::MILLIS, settings::delay, trace::brief};

impl World {
    /// Does what a machine asks for.
    pub(super) fn carry_out(&mut self, id: SlotId, output: Output) -> Checked {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let (shard, node) = (slot.shard, slot.node);
        self.trace.note(run_of_output(&output), || {
            format!("{:>12} shard {shard}#{id} -> {}", self.now, brief(&output))
        });
        match output {
            Output::Fetch(ticket, fetch) => {
                slot.under_way += 1;
                self.read(id, ticket, &fetch);
                Ok(())
            }
            Output::Commit(batch) => {
                slot.under_way += 1;
                self.begin_commit(id, batch)
            }
            Output::Reply(ticket, result) => {
                let trusted = self.nodes[node].trusted(self.now) || self.saboteur.trusts_always();
                let result = if trusted { result } else { Err(CallError::Reset) };
                self.plan_reply(ticket, result);
                Ok(())
            }
            Output::Offer(offer) => self.tell_queues(node, QueueMessage::Offer(offer)),
            Output::Dispatch(taker, dispatch) => {
                slot.matched(&taker.session, Work::of(&dispatch));
                self.dispatch(id, taker, dispatch)
            }
            Output::Unmatched(offer, taker) => {
                slot.matched(&taker.session, (offer.run, offer.work));
                self.unmatched(node, offer, taker)
            }
            Output::Deliver(target, envelope) => {
                self.reach(node, target, Message::Deliver(envelope));
                Ok(())
            }
            Output::Answer(target, key, answer) => {
                self.reach(node, target, Message::Answered(key, answer));
                Ok(())
            }
            Output::Confirm(target, key) => {
                self.reach(node, target, Message::Confirmed(key));
                Ok(())
            }
            Output::Opened => {
                self.ask_for_attempts(node, shard);
                let shards = BTreeSet::from([shard]);
                self.broadcast(node, &PeerMessage::Opened(shards.clone()));
                self.tell_shards(node, &Message::SendAgain(shards));
                Ok(())
            }
            // Offers of a zombie's successor are not its to take back.
            Output::Closed if self.nodes[node].shards.get(&shard) == Some(&id) => {
                self.tell_queues(node, QueueMessage::ShardClosed(shard))
            }
            Output::Closed => Ok(()),
            // Nobody reads the log of a world.
            Output::Notice(_) => Ok(()),
            Output::Halted(reason) => {
                self.trace.note(None, || format!("shard {shard}#{id} halted: {reason}"));
                self.drop_slot(id)
            }
        }
    }

    /// Work leaves for a worker.
    fn dispatch(&mut self, id: SlotId, taker: Taker, dispatch: Box<Dispatch>) -> Checked {
        let Some(slot) = self.slots.get(&id) else { return Ok(()) };
        let node = slot.node;
        let claim = self.ledger.claims.get(&slot.shard);
        let owner = claim.is_some_and(|claim| claim.writer == id);
        match &*dispatch {
            Dispatch::Workflow { token, given, last_event, .. } => {
                self.dispatches.task(&self.ledger, token, given, *last_event)?;
            }
            Dispatch::Activity { token, given, .. } => {
                self.dispatches.activity(&self.ledger, token, given, owner)?;
            }
            Dispatch::Query { token, last_event, .. } => {
                self.queried.insert(token.ticket, (token.run, *last_event));
            }
        }
        self.send_work(node, taker, dispatch);
        Ok(())
    }

    /// Gives work to a worker that has a stream at the node; `false` if it has none.
    pub(super) fn give(
        &mut self,
        node: NodeId,
        session: &SessionId,
        dispatch: Box<Dispatch>,
    ) -> bool {
        let Some((stream, worker)) = self.nodes[node].streams.get(session).copied() else {
            return false;
        };
        let Some(number) = self.workers.get(worker).map(|worker| worker.session_number) else {
            return false;
        };
        let slow = self.trouble(20);
        let later = delay(&mut self.rng, 3 * MILLIS, slow);
        let event = WorkerEvent::Work(stream, dispatch);
        self.plan_in(later, Event::Worker(worker, number, event));
        true
    }
}

fn run_of_output(output: &Output) -> Option<RunId> {
    match output {
        Output::Offer(offer) | Output::Unmatched(offer, _) => Some(offer.run),
        Output::Dispatch(_, dispatch) => Some(Work::of(dispatch).0),
        Output::Deliver(_, envelope) => Some(envelope.key.run),
        Output::Answer(_, key, _) | Output::Confirm(_, key) => Some(key.run),
        _ => None,
    }
}
