//! Nodes: processes that serve shards, each with queues, a clock and a view of the others. The lease
//! machine says which shards a node serves, as in the engine; a node that is alone needs no lease.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{call::Ticket, ids::ShardId};
use abide_shard::{
    lease::{Lease, LeaseMessage, LeaseOptions},
    message::Message,
    node::{Node as Machine, NodeInput, PeerMessage},
};

use super::{Event, World, slots::SlotId, streams::Stream};
use crate::{
    checks::Checked,
    names::shards,
    schedule::{MILLIS, Micros},
};

/// Within which time the lease of a node that stood still goes on, after all else does.
const LEASE_WAKES: Micros = 20 * MILLIS;

/// Which node.
pub(crate) type NodeId = usize;

/// A node: one process at a time.
pub(crate) struct Node {
    /// Counts processes of the world: what belongs to an older one is void.
    pub(super) process: u64,
    pub(super) up: bool,
    /// None if there are no other nodes.
    pub(super) lease: Option<Lease>,
    pub(super) leaving: bool,
    /// Its queues, its workers and what it knows of the others.
    pub(super) machine: Machine<Stream>,
    /// The machines of the shards that it serves.
    pub(super) shards: BTreeMap<ShardId, SlotId>,
    /// The other nodes that it keeps links to.
    pub(super) others: BTreeSet<NodeId>,
    /// How fast its clock runs, in thousandths, and what it shows at the beginning.
    clock: (u64, Micros),
    /// When its lease is to look at the clock.
    pub(super) tick_at: Option<Micros>,
    /// When its machine is to look at the clock.
    pub(super) machine_tick_at: Option<Micros>,
    /// It stands still. What happens to it meanwhile waits.
    pub(super) frozen: bool,
    pub(super) held: Vec<Event>,
    /// Until when it cannot reach the store.
    pub(super) cut_until: Micros,
}

/// Something that happens at a node.
pub(crate) enum NodeEvent {
    /// The registry has answered.
    Lease(LeaseMessage),
    /// The lease looks at the clock, if this is still its time.
    Tick(Micros),
    /// Its machine looks at the clock, if this is still its time.
    MachineTick(Micros),
    /// A message for a shard, if it is served here.
    ToShard(ShardId, Message),
    /// Somebody turns to the node, which may pass the call on.
    Call(Ticket),
    /// A call is tried at the node, which passes it on to nobody.
    Try(Ticket),
    /// The lease was lost some time ago, and nobody waits for these machines.
    NobodyWaits(Vec<SlotId>),
    /// Something about the stream of a worker.
    Input(Box<NodeInput<Stream>>),
    /// It tries to reach another node.
    Dial(NodeId),
    /// Another node begins a link.
    Called { from: NodeId, link: u64 },
    /// A link has begun.
    Linked { to: NodeId, link: u64 },
    /// A link has ended.
    Unlinked { to: NodeId, link: u64 },
    /// A link of another node has ended.
    HungUp { from: NodeId, link: u64 },
    /// Another node says something on a link.
    Said { from: NodeId, link: u64, message: Box<PeerMessage> },
    /// The same, and it had arrived before the link could break.
    Heard { from: NodeId, message: Box<PeerMessage> },
}

impl Node {
    /// A node that is not there yet.
    pub(super) fn new(clock: (u64, Micros), machine: Machine<Stream>) -> Self {
        Self {
            process: 0,
            up: false,
            lease: None,
            leaving: false,
            machine,
            shards: BTreeMap::new(),
            others: BTreeSet::new(),
            clock,
            tick_at: None,
            machine_tick_at: None,
            frozen: false,
            held: Vec::new(),
            cut_until: 0,
        }
    }

    /// What its clock shows.
    pub(super) fn monotonic(&self, now: Micros) -> Duration {
        Duration::from_micros(self.clock.1 + now * self.clock.0 / 1000)
    }

    /// When its clock shows this.
    pub(super) fn when(&self, monotonic: Duration) -> Micros {
        let micros = Micros::try_from(monotonic.as_micros()).unwrap_or(Micros::MAX);
        (micros.saturating_sub(self.clock.1).saturating_mul(1000)).div_ceil(self.clock.0)
    }

