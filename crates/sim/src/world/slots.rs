//! Shard machines: the owner of each shard, and zombies that do not know yet that they lost it.
//! Messages go in, outputs come out and are carried out.

use std::sync::Arc;

use abide_core::{
    dispatch::Worker as Taker,
    ids::{RunId, SessionId, ShardId},
    run::Phase,
};
use abide_shard::{
    lease::LeaseMessage,
    message::{Message, Offer, Work},
    node::NodeInput,
    shard::{Moment, Shard},
};

use super::{
    Event, World,
    clocks::Moments,
    nodes::{NodeEvent, NodeId},
};
use crate::{
    checks::{Check, Checked, Violation},
    schedule::{MILLIS, Micros, SECOND},
    trace::brief,
};

/// Identifies a machine; never reused.
pub(crate) type SlotId = u32;

pub(crate) struct Slot {
    pub(super) shard: ShardId,
    pub(super) node: NodeId,
    pub(super) machine: Shard,
    tick_at: Option<Micros>,
    /// Whether a commit is in flight.
    committing: bool,
    /// Number of reads in flight.
    reads: usize,
    /// Matches that it has neither dispatched nor returned.
    matches: Vec<(Offer, Taker)>,
    pub(super) moments: Moments,
    pub(super) opened_at: Micros,
}

impl World {
    /// Loads a shard into memory at a node.
    pub(super) fn open_at(&mut self, node: NodeId, shard: ShardId) -> Checked {
        self.slots_made += 1;
        let id = self.slots_made;
        self.trace.note(None, || format!("{:>12} node {node} opens {shard} as #{id}", self.now));
        // Without leases, one process may open a shard while it still has it.
        let opened = if self.leased() { 0 } else { id };
        let owner = format!("node{node}.{}.{opened}", self.nodes[node].process);
        let borders = self.saboteur.borders(&self.accepted).configured();
        let slot = Slot {
            shard,
            node,
            machine: Shard::new(shard, owner, Arc::clone(&self.settings.limits))
                .with_borders(Arc::new(borders)),
            tick_at: None,
            committing: false,
            reads: 0,
            matches: Vec::new(),
            moments: Moments::default(),
            opened_at: self.now,
        };
        self.slots.insert(id, slot);
        if let Some(former) = self.nodes[node].shards.insert(shard, id) {
            self.disown(former);
        }
        self.tell(node, NodeInput::Serve(shard))?;
        self.deliver(id, Message::Open)
    }

    /// The node stops serving a shard.
    pub(super) fn close_at(&mut self, node: NodeId, shard: ShardId) -> Checked {
        let Some(id) = self.nodes[node].shards.get(&shard).copied() else {
            self.tell_released(node, shard);
            return Ok(());
        };
        self.trace.note(None, || format!("{:>12} node {node} closes {shard}", self.now));
        if self.saboteur.forgets_commit() {
            self.forget_commit(id)?;
        }
        if self.slots.get(&id).is_some_and(|slot| !slot.committing)
            && self.saboteur.retires(node, shard, id)
        {
            return self.retire(node, shard);
        }
        self.deliver(id, Message::Close)
    }

    /// The machine keeps running, but the lease believes that it is gone.
    fn retire(&mut self, node: NodeId, shard: ShardId) -> Checked {
        self.nodes[node].shards.remove(&shard);
        self.tell_released(node, shard);
        self.tell(node, NodeInput::Released(shard))
    }

    /// Tells the lease that a shard is no longer served.
    fn tell_released(&mut self, node: NodeId, shard: ShardId) {
        let released = LeaseMessage::ShardReleased(shard);
        self.plan_at_node(node, 0, NodeEvent::Lease(released));
    }

    /// The commit in flight counts as done, and is not applied.
    fn forget_commit(&mut self, id: SlotId) -> Checked {
        let mut forgotten = false;
        self.schedule.retain(|event| {
            let own = matches!(event, Event::Commit(of, _) if *of == id);
            forgotten |= own;
            !own
        });
        if forgotten { self.deliver(id, Message::Committed(Ok(()))) } else { Ok(()) }
    }

