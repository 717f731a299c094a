//! The path of a call: to any node, from there to the node that serves the shard, and back. Each
//! try has its own number, so that a late reply to an old one is ignored.

use abide_core::{
    ids::{EventNumber, RunId, ShardId},
    operation::{AnyAnswer, CallError, RunOperation, Ticket},
    report::{Report, ReportAnswer},
};
use abide_shard::{message::Message, node::NodeInput};

use super::{
    Event, World,
    nodes::{NodeEvent, NodeId},
    slots::SlotId,
    workers,
};
use crate::{
    checks::{Check, Checked, Violation},
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// How soon after the last fault a worker must have its reply: shards have moved by then.
const ANSWERED_WITHIN: Micros = 15 * SECOND;

#[derive(Clone, Debug)]
pub(crate) enum Asker {
    Client(usize),
    Worker(usize, u64, workers::Call),
}

/// What a shard is asked, by a client or by a worker.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Operation(Box<RunOperation>),
    Report(Box<Report>),
}

impl Request {
    fn shard(&self) -> ShardId {
        let workflow = match self {
            Self::Operation(operation) => operation.workflow(),
            Self::Report(report) => report.place().0,
        };
        workflow.slot().shard()
    }

    fn repeatable(&self) -> bool {
        match self {
            Self::Operation(operation) => operation.name().repeatable(),
            Self::Report(_) => false,
        }
    }

    fn message(self, ticket: Ticket) -> Message {
        match self {
            Self::Operation(operation) => Message::Ask(ticket, operation),
            Self::Report(report) => Message::Report(ticket, report),
        }
    }
}

/// What a shard told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Answer(AnyAnswer),
    Acknowledged(ReportAnswer),
}

impl Told {
    /// Only operations of clients are answered.
    fn answer(self) -> Result<AnyAnswer, Violation> {
        match self {
            Self::Answer(answer) => Ok(answer),
            Self::Acknowledged(told) => Err(misplaced(&told)),
        }
    }

    /// Only reports of workers are acknowledged.
    fn acknowledged(self) -> Result<ReportAnswer, Violation> {
        match self {
            Self::Acknowledged(answer) => Ok(answer),
            Self::Answer(told) => Err(misplaced(&told)),
        }
    }
}

fn misplaced(told: &impl std::fmt::Debug) -> Violation {
    Violation::new(Check::Answered, format!("somebody was told what is meant for others: {told:?}"))
}

/// A call that has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    caller: Asker,
    request: Request,
    /// The node that the caller turned to.
    pub(super) entry: NodeId,
    /// Whether the machine of that node knows of it.
    routed: bool,
    /// Whether it is not tried again.
    refused: bool,
    since: Micros,
    /// The current try, and the node where it is made.
    attempt: Ticket,
    pub(super) at: Option<NodeId>,
    /// The shard machine that has it.
    pub(super) slot: Option<SlotId>,
    /// When that machine got it.
    delivered_at: Option<Micros>,
    /// Whether a reply is in flight.
    replied: bool,
}

impl Asked {
    fn shard(&self) -> ShardId {
        self.request.shard()
    }

    /// What a client asks.
    pub(super) fn operation(&self) -> Option<&RunOperation> {
        match &self.request {
            Request::Operation(operation) => Some(operation),
            Request::Report(_) => None,
        }
    }

    pub(super) const fn delivered_at(&self) -> Option<Micros> {
        self.delivered_at
    }
}

impl World {
    /// Makes a call at a node, which it reaches some time later.
    pub(super) fn call_at(
        &mut self,
        entry: NodeId,
        later: Micros,
        caller: Asker,
        request: Request,
    ) -> Ticket {
        self.tickets_made += 1;
        let ticket = self.tickets_made;
        let shard = request.shard();
        let slot = self.zombie(entry, shard);
        match slot {
            Some(slot) => {
                self.plan_in(later, Event::ToSlot(slot, request.clone().message(ticket)));
            }
            None => self.plan_at_node(entry, later, NodeEvent::Call(ticket)),
        }
        let (attempt, at) = (ticket, Some(entry));
        let (routed, refused, since) = (false, false, self.now + later);
        let (delivered_at, replied) = (None, false);
        let asked = Asked {
            caller,
            request,
            entry,
            routed,
            refused,
            since,
            attempt,
            at,
            slot,
            delivered_at,
            replied,
        };
        self.tickets.insert(ticket, asked);
        ticket
    }

    /// A former owner, which rarely gets a call in a world without leases.
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

