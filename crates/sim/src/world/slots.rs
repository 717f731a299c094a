//! Machines of shards: the owner of each shard, and zombies that do not know yet that they are none.
//! Messages go in, outputs come out and are carried on.

use std::sync::Arc;

use abide_core::{
    call::{Dispatch, Worker as Taker},
    ids::{RunId, SessionId, ShardId},
};
use abide_shard::{
    message::{Message, Offer, Output, Work},
    queue::QueueMessage,
    shard::{Moment, Shard},
};

use super::{Caller, Event, World, workers::WorkerEvent};
use crate::{
    checks::{Check, Checked, Violation},
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
    trace::brief,
};

/// Names a machine; never used again.
pub(crate) type SlotId = u32;

/// A machine of a shard.
pub(crate) struct Slot {
    pub(super) shard: ShardId,
    pub(super) machine: Shard,
    /// When its next tick is planned.
    tick_at: Option<Micros>,
    /// A commit is on its way.
    committing: bool,
    /// Matches that it has neither dispatched nor given back.
    matches: Vec<(Offer, Taker)>,
}

impl World {
    /// Takes a shard into memory. A former owner that is still there becomes a zombie.
    pub(super) fn open(&mut self, shard: ShardId) -> Checked {
        self.reopening.remove(&shard);
        self.slots_made += 1;
        let id = self.slots_made;
        let owner = format!("node{id}");
        let limits = Arc::clone(&self.settings.limits);
        let machine = Shard::new(shard, owner, limits);
        let slot = Slot { shard, machine, tick_at: None, committing: false, matches: Vec::new() };
        self.slots.insert(id, slot);
        if let Some(former) = self.owners.insert(shard, id) {
            self.disown(former);
        }
        self.deliver(id, Message::Open)
    }

    /// The former owner learns some time later that it is none.
    fn disown(&mut self, former: SlotId) {
        let later = self.rng.below(4 * SECOND);
        self.plan_in(later, Event::Forget(former));
    }

    /// Plans to open a shard that nobody owns.
    pub(super) fn reopen(&mut self, shard: ShardId) {
        if self.reopening.insert(shard) {
            let later = self.rng.between(MILLIS, if self.calm { 50 * MILLIS } else { SECOND });
            self.plan_in(later, Event::Open(shard));
        }
    }

    /// Forgets a machine. Those who wait for its answers learn that it is gone.
    pub(super) fn drop_slot(&mut self, id: SlotId) -> Checked {
        let Some(slot) = self.slots.remove(&id) else { return Ok(()) };
        let shard = slot.shard;
        self.trace.note(None, || format!("machine {id} of shard {shard} is gone"));
        let lost: Vec<_> =
            self.tickets.iter().filter(|(_, (slot, _))| *slot == id).map(|(t, _)| *t).collect();
        for ticket in lost {
            if let Some((_, caller)) = self.tickets.remove(&ticket) {
                self.connection_broke(caller)?;
            }
        }
        for (offer, taker) in slot.matches {
            self.tell_queues(QueueMessage::Unmatched(offer, taker))?;
        }
        if self.owners.get(&shard) == Some(&id) {
            self.owners.remove(&shard);
            self.tell_queues(QueueMessage::ShardClosed(shard))?;
            self.reopen(shard);
        }
        Ok(())
    }

    fn connection_broke(&mut self, caller: Caller) -> Checked {
        match caller {
            Caller::Client(operation) => self.retry(operation),
            Caller::Worker(worker, session, call) => {
                self.worker_call_broke(worker, session, call);
                Ok(())
            }
        }
    }

    /// A message for whoever owns the shard. Nobody does: it is lost.
    pub(super) fn deliver_to_owner(&mut self, shard: ShardId, message: Message) -> Checked {
        match (self.owners.get(&shard), message) {
            (Some(owner), message) => self.deliver(*owner, message),
            (None, Message::Matched(offer, taker)) => {
                self.tell_queues(QueueMessage::Unmatched(offer, taker))
            }
            (None, _) => Ok(()),
        }
    }

