//! Nodes: processes that serve shards, each with queues, a clock and a view of the others. The
//! lease machine decides which shards a node serves, as in the engine; a single node needs no
//! lease.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{ids::ShardId, operation::Ticket};
use abide_shard::{
    lease::{Lease, LeaseMessage, LeaseOptions},
    message::Message,
    node::{NewestLinks, Node as Machine, NodeInput, PeerMessage},
};

use super::{Event, World, clocks::NodeClocks, slots::SlotId, streams::Stream};
use crate::{
    checks::Checked,
    names::shards,
    schedule::{MILLIS, Micros},
};

/// How much later than everything else the lease of a stalled node may continue.
const LEASE_WAKES: Micros = 20 * MILLIS;

pub(crate) type NodeId = usize;

/// A node: one process at a time.
pub(crate) struct Node {
    /// Number of the process in the world: events of an older one are void.
    pub(super) process: u64,
    pub(super) up: bool,
    /// `None` if there are no other nodes.
    pub(super) lease: Option<Lease>,
    pub(super) leaving: bool,
    /// Its queues, its workers and its view of the others.
    pub(super) machine: Machine<Stream>,
    /// Machines of the shards that it serves.
    pub(super) shards: BTreeMap<ShardId, SlotId>,
    /// Other nodes that it keeps links to.
    pub(super) others: BTreeSet<NodeId>,
    /// The newest link of each other node, by its own numbers.
    pub(super) newest: NewestLinks,
    /// Its number of each link of other nodes, by their numbers.
    pub(super) accepted: BTreeMap<(NodeId, u64), u64>,
    pub(super) clocks: NodeClocks,
    /// When its lease checks the clock.
    pub(super) tick_at: Option<Micros>,
    /// When its machine checks the clock.
    pub(super) machine_tick_at: Option<Micros>,
    /// Whether it is stalled. Its events wait meanwhile.
    pub(super) frozen: bool,
    pub(super) held: Vec<Event>,
    /// Until when it cannot reach the store.
    pub(super) cut_until: Micros,
}

pub(crate) enum NodeEvent {
    /// The registry has replied.
    Lease(LeaseMessage),
    /// The lease checks the clock, if this is still its planned time.
    Tick(Micros),
    /// Its machine checks the clock, if this is still its planned time.
    MachineTick(Micros),
    /// A message for a shard, if it is served here.
    ToShard(ShardId, Message),
    /// A caller contacts the node, which may forward the call.
    Call(Ticket),
    /// A call is tried at the node, which does not forward it.
    Try(Ticket),
    /// The lease was lost some time ago, so no caller may wait for these machines.
    NoCallersLeft(Vec<SlotId>),
    /// An event of a worker's stream.
    Input(Box<NodeInput<Stream>>),
    /// It connects to another node.
    Dial(NodeId),
    /// Another node opens a link.
    Called { from: NodeId, link: u64 },
    /// A link to another node is open.
    Linked { to: NodeId, link: u64 },
    /// A link to another node is gone.
    Unlinked { to: NodeId, link: u64 },
    /// A link from another node is gone.
    PeerDisconnected { from: NodeId, link: u64 },
    /// A message from another node on a link.
    Said { from: NodeId, link: u64, message: Box<PeerMessage> },
    /// A message that had arrived before the link broke.
    Received { from: NodeId, link: u64, message: Box<PeerMessage> },
}

impl Node {
    /// A node that has not started.
    pub(super) fn new(clocks: NodeClocks, machine: Machine<Stream>) -> Self {
        Self {
            process: 0,
            up: false,
            lease: None,
            leaving: false,
            machine,
            shards: BTreeMap::new(),
            others: BTreeSet::new(),
            newest: NewestLinks::default(),
            accepted: BTreeMap::new(),
            clocks,
            tick_at: None,
            machine_tick_at: None,
            frozen: false,
            held: Vec::new(),
            cut_until: 0,
        }
    }

    pub(super) fn monotonic(&self, now: Micros) -> Duration {
        self.clocks.monotonic(now)
    }

    pub(super) fn when(&self, monotonic: Duration) -> Micros {
        self.clocks.when(monotonic)
    }

    /// Whether it may reply without a commit: no other node has changed what it remembers.
    pub(super) fn trusted(&self, now: Micros) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.may_answer(self.monotonic(now)))
    }

    /// Whether it replies for the shard, by its own clock.
    pub(super) fn answers_for(&self, shard: ShardId, now: Micros) -> bool {
        let serves = self.lease.as_ref().is_some_and(|lease| lease.serves(shard));
        serves && self.trusted(now)
    }

    /// Whether workers and clients may contact it.
    pub(super) fn reachable(&self) -> bool {
        self.up && !self.frozen
    }
}