    /// It may answer without a commit: nobody else has changed what it remembers.
    pub(super) fn trusted(&self, now: Micros) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.may_answer(self.monotonic(now)))
    }

    /// It answers for the shard, by its own clock.
    pub(super) fn answers_for(&self, shard: ShardId, now: Micros) -> bool {
        let serves = self.lease.as_ref().is_some_and(|lease| lease.serves(shard));
        serves && self.trusted(now)
    }

    /// Workers and clients may turn to it.
    pub(super) fn reachable(&self) -> bool {
        self.up && !self.frozen
    }
}

/// How nodes are called, in the registry and by each other.
pub(super) fn name(node: NodeId) -> String {
    format!("node{node}")
}

pub(super) fn number(name: &str) -> Option<NodeId> {
    name.strip_prefix("node")?.parse().ok()
}

impl World {
    /// There are several nodes, which have leases.
    pub(super) const fn leased(&self) -> bool {
        self.settings.nodes > 1
    }

    /// Plans the beginning of all nodes.
    pub(super) fn begin_nodes(&mut self) {
        for node in 0..self.settings.nodes {
            let clock = (self.rng.between(960, 1040), self.rng.below(1_000_000 * MILLIS));
            let machine = self.new_machine(node);
            self.nodes.push(Node::new(clock, machine));
            let latest = if self.rng.chance(800) { 300 * MILLIS } else { self.settings.span / 2 };
            let at = if self.leased() { self.rng.below(latest) } else { 0 };
            self.schedule.plan(at, Event::Start(node));
        }
    }

    /// A machine that knows nothing yet.
    pub(super) fn new_machine(&self, node: NodeId) -> Machine<Stream> {
        let patience = self.lease_options(node, 0).patience();
        Machine::new(name(node), self.settings.limits.queued_offers, patience)
    }

    fn lease_options(&self, node: NodeId, process: u64) -> LeaseOptions {
        LeaseOptions {
            node: name(node),
            incarnation: process,
            address: name(node),
            lease: Duration::from_micros(self.settings.lease),
        }
    }

    /// A process of the node begins.
    pub(super) fn start_node(&mut self, node: NodeId) -> Checked {
        if self.nodes[node].up {
            return Ok(());
        }
        self.processes_made += 1;
        let process = self.processes_made;
        self.trace.note(None, || format!("{:>12} node {node} starts", self.now));
        let clock = self.nodes[node].clock;
        let mut begun = Node::new(clock, self.new_machine(node));
        begun.process = process;
        begun.up = true;
        begun.lease = self.leased().then(|| Lease::new(self.lease_options(node, process)));
        self.nodes[node] = begun;
        if !self.leased() {
            for shard in shards() {
                self.reopen(shard);
            }
        }
        self.lease(node, LeaseMessage::Tick)
    }

    /// The process of the node dies: machines, queues, streams and links are gone.
    pub(super) fn kill_node(&mut self, node: NodeId) -> Checked {
        self.trace.note(None, || format!("{:>12} node {node} dies", self.now));
        self.disturb(self.now);
        let clock = self.nodes[node].clock;
        let process = self.nodes[node].process;
        let gone = Node::new(clock, self.new_machine(node));
        self.nodes[node] = Node { process, ..gone };
        self.cut_streams_of(node);
        self.cut_links_of(node);
        let slots: Vec<_> =
            self.slots.iter().filter(|(_, slot)| slot.node == node).map(|(id, _)| *id).collect();
        for slot in slots {
            self.slots.remove(&slot);
        }
        self.break_calls(|asked| asked.entry == node || asked.at == Some(node))
    }

    /// Another process of the node begins some time later.
    pub(super) fn start_later(&mut self, node: NodeId) {
        let most = if self.calm { 300 * MILLIS } else { 2 * self.settings.lease };
        let later = self.rng.between(10 * MILLIS, most);
        self.plan_in(later, Event::Start(node));
    }