    /// A tick, unless another one is planned by now.
    pub(super) fn tick(&mut self, id: SlotId, at: Micros) -> Checked {
        match self.slots.get_mut(&id) {
            Some(slot) if slot.tick_at == Some(at) => {
                slot.tick_at = None;
                self.deliver(id, Message::Tick)
            }
            _ => Ok(()),
        }
    }

    /// Looks at the clock soon, whatever the machine asked for: the clock jumped.
    pub(super) fn tick_soon(&mut self, id: SlotId) {
        let at = self.now + self.rng.below(SECOND);
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.tick_at = Some(at);
            self.schedule.plan(at, Event::Tick(id, at));
        }
    }

    /// A message reaches a machine; what it asks for is carried out.
    pub(super) fn deliver(&mut self, id: SlotId, message: Message) -> Checked {
        if let Some(message) = self.saboteur.incoming(&self.ledger, message) {
            self.handle(id, message)?;
        }
        for early in self.saboteur.take_early() {
            self.carry_out(id, early)?;
        }
        self.plan_tick(id);
        Ok(())
    }

    fn handle(&mut self, id: SlotId, message: Message) -> Checked {
        let clock = self.look_at_clock();
        let entropy = self.rng.entropy();
        let now = self.saboteur.clock(clock, matches!(message, Message::Tick));
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        self.counts.messages += 1;
        self.counts.inputs += u64::from(is_input(&message));
        let shard = slot.shard;
        self.trace.note(run_of(&message), || {
            format!("{:>12} shard {shard}#{id} <- {}", self.now, brief(&message))
        });
        match &message {
            Message::Matched(offer, taker) => slot.matches.push((offer.clone(), taker.clone())),
            Message::Committed(_) => slot.committing = false,
            _ => {}
        }
        slot.machine.handle(Moment { now, entropy }, message);
        while let Some(output) = self.slots.get_mut(&id).and_then(|slot| slot.machine.poll()) {
            for output in self.saboteur.outgoing(output) {
                self.carry_out(id, output)?;
            }
        }
        Ok(())
    }

    fn plan_tick(&mut self, id: SlotId) {
        let Some(wake_at) = self.slots.get(&id).and_then(|slot| slot.machine.wake_at()) else {
            return;
        };
        let mut at = self.when(wake_at).max(self.now + MILLIS);
        if self.saboteur.oversleeps() {
            at += 20 * SECOND;
        }
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if slot.tick_at.is_none_or(|planned| planned > at || planned <= self.now) {
            slot.tick_at = Some(at);
            self.schedule.plan(at, Event::Tick(id, at));
        }
    }

    /// Does what a machine asks for.
    fn carry_out(&mut self, id: SlotId, output: Output) -> Checked {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let shard = slot.shard;
        self.trace.note(run_of_output(&output), || {
            format!("{:>12} shard {shard}#{id} -> {}", self.now, brief(&output))
        });
        match output {
            Output::Fetch(ticket, fetch) => {
                self.read(id, shard, ticket, &fetch);
                Ok(())
            }
            Output::Commit(batch) => self.begin_commit(id, batch),
            Output::Reply(ticket, result) => {
                let slow = self.rng.chance(100);
                let usual = delay(&mut self.rng, 2 * MILLIS, slow && !self.calm);
                self.plan_in(usual, Event::Reply(ticket, Box::new(result)));
                Ok(())
            }
            Output::Offer(offer) => self.tell_queues(QueueMessage::Offer(offer)),
            Output::Dispatch(taker, dispatch) => {
                slot.matched(&taker.session, Work::of(&dispatch));
                self.dispatch(id, taker, dispatch)
            }
            Output::Unmatched(offer, taker) => {
                slot.matched(&taker.session, (offer.run, offer.work));
                self.tell_queues(QueueMessage::Unmatched(offer, taker))
            }
            Output::Deliver(target, envelope) => {
                self.send(target, Message::Deliver(envelope));
                Ok(())
            }
            Output::Answer(target, key, answer) => {
                self.send(target, Message::Answered(key, answer));
                Ok(())
            }
            Output::Confirm(target, key) => {
                self.send(target, Message::Confirmed(key));
                Ok(())
            }
            Output::Opened => {
                self.shard_opened(shard);
                Ok(())
            }
            // Offers of a zombie's successor are not its to take back.
            Output::Closed if self.owners.get(&shard) == Some(&id) => {
                self.tell_queues(QueueMessage::ShardClosed(shard))
            }
            Output::Closed => Ok(()),
            Output::Halted(reason) => {
                self.trace.note(None, || format!("shard {shard}#{id} halted: {reason}"));
                self.drop_slot(id)
            }
        }
    }

    /// Work leaves for a worker.
    fn dispatch(&mut self, id: SlotId, taker: Taker, dispatch: Box<Dispatch>) -> Checked {
        let shard = self.slots.get(&id).map(|slot| slot.shard);
        let owner = shard.and_then(|shard| self.owners.get(&shard)) == Some(&id);
        match &*dispatch {
            Dispatch::Workflow { token, given, last_event, .. } => {
                self.dispatches.task(&self.ledger, token, given, *last_event)?;
            }
            Dispatch::Activity { token, given, .. } => {
                self.dispatches.activity(&self.ledger, token, given, owner)?;
            }
            Dispatch::Query { .. } => {}
        }
        let Some((index, worker)) = self.worker_of(&taker.session) else {
            // The stream is gone: the machine is told, as a driver tells that cannot send.
            let message = Message::SessionLost(taker.session);
            self.plan_in(MILLIS, Event::ToSlot(id, message));
            return Ok(());
        };
        let session = worker.session_number;
        let slow = self.trouble(20);
        let later = delay(&mut self.rng, 3 * MILLIS, slow);
        self.plan_in(later, Event::Worker(index, session, WorkerEvent::Work(id, dispatch)));
        Ok(())
    }

    /// One commit at a time.
    pub(super) fn one_commit(&mut self, id: SlotId) -> Checked {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        if std::mem::replace(&mut slot.committing, true) {
            let what = format!("shard {} has two commits on their way", slot.shard);
            return Err(Violation::new(Check::OneCommit, what));
        }
        Ok(())
    }
}