    /// The machine that takes calls for a shard at a node.
    fn serving(&self, node: NodeId, shard: ShardId) -> Option<SlotId> {
        let served = self.nodes[node].shards.get(&shard).copied();
        let retired = || self.saboteur.retired(node, shard);
        served.or_else(|| retired().filter(|slot| self.slots.contains_key(slot)))
    }

    /// The call of a try, if that is its current one.
    pub(super) fn asked(&self, attempt: Ticket) -> Option<&Asked> {
        let ticket = self.call_of(attempt);
        self.tickets.get(&ticket).filter(|asked| asked.attempt == attempt)
    }

    /// A call that has got no reply, not even one in flight.
    pub(super) fn waiting_call(&self, ticket: Ticket) -> Option<&Asked> {
        self.tickets.get(&ticket).filter(|asked| !asked.replied)
    }

    fn call_of(&self, attempt: Ticket) -> Ticket {
        self.tries.get(&attempt).copied().unwrap_or(attempt)
    }

    /// A call reaches the node that its caller contacted, which serves the shard or finds the node
    /// that does.
    pub(super) fn call_arrives(&mut self, node: NodeId, ticket: Ticket) -> Checked {
        let Some(asked) = self.asked(ticket) else { return Ok(()) };
        if self.asker_is_gone(asked) {
            return self.break_call(ticket);
        }
        if self.serving(node, asked.shard()).is_some() {
            return self.try_here(node, ticket);
        }
        match self.leased() {
            true => self.failed(ticket, CallError::NotServed),
            false => self.break_call(ticket),
        }
    }

    /// Whether the worker that asks is dead. A node reads nothing more from its stream, and other nodes
    /// learn together that it is gone and that it waits for nothing.
    fn asker_is_gone(&self, asked: &Asked) -> bool {
        match asked.caller {
            Asker::Worker(index, session, _) => {
                self.workers.get(index).is_none_or(|worker| worker.session_number != session)
            }
            Asker::Client(_) => false,
        }
    }

    /// A try reaches a node, which may or may not serve the shard.
    pub(super) fn try_here(&mut self, node: NodeId, attempt: Ticket) -> Checked {
        let Some(asked) = self.asked(attempt) else { return Ok(()) };
        if self.asker_is_gone(asked) {
            return self.break_call(self.call_of(attempt));
        }
        let (ticket, request) = (self.call_of(attempt), asked.request.clone());
        let Some(slot) = self.serving(node, asked.shard()) else {
            self.plan_reply(attempt, Err(CallError::NotServed));
            return Ok(());
        };
        if let Some(asked) = self.tickets.get_mut(&ticket) {
            asked.slot = Some(slot);
            asked.delivered_at = Some(self.now);
        }
        self.deliver(slot, request.message(attempt))
    }

    /// The machine of the entry node decides where to try a call.
    pub(super) fn try_at(&mut self, entry: NodeId, node: NodeId, ticket: Ticket) {
        let Some(attempt) = self.begin_try(ticket, Some(node)) else { return };
        if node != entry && !self.ready(entry, node) {
            return self.end_try(attempt, CallError::NotServed);
        }
        let later = if node == entry { 0 } else { delay(&mut self.rng, 3 * MILLIS, false) };
        self.plan_at_node(node, later, NodeEvent::Try(attempt));
    }

    /// The machine of the entry node gives up on a call.
    pub(super) fn refuse(&mut self, ticket: Ticket, error: CallError) {
        let Some(attempt) = self.begin_try(ticket, None) else { return };
        if let Some(asked) = self.tickets.get_mut(&ticket) {
            asked.refused = true;
        }
        self.end_try(attempt, error);
    }

    fn begin_try(&mut self, ticket: Ticket, at: Option<NodeId>) -> Option<Ticket> {
        let asked = self.tickets.get_mut(&ticket)?;
        self.tickets_made += 1;
        self.tries.remove(&asked.attempt);
        asked.attempt = self.tickets_made;
        asked.at = at;
        asked.slot = None;
        asked.replied = false;
        self.tries.insert(self.tickets_made, ticket);
        Some(self.tickets_made)
    }

    /// The outcome of a try is lost.
    pub(super) fn lose_try(&mut self, attempt: Ticket) {
        self.end_try(attempt, CallError::Unavailable("it is gone".into()));
    }

    fn end_try(&mut self, attempt: Ticket, error: CallError) {
        self.plan_in(0, Event::Reply(attempt, Box::new(Err(error))));
    }

