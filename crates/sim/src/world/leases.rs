//! Leases of nodes: the production lease machine decides, from the rows of all nodes, which shards
//! each serves.

use std::collections::VecDeque;

use abide_shard::{
    lease::{LeaseMessage, LeaseOutput, NODE_PREFIX},
    message::Message,
    node::NodeInput,
};
use abide_store::rows::RegistryRow;

use super::{
    Event, World,
    nodes::{Node, NodeEvent, NodeId, name},
    slots::SlotId,
};
use crate::{
    checks::{Check, Checked, Violation},
    names::shards,
    schedule::{MILLIS, Micros},
    settings::delay,
    trace::brief,
};

/// How soon all shards of a node know that its lease is lost.
const TOLD_WITHIN: Micros = 10 * MILLIS;

pub(crate) enum RegistryRequest {
    Read,
    Put(RegistryRow),
}

impl World {
    /// Passes a message to the lease of a node, and carries out what it requests.
    pub(super) fn lease(&mut self, node: NodeId, message: LeaseMessage) -> Checked {
        let monotonic = self.nodes[node].monotonic(self.now);
        let mut messages = VecDeque::from([message]);
        let mut left = false;
        while let Some(message) = messages.pop_front() {
            self.trace
                .note(None, || format!("{:>12} lease {node} <- {}", self.now, brief(&message)));
            let Some(lease) = &mut self.nodes[node].lease else { return Ok(()) };
            lease.handle(monotonic, message);
            let outputs: Vec<_> = std::iter::from_fn(|| lease.poll()).collect();
            // As in the engine, the node sees the lease's new state before the outputs.
            self.update_view(node)?;
            for output in outputs {
                match output {
                    LeaseOutput::ReadRegistry => self.ask_registry(node, RegistryRequest::Read),
                    LeaseOutput::PutRegistry(row) => {
                        let row = self.saboteur.row(row);
                        self.ask_registry(node, RegistryRequest::Put(row));
                    }
                    // The world has few shards; closing the others needs no work.
                    LeaseOutput::Close(shard) if !shards().any(|known| known == shard) => {
                        messages.push_back(LeaseMessage::ShardReleased(shard));
                    }
                    LeaseOutput::Open(shard) if !shards().any(|known| known == shard) => {}
                    LeaseOutput::Open(shard) => self.open_at(node, shard)?,
                    LeaseOutput::Close(_) if self.saboteur.ignores_close() => {}
                    LeaseOutput::Close(shard) => self.close_at(node, shard)?,
                    LeaseOutput::Lost if self.saboteur.ignores_close() => {}
                    LeaseOutput::Lost => self.lose_lease(node)?,
                    LeaseOutput::Tell => self.tell(node, NodeInput::RowsChanged)?,
                    LeaseOutput::Left => left = true,
                }
            }
        }
        self.plan_lease_tick(node);
        self.no_shard_is_served_twice()?;
        if left {
            self.kill_node(node)?;
            self.start_later(node);
        }
        Ok(())
    }

    /// The fault that cut the node off may leave its workers and callers able to reach others.
    fn lose_lease(&mut self, node: NodeId) -> Checked {
        self.tell(node, NodeInput::EndStreams)?;
        self.tell_shards(node, &Message::Lapse);
        let slots = self.nodes[node].shards.values().copied().collect();
        self.plan_at_node(node, TOLD_WITHIN, NodeEvent::NoCallersLeft(slots));
        Ok(())
    }

    /// The lease was lost: all callers of these machines have got a reply.
    pub(super) fn no_callers_left(&self, slots: &[SlotId]) -> Checked {
        let waits = |id: &&SlotId| self.slots.get(id).is_some_and(|it| it.machine.calls() > 0);
        match slots.iter().find(waits) {
            Some(id) => {
                let what = format!("callers wait for machine {id} after its lease was lost");
                Err(Violation::new(Check::Withheld, what))
            }
            None => Ok(()),
        }
    }

    fn plan_lease_tick(&mut self, node: NodeId) {
        let planned = self.nodes[node].tick_at;
        let Some(lease) = &self.nodes[node].lease else { return };
        let Some(wake_at) = lease.wake_at() else { return };
        let at = self.nodes[node].when(wake_at).max(self.now + MILLIS);
        if planned.is_none_or(|planned| planned > at || planned <= self.now) {
            self.nodes[node].tick_at = Some(at);
            self.plan_at_node(node, at - self.now, NodeEvent::Tick(at));
        }
    }

    fn no_shard_is_served_twice(&self) -> Checked {
        for shard in shards() {
            let answers = |node: &&Node| {
                let kept = self.saboteur.ignores_close() && node.shards.contains_key(&shard);
                node.up && (node.answers_for(shard, self.now) || kept)
            };
            if self.nodes.iter().filter(answers).count() > 1 {
                let what = format!("shard {shard} is served by two nodes with good leases");
                return Err(Violation::new(Check::Leases, what));
            }
        }
        Ok(())
    }

    /// Updates where shards are, and which nodes exist, as the lease knows it.
    fn update_view(&mut self, node: NodeId) -> Checked {
        let Some(lease) = &self.nodes[node].lease else { return Ok(()) };
        let (owners, nodes) = (lease.addresses().clone(), lease.nodes().clone());
        let read_at = lease.read_at();
        self.tell(node, NodeInput::Rows { owners, nodes, read_at })
    }

    fn ask_registry(&mut self, node: NodeId, request: RegistryRequest) {
        let slow = self.trouble(self.settings.odds.row_slow);
        let later = delay(&mut self.rng, 4 * MILLIS, slow);
        let process = self.nodes[node].process;
        self.plan_in(later, Event::Registry(node, process, request));
    }

    /// The store executes a request about nodes' rows. Its node may be gone by now.
    pub(super) fn carry_out_registry(
        &mut self,
        node: NodeId,
        process: u64,
        request: RegistryRequest,
    ) {
        let fails = self.cut_off(node) || self.trouble(self.settings.odds.row_fails);
        let answer = match request {
            RegistryRequest::Read if fails => LeaseMessage::ReadFailed,
            RegistryRequest::Read => {
                let rows = self.tables.registry(NODE_PREFIX);
                LeaseMessage::Registry(self.saboteur.rows(&name(node), rows))
            }
            RegistryRequest::Put(row) if fails => {
                if self.rng.chance(500) {
                    let later = self.rng.below(self.settings.lease);
                    self.plan_in(later, Event::LateRow(row));
                }
                LeaseMessage::WriteFailed
            }
            RegistryRequest::Put(row) => {
                let written = self.tables.put_registry(row);
                LeaseMessage::Written(written)
            }
        };
        let slow = self.trouble(self.settings.odds.row_slow);
        let later = delay(&mut self.rng, 2 * MILLIS, slow);
        self.plan_in(later, Event::Node(node, process, NodeEvent::Lease(answer)));
    }

    /// Whether the node cannot reach the store.
    pub(super) fn cut_off(&self, node: NodeId) -> bool {
        self.nodes[node].cut_until > self.now
    }
}