impl Slot {
    /// Every match led to work for the worker, or gave its credit back.
    pub(super) fn no_match_is_left(&self) -> Checked {
        match self.matches.first() {
            Some((offer, taker)) => {
                let what =
                    format!("the match of {:?} with {} led nowhere", offer.work, taker.session);
                Err(Violation::of(Check::Liveness, offer.run, what))
            }
            None => Ok(()),
        }
    }

    /// A match led to something.
    fn matched(&mut self, session: &SessionId, work: (RunId, Work)) {
        let found = self.matches.iter().position(|(offer, taker)| {
            taker.session == *session && (offer.run, offer.work) == work
        });
        if let Some(index) = found {
            self.matches.swap_remove(index);
        }
    }
}

/// Something that happens to a shard, rather than an answer to what it asked.
const fn is_input(message: &Message) -> bool {
    match message {
        Message::Call(..)
        | Message::Matched(..)
        | Message::Refill(_)
        | Message::NewBuild(..)
        | Message::SessionLost(_)
        | Message::Deliver(_)
        | Message::Answered(..)
        | Message::Confirmed(_)
        | Message::SendAgain(_) => true,
        Message::Open
        | Message::Forget(_)
        | Message::Fetched(..)
        | Message::Committed(_)
        | Message::Tick => false,
    }
}

fn run_of(message: &Message) -> Option<RunId> {
    match message {
        Message::Matched(offer, _) => Some(offer.run),
        Message::Call(_, call) => call.place().1,
        Message::Deliver(envelope) => Some(envelope.key.run),
        Message::Answered(key, _) | Message::Confirmed(key) => Some(key.run),
        _ => None,
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