    /// The node goes on with everything that waited. Its lease may be the last to notice.
    pub(super) fn thaw(&mut self, node: NodeId, process: u64) {
        let thawed = &mut self.nodes[node];
        if thawed.process != process || !thawed.frozen {
            return;
        }
        self.disturbed = self.disturbed.max(self.now);
        thawed.frozen = false;
        let held = std::mem::take(&mut thawed.held);
        self.trace.note(None, || format!("{:>12} node {node} goes on", self.now));
        let lease_at = self.now + self.rng.below(LEASE_WAKES);
        for event in held {
            let of_lease =
                matches!(event, Event::Node(_, _, NodeEvent::Lease(_) | NodeEvent::Tick(_)));
            self.schedule.plan(if of_lease { lease_at } else { self.now }, event);
        }
    }

    /// Plans something that happens at the present process of a node.
    pub(super) fn plan_at_node(&mut self, node: NodeId, delay: Micros, event: NodeEvent) {
        let process = self.nodes[node].process;
        self.plan_in(delay, Event::Node(node, process, event));
    }

    /// Something happens at a node, now or when it goes on.
    pub(super) fn tell_node(&mut self, node: NodeId, event: NodeEvent) -> Checked {
        let process = self.nodes[node].process;
        self.happen(Event::Node(node, process, event))
    }

    /// Keeps what happens to a node that stands still; gives back what can happen now.
    pub(super) fn hold(&mut self, event: Event) -> Option<Event> {
        let node = match &event {
            Event::Node(node, ..) => Some(*node),
            Event::Tick(slot, _) | Event::ToSlot(slot, _) => {
                self.slots.get(slot).map(|slot| slot.node)
            }
            Event::Reply(ticket, _) => self.asked(*ticket).map(|asked| asked.entry),
            _ => None,
        };
        let Some(node) = node.filter(|node| self.nodes[*node].frozen) else { return Some(event) };
        let event = match event {
            Event::Node(_, process, NodeEvent::Said { from, link, message }) => {
                if !self.arrives(from, node, link) {
                    return None;
                }
                Event::Node(node, process, NodeEvent::Heard { from, message })
            }
            event => event,
        };
        self.nodes[node].held.push(event);
        None
    }

    pub(super) fn node_event(&mut self, node: NodeId, process: u64, event: NodeEvent) -> Checked {
        if self.nodes[node].process != process || !self.nodes[node].up {
            return match event {
                NodeEvent::Call(ticket) => self.break_call(ticket),
                NodeEvent::Try(attempt) => {
                    self.lose_try(attempt);
                    Ok(())
                }
                _ => Ok(()),
            };
        }
        match event {
            NodeEvent::Lease(message) => self.lease(node, message),
            NodeEvent::Tick(at) if self.nodes[node].tick_at == Some(at) => {
                self.nodes[node].tick_at = None;
                self.lease(node, LeaseMessage::Tick)
            }
            NodeEvent::Tick(_) => Ok(()),
            NodeEvent::ToShard(shard, message) => self.deliver_to_shard(node, shard, message),
            NodeEvent::MachineTick(at) => self.machine_tick(node, at),
            NodeEvent::Call(ticket) => self.call_arrives(node, ticket),
            NodeEvent::Try(attempt) => self.try_here(node, attempt),
            NodeEvent::NobodyWaits(slots) => self.nobody_waits(&slots),
            NodeEvent::Input(input) => self.tell(node, *input),
            NodeEvent::Dial(to) => {
                self.dial(node, to);
                Ok(())
            }
            NodeEvent::Called { from, link } => self.called(node, from, link),
            NodeEvent::Linked { to, link } => self.linked(node, to, link),
            NodeEvent::Unlinked { to, link } => self.unlinked(node, to, link),
            NodeEvent::HungUp { from, link } => self.hung_up(node, from, link),
            NodeEvent::Said { from, link, message } => match self.arrives(from, node, link) {
                true => self.tell(node, NodeInput::Heard(name(from), *message)),
                false => Ok(()),
            },
            NodeEvent::Heard { from, message } => {
                self.tell(node, NodeInput::Heard(name(from), *message))
            }
        }
    }

    /// A node that workers and clients can turn to.
    pub(super) fn some_node(&mut self, fit: impl Fn(&Node) -> bool) -> Option<NodeId> {
        let fit: Vec<_> = (0..self.nodes.len()).filter(|node| fit(&self.nodes[*node])).collect();
        self.rng.pick(&fit).copied()
    }
}