    /// Loads a shard into memory in a world without leases. A former owner that still exists
    /// becomes a zombie.
    pub(super) fn open(&mut self, shard: ShardId) -> Checked {
        self.reopening.remove(&shard);
        self.open_at(0, shard)
    }

    /// The former owner learns some time later that it lost the shard.
    fn disown(&mut self, former: SlotId) {
        let later = self.rng.below(4 * SECOND);
        self.plan_in(later, Event::Forget(former));
    }

    /// Plans to open a shard without an owner, in a world without leases.
    pub(super) fn reopen(&mut self, shard: ShardId) {
        if self.reopening.insert(shard) {
            let later = self.rng.between(MILLIS, if self.calm { 50 * MILLIS } else { SECOND });
            self.plan_in(later, Event::Open(shard));
        }
    }

    /// Drops a machine that was lost, and reopens its shard.
    pub(super) fn drop_slot(&mut self, id: SlotId) -> Checked {
        let Some(slot) = self.slots.get(&id) else { return Ok(()) };
        let (node, shard) = (slot.node, slot.shard);
        let owner = self.nodes[node].shards.get(&shard) == Some(&id);
        self.end(id)?;
        if !owner {
            return Ok(());
        }
        match self.leased() {
            true => self.tell_released(node, shard),
            false => self.reopen(shard),
        }
        Ok(())
    }

    /// Drops a machine. Its callers learn that it is gone.
    fn end(&mut self, id: SlotId) -> Checked {
        let Some(slot) = self.slots.remove(&id) else { return Ok(()) };
        let (node, shard) = (slot.node, slot.shard);
        self.trace.note(None, || format!("machine {id} of shard {shard} is gone"));
        self.break_calls(|asked| asked.slot == Some(id))?;
        if self.leased() {
            slot.no_match_is_left()?;
        }
        for (offer, taker) in slot.matches {
            self.tell(node, NodeInput::Unmatched(offer, taker))?;
        }
        if self.nodes[node].shards.get(&shard) == Some(&id) {
            self.nodes[node].shards.remove(&shard);
            self.tell(node, NodeInput::Released(shard))?;
        }
        Ok(())
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

    /// Checks the clock soon, because the clock jumped.
    pub(super) fn tick_soon(&mut self, id: SlotId) {
        let at = self.now + self.rng.below(SECOND);
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.tick_at = Some(at);
            self.schedule.plan(at, Event::Tick(id, at));
        }
    }