    /// A reply is sent to its caller.
    pub(super) fn plan_reply(&mut self, attempt: Ticket, result: Result<Told, CallError>) {
        let ticket = self.call_of(attempt);
        if let Some(asked) = self.tickets.get_mut(&ticket) {
            asked.replied |= asked.attempt == attempt;
        }
        let slow = self.rng.chance(100);
        let later = delay(&mut self.rng, 2 * MILLIS, slow && !self.calm);
        self.plan_in(later, Event::Reply(attempt, Box::new(result)));
    }

    /// A reply reaches the node that the caller contacted. If the try failed, that node may try
    /// again.
    pub(super) fn replied(&mut self, attempt: Ticket, result: Result<Told, CallError>) -> Checked {
        let queried = self.queried.remove(&attempt);
        let Some(asked) = self.asked(attempt) else { return Ok(()) };
        let (ticket, refused) = (self.call_of(attempt), asked.refused);
        match result {
            Err(error) if self.leased() && !refused => self.failed(ticket, error),
            result => self.conclude(ticket, result, queried),
        }
    }

    fn failed(&mut self, ticket: Ticket, error: CallError) -> Checked {
        let Some(asked) = self.tickets.get_mut(&ticket) else { return Ok(()) };
        asked.at = None;
        asked.slot = None;
        let (shard, repeatable) = (asked.shard(), asked.request.repeatable());
        let input = match std::mem::replace(&mut asked.routed, true) {
            true => NodeInput::Failed { ticket, error },
            false => NodeInput::Route { ticket, shard, repeatable, error },
        };
        let entry = asked.entry;
        self.tell(entry, input)
    }

    /// The caller has its reply.
    fn conclude(
        &mut self,
        ticket: Ticket,
        result: Result<Told, CallError>,
        queried: Option<(RunId, EventNumber)>,
    ) -> Checked {
        if let Err(CallError::Unavailable(_)) = result {
            return self.break_call(ticket);
        }
        let Some(asked) = self.drop_call(ticket)? else { return Ok(()) };
        match asked.caller {
            Asker::Client(operation) => {
                let result = match result {
                    Ok(told) => Ok(told.answer()?),
                    Err(error) => Err(error),
                };
                self.answered(operation, result, queried)
            }
            Asker::Worker(worker, session, call) => {
                let result = match result {
                    Ok(told) => Ok(told.acknowledged()?),
                    Err(error) => Err(error),
                };
                self.worker_replied(worker, session, call, result)
            }
        }
    }

    /// The tries of these calls will get no reply: the nodes that their callers contacted notice,
    /// or else the callers themselves.
    pub(super) fn break_calls(&mut self, broken: impl Fn(&Asked) -> bool) -> Checked {
        let broken: Vec<_> =
            self.tickets.iter().filter(|(_, asked)| broken(asked)).map(|(t, _)| *t).collect();
        for ticket in broken {
            let Some(asked) = self.tickets.get(&ticket) else { continue };
            match self.leased() && self.nodes[asked.entry].up {
                true => self.lose_try(asked.attempt),
                false => self.break_call(ticket)?,
            }
        }
        Ok(())
    }

    /// This call will get no reply.
    pub(super) fn break_call(&mut self, ticket: Ticket) -> Checked {
        let Some(asked) = self.drop_call(ticket)? else { return Ok(()) };
        match asked.caller {
            Asker::Client(operation) => self.retry(operation),
            Asker::Worker(worker, session, call) => {
                self.worker_call_broke(worker, session, call);
                Ok(())
            }
        }
    }

    /// Without faults, no worker waits long for a reply.
    pub(super) fn workers_are_answered(&self) -> Checked {
        let waits = |asked: &&Asked| {
            matches!(asked.caller, Asker::Worker(..)) && asked.since + ANSWERED_WITHIN < self.now
        };
        match self.tickets.values().find(waits) {
            Some(asked) => {
                let what = format!("a worker waits for {:?} since {}", asked.request, asked.since);
                Err(Violation::new(Check::Answered, what))
            }
            None => Ok(()),
        }
    }

    /// The caller stops waiting.
    pub(super) fn forget_call(&mut self, ticket: Ticket) -> Checked {
        if let Some(Asked { slot: Some(slot), attempt, .. }) = self.drop_call(ticket)? {
            self.plan_in(0, Event::ToSlot(slot, Message::Forget(attempt)));
        }
        Ok(())
    }

    /// Drops a call that no caller waits for any more.
    fn drop_call(&mut self, ticket: Ticket) -> Result<Option<Asked>, Violation> {
        let Some(asked) = self.tickets.remove(&ticket) else { return Ok(None) };
        self.tries.remove(&asked.attempt);
        if asked.routed && self.nodes[asked.entry].up {
            self.tell(asked.entry, NodeInput::Abandon(ticket))?;
        }
        Ok(Some(asked))
    }
}
