//! The way of a call: to any node, from there to the node that serves the shard, and back.

use abide_core::{
    call::{Call, CallError, CallReply, Ticket},
    ids::ShardId,
};
use abide_shard::message::Message;

use super::{
    Event, World,
    links::Link,
    nodes::{NodeEvent, NodeId},
    slots::SlotId,
    workers,
};
use crate::{
    checks::Checked,
    schedule::{MILLIS, Micros},
    settings::delay,
};

/// Who waits for a reply.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    Client(usize),
    Worker(usize, u64, workers::Call),
}

/// A call that has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    caller: Caller,
    /// The node that the caller turned to.
    pub(super) entry: NodeId,
    /// The node that it was passed on to.
    pub(super) forwarded: Option<NodeId>,
    /// The machine that has it.
    pub(super) slot: Option<SlotId>,
}

impl World {
    /// Somebody calls at a node. The node is reached some time later.
    pub(super) fn call_at(
        &mut self,
        entry: NodeId,
        later: Micros,
        caller: Caller,
        call: Box<Call>,
    ) -> Ticket {
        self.tickets_made += 1;
        let ticket = self.tickets_made;
        let mut asked = Asked { caller, entry, forwarded: None, slot: None };
        let shard = call.place().0.slot().shard();
        match self.zombie(entry, shard) {
            Some(slot) => {
                asked.slot = Some(slot);
                self.plan_in(later, Event::ToSlot(slot, Message::Call(ticket, call)));
            }
            None => {
                let event = NodeEvent::Call { ticket, call, forwarded: false };
                self.plan_at_node(entry, later, event);
            }
        }
        self.tickets.insert(ticket, asked);
        ticket
    }

    /// A former owner that rarely gets a call in a world without leases.
    fn zombie(&mut self, node: NodeId, shard: ShardId) -> Option<SlotId> {
        if self.leased() {
            return None;
        }
        let owner = self.nodes[node].shards.get(&shard);
        let mut slots = self.slots.iter();
        let zombie = slots.find(|(id, slot)| slot.shard == shard && Some(*id) != owner);
        let zombie = zombie.map(|(id, _)| *id)?;
        self.trouble(150).then_some(zombie)
    }

    /// A call reaches a node, which serves the shard, or passes it on, or refuses it.
    pub(super) fn call_arrives(
        &mut self,
        node: NodeId,
        ticket: Ticket,
        call: Box<Call>,
        forwarded: bool,
    ) -> Checked {
        let shard = call.place().0.slot().shard();
        let served = self.nodes[node].shards.get(&shard).copied();
        let Some(asked) = self.tickets.get_mut(&ticket) else { return Ok(()) };
        if let Some(slot) = served.or_else(|| self.saboteur.retired(node, shard)) {
            if self.slots.get(&slot).is_none_or(|slot| slot.closing) {
                self.plan_reply(ticket, Err(CallError::NotServed));
                return Ok(());
            }
            asked.slot = Some(slot);
            return self.deliver(slot, Message::Call(ticket, call));
        }
        match self.nodes[node].owner(shard) {
            Some(owner) if !forwarded => {
                if !self.links.get(&(node, owner)).is_some_and(Link::ready) {
                    return self.break_calls_of(ticket);
                }
                asked.forwarded = Some(owner);
                let later = delay(&mut self.rng, 3 * MILLIS, false);
                let event = NodeEvent::Call { ticket, call, forwarded: true };
                self.plan_at_node(owner, later, event);
                Ok(())
            }
            _ if self.leased() => {
                self.plan_reply(ticket, Err(CallError::NotServed));
                Ok(())
            }
            _ => self.break_calls_of(ticket),
        }
    }

    /// An answer leaves for its caller.
    pub(super) fn plan_reply(&mut self, ticket: Ticket, result: Result<CallReply, CallError>) {
        let slow = self.rng.chance(100);
        let later = delay(&mut self.rng, 2 * MILLIS, slow && !self.calm);
        self.plan_in(later, Event::Reply(ticket, Box::new(result)));
    }

    /// An answer reaches its caller.
    pub(super) fn replied(
        &mut self,
        ticket: Ticket,
        result: Result<CallReply, CallError>,
    ) -> Checked {
        let queried = self.queried.remove(&ticket);
        let Some(asked) = self.tickets.remove(&ticket) else { return Ok(()) };
        match asked.caller {
            Caller::Client(operation) => self.answered(operation, result, queried),
            Caller::Worker(worker, session, call) => {
                self.worker_replied(worker, session, call, result)
            }
        }
    }

    /// These calls will not be answered: their callers notice.
    pub(super) fn break_calls(&mut self, broken: impl Fn(&Asked) -> bool) -> Checked {
        let broken: Vec<_> =
            self.tickets.iter().filter(|(_, asked)| broken(asked)).map(|(t, _)| *t).collect();
        broken.into_iter().try_for_each(|ticket| self.break_calls_of(ticket))
    }

    /// This call will not be answered.
    pub(super) fn break_calls_of(&mut self, ticket: Ticket) -> Checked {
        let Some(asked) = self.tickets.remove(&ticket) else { return Ok(()) };
        match asked.caller {
            Caller::Client(operation) => self.retry(operation),
            Caller::Worker(worker, session, call) => {
                self.worker_call_broke(worker, session, call);
                Ok(())
            }
        }
    }

    /// The caller waits no longer.
    pub(super) fn forget_call(&mut self, ticket: Ticket) {
        let Some(asked) = self.tickets.remove(&ticket) else { return };
        if let Some(slot) = asked.slot {
            self.plan_in(0, Event::ToSlot(slot, Message::Forget(ticket)));
        }
    }
}