    /// Delivers a message to a machine and carries out its outputs.
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
        let Some(node) = self.slots.get(&id).map(|slot| slot.node) else { return Ok(()) };
        let clock = self.look_at_clock(node);
        let entropy = self.rng.entropy();
        let now = self.saboteur.clock(clock, matches!(message, Message::Tick));
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let trusted = self.nodes[slot.node].trusted(self.now) || self.saboteur.trusts(&message);
        self.counts.messages += 1;
        self.counts.inputs += u64::from(is_input(&message));
        slot.moments.look(clock);
        let shard = slot.shard;
        self.trace.note(run_of(&message), || {
            format!("{:>12} shard {shard}#{id} <- {}", self.now, brief(&message))
        });
        match &message {
            Message::Matched(offer, taker) => slot.matches.push((offer.clone(), taker.clone())),
            Message::Committed(_) => slot.committing = false,
            Message::Fetched(..) => slot.reads = slot.reads.saturating_sub(1),
            _ => {}
        }
        slot.machine.handle(Moment { now, entropy, trusted }, message);
        while let Some(output) = self.slots.get_mut(&id).and_then(|slot| slot.machine.poll()) {
            for output in self.saboteur.outgoing(output) {
                self.carry_out(id, output)?;
            }
        }
        Ok(())
    }

    /// Whether the news that a session is lost is in flight to a machine.
    fn hears_of(&self, slot: &Slot, session: &SessionId) -> bool {
        self.schedule.any(|event| {
            matches!(event, Event::Node(node, _, NodeEvent::ToShard(shard, Message::SessionLost(lost)))
                if (*node, *shard, lost) == (slot.node, slot.shard, session))
        })
    }

    fn plan_tick(&mut self, id: SlotId) {
        let Some(slot) = self.slots.get(&id) else { return };
        let Some(wake_at) = slot.machine.wake_at() else { return };
        let mut at = self.when_at(slot.node, wake_at).max(self.now + MILLIS);
        if self.saboteur.oversleeps() {
            at += 20 * SECOND;
        }
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if slot.tick_at.is_none_or(|planned| planned > at || planned <= self.now) {
            slot.tick_at = Some(at);
            self.schedule.plan(at, Event::Tick(id, at));
        }
    }

    /// Some time after the end of a session, without faults of nodes or links, no machine holds a
    /// task for it, or an attempt that is not about to be lost, unless the machine is closing and gets
    /// no messages, or the work or the news of the end is still in flight to it.
    pub(super) fn session_is_over(&self, session: &SessionId, since: Micros) -> Checked {
        if !self.all_linked_since(since) {
            return Ok(());
        }
        for slot in self.slots.values().filter(|slot| slot.machine.is_open()) {
            let of_shard = self.ledger.stories.values().filter(|s| s.shard == slot.shard);
            for story in of_shard {
                let id = story.run.id;
                // A run that is being loaded will learn of it when it is.
                let turn = slot.machine.turn(id).filter(|_| !slot.machine.is_loading(id));
                let mut held = turn.filter(|turn| turn.session == *session).map(|_| "its task");
                let activities = slot.machine.peek(id).map(|run| &run.activities);
                for (scheduled, activity) in activities.into_iter().flatten() {
                    let of_session = matches!(&activity.phase,
                        Phase::Started { session: of, detached: false, .. } if of == session);
                    if of_session && slot.machine.holds_attempt(id, *scheduled) {
                        held = Some("an attempt");
                    }
                }
                let spared = || slot.has_match(session, id) || self.hears_of(slot, session);
                if let Some(held) = held.filter(|_| !spared()) {
                    let what = format!("{session} is gone and has {held}");
                    return Err(Violation::of(Check::Sessions, id, what));
                }
            }
        }
        Ok(())
    }

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
    /// Counts a read that begins.
    pub(super) const fn reads(&mut self) {
        self.reads += 1;
    }

    /// Whether it waits for a commit or a read.
    pub(super) const fn waits(&self) -> bool {
        self.committing || self.reads > 0
    }

    /// Every match led to work for the worker, or returned its credit.
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

    /// Whether a match of the run with the session is unresolved.
    fn has_match(&self, session: &SessionId, run: RunId) -> bool {
        self.matches.iter().any(|(offer, taker)| taker.session == *session && offer.run == run)
    }

    pub(super) fn matched(&mut self, session: &SessionId, work: (RunId, Work)) {
        let found = self.matches.iter().position(|(offer, taker)| {
            taker.session == *session && (offer.run, offer.work) == work
        });
        if let Some(index) = found {
            self.matches.swap_remove(index);
        }
    }
}

/// Whether the message is an input of the shard, rather than a reply to its request.
const fn is_input(message: &Message) -> bool {
    match message {
        Message::Ask(..)
        | Message::Report(..)
        | Message::Matched(..)
        | Message::Refill(_)
        | Message::NewBuild(..)
        | Message::SessionLost(_)
        | Message::Mail(_)
        | Message::SendAgain(_)
        | Message::Close
        | Message::Lapse => true,
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
        Message::Ask(_, operation) => operation.place().1,
        Message::Report(_, report) => Some(report.place().1),
        Message::Mail(mail) => Some(mail.key().run),
        _ => None,
    }
}