/// Name of a node in the registry and for others.
pub(super) fn name(node: NodeId) -> String {
    format!("node{node}")
}

pub(super) fn number(name: &str) -> Option<NodeId> {
    name.strip_prefix("node")?.parse().ok()
}

impl World {
    /// Whether there are several nodes, which have leases.
    pub(super) const fn leased(&self) -> bool {
        self.settings.nodes > 1
    }

    /// Plans the start of all nodes.
    pub(super) fn begin_nodes(&mut self) {
        for node in 0..self.settings.nodes {
            let clocks = NodeClocks::draw(&mut self.rng, self.settings.nodes > 1);
            let machine = self.new_machine(node);
            self.nodes.push(Node::new(clocks, machine));
            let latest = if self.rng.chance(800) { 300 * MILLIS } else { self.settings.span / 2 };
            let at = if self.leased() { self.rng.below(latest) } else { 0 };
            self.schedule.plan(at, Event::Start(node));
        }
    }

    pub(super) fn new_machine(&self, node: NodeId) -> Machine<Stream> {
        let patience = self.lease_options(node, 0).patience();
        Machine::new(name(node), &self.settings.limits, patience)
    }

    fn lease_options(&self, node: NodeId, process: u64) -> LeaseOptions {
        LeaseOptions {
            node: name(node),
            incarnation: process,
            address: name(node),
            lease: Duration::from_micros(self.settings.lease),
        }
    }

    /// A process of the node starts.
    pub(super) fn start_node(&mut self, node: NodeId) -> Checked {
        if self.nodes[node].up {
            return Ok(());
        }
        self.processes_made += 1;
        let process = self.processes_made;
        self.trace.note(None, || format!("{:>12} node {node} starts", self.now));
        let clocks = self.nodes[node].clocks;
        let mut begun = Node::new(clocks, self.new_machine(node));
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
        let clocks = self.nodes[node].clocks;
        let process = self.nodes[node].process;
        let gone = Node::new(clocks, self.new_machine(node));
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

    /// Starts another process of the node some time later.
    pub(super) fn start_later(&mut self, node: NodeId) {
        let most = if self.calm { 300 * MILLIS } else { 2 * self.settings.lease };
        let later = self.rng.between(10 * MILLIS, most);
        self.plan_in(later, Event::Start(node));
    }

    /// The node continues with everything that waited. Its lease may be the last to notice.
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

    /// Plans an event at the current process of a node.
    pub(super) fn plan_at_node(&mut self, node: NodeId, delay: Micros, event: NodeEvent) {
        let process = self.nodes[node].process;
        self.plan_in(delay, Event::Node(node, process, event));
    }

    /// Passes an event to a node, now or when it continues.
    pub(super) fn tell_node(&mut self, node: NodeId, event: NodeEvent) -> Checked {
        let process = self.nodes[node].process;
        self.happen(Event::Node(node, process, event))
    }

    /// Keeps the events of a stalled node; returns those that can happen now.
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
                Event::Node(node, process, NodeEvent::Received { from, link, message })
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
            NodeEvent::NoCallersLeft(slots) => self.no_callers_left(&slots),
            NodeEvent::Input(input) => self.tell(node, *input),
            NodeEvent::Dial(to) => {
                self.dial(node, to);
                Ok(())
            }
            NodeEvent::Called { from, link } => self.called(node, from, link),
            NodeEvent::Linked { to, link } => self.linked(node, to, link),
            NodeEvent::Unlinked { to, link } => self.unlinked(node, to, link),
            NodeEvent::PeerDisconnected { from, link } => self.peer_disconnected(node, from, link),
            NodeEvent::Said { from, link, message } => match self.arrives(from, node, link) {
                true => self.received(node, from, link, *message),
                false => Ok(()),
            },
            NodeEvent::Received { from, link, message } => {
                self.received(node, from, link, *message)
            }
        }
    }

    /// A node that workers and clients can contact.
    pub(super) fn some_node(&mut self, fit: impl Fn(&Node) -> bool) -> Option<NodeId> {
        let fit: Vec<_> = (0..self.nodes.len()).filter(|node| fit(&self.nodes[*node])).collect();
        self.rng.pick(&fit).copied()
    }
}
