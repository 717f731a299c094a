//! The machine of each node: takes inputs, and its outputs are carried out some time later.

use abide_core::dispatch::Given;
use abide_shard::{
    lease::LeaseMessage,
    message::Message,
    node::{NodeInput, NodeOutput},
};

use super::{
    Event, World,
    nodes::{NodeEvent, NodeId, number},
    streams::Stream,
};
use crate::{checks::Checked, schedule::MILLIS, settings::delay, trace::brief};

impl World {
    /// Passes an input to the machine of a node.
    pub(super) fn tell(&mut self, node: NodeId, input: NodeInput<Stream>) -> Checked {
        let mut links = None;
        if let Some(input) = self.saboteur.node_input(input) {
            self.trace.note(None, || format!("{:>12} node {node} <- {}", self.now, brief(&input)));
            let now = self.nodes[node].monotonic(self.now);
            self.nodes[node].machine.handle(now, input);
            while let Some(output) = self.nodes[node].machine.poll() {
                for output in self.saboteur.node_output(output) {
                    self.trace.note(None, || {
                        format!("{:>12} node {node} -> {}", self.now, brief(&output))
                    });
                    match output {
                        NodeOutput::KeepLinks(nodes) => links = Some(nodes),
                        NodeOutput::ToWorker(stream, Given::Work(dispatch)) => {
                            self.give(stream, dispatch);
                            self.little_is_unread(stream)?;
                            let hold = self.hold_back_from(stream);
                            if let Some(hold) = hold.and_then(|hold| self.saboteur.node_input(hold))
                            {
                                self.nodes[node].machine.handle(now, hold);
                            }
                        }
                        output => self.carry_out_at(node, output),
                    }
                }
            }
        }
        if let Some(links) = links {
            let links = links.iter().filter_map(|name| number(name)).collect();
            self.keep_links(node, links)?;
        }
        self.plan_machine_tick(node);
        self.no_credit_is_made_up(node)
    }

    /// Carries out an output of a node's machine.
    fn carry_out_at(&mut self, node: NodeId, output: NodeOutput<Stream>) {
        match output {
            NodeOutput::ToShard(shard, message @ Message::Mail(_)) => {
                self.send(node, shard, message);
            }
            NodeOutput::ToShard(shard, message) => {
                let later = delay(&mut self.rng, 2 * MILLIS, false);
                self.plan_at_node(node, later, NodeEvent::ToShard(shard, message));
            }
            NodeOutput::ToShards(message) => self.tell_shards(node, &message),
            NodeOutput::ToPeer(to, message) => {
                if let Some(to) = number(&to) {
                    self.say(node, to, message);
                }
            }
            NodeOutput::ToWorker(stream, Given::PresentAttempts(shard)) => {
                self.ask_for_attempts(stream, shard);
            }
            NodeOutput::EndStream(stream) => self.end_stream(stream),
            NodeOutput::Look => {
                self.plan_at_node(node, 0, NodeEvent::Lease(LeaseMessage::Look));
            }
            NodeOutput::TryHere(ticket) => self.try_at(node, node, ticket),
            NodeOutput::Forward(ticket, to) => {
                if let Some(to) = number(&to) {
                    self.try_at(node, to, ticket);
                }
            }
            NodeOutput::Refuse(ticket, error) => self.refuse(ticket, error),
            // Carried out by the caller.
            NodeOutput::KeepLinks(_) | NodeOutput::ToWorker(_, Given::Work(_)) => {}
        }
    }

    /// The machine of a node checks the clock, if this is still its planned time.
    pub(super) fn machine_tick(&mut self, node: NodeId, at: u64) -> Checked {
        if self.nodes[node].machine_tick_at != Some(at) {
            return Ok(());
        }
        self.nodes[node].machine_tick_at = None;
        self.tell(node, NodeInput::Tick)
    }

    fn plan_machine_tick(&mut self, node: NodeId) {
        let Some(wake_at) = self.nodes[node].machine.wake_at() else { return };
        let at = self.nodes[node].when(wake_at).max(self.now + 1);
        let planned = self.nodes[node].machine_tick_at;
        if planned.is_none_or(|planned| planned > at || planned <= self.now) {
            self.nodes[node].machine_tick_at = Some(at);
            let process = self.nodes[node].process;
            self.schedule.plan(at, Event::Node(node, process, NodeEvent::MachineTick(at)));
        }
    }
}
