//! Links between nodes, one for each direction. Messages on a link arrive in order; those in flight
//! when it breaks are lost.

use std::collections::BTreeSet;

use abide_shard::node::{NodeInput, PeerMessage};

use super::{
    World,
    nodes::{Node, NodeEvent, NodeId, name},
};
use crate::{
    checks::Checked,
    schedule::{MILLIS, Micros, SECOND},
    settings::delay,
};

/// Pause before a failed connection to a node is retried.
const REDIAL: Micros = 200 * MILLIS;

/// The link from one node to another.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Number of the link between the two.
    number: u64,
    /// Whether messages can be sent on it.
    ready: bool,
    /// When the last sent message arrives.
    arrives: Micros,
    /// From when on nothing arrives.
    broken_at: Option<Micros>,
    /// The link that it replaced, on which messages may still arrive, and until when.
    former: Option<(u64, Micros)>,
}

impl Link {
    /// Whether messages can be sent on it.
    pub(super) const fn ready(&self) -> bool {
        self.ready
    }
}

impl World {
    /// A node connects to another that it knows.
    pub(super) fn dial(&mut self, from: NodeId, to: NodeId) {
        let link = self.links.entry((from, to)).or_default();
        if link.ready || !self.nodes[from].others.contains(&to) {
            return;
        }
        let cut = self.cuts.get(&(from, to)).is_some_and(|until| *until > self.now);
        if cut || !self.nodes[to].reachable() {
            return self.plan_at_node(from, REDIAL, NodeEvent::Dial(to));
        }
        link.former = link.broken_at.map(|at| (link.number, at));
        link.number += 1;
        link.broken_at = None;
        link.arrives = self.now;
        let event = NodeEvent::Called { from, link: link.number };
        let later = delay(&mut self.rng, 3 * MILLIS, false);
        self.plan_at_node(to, later, event);
        // If the connection fails, it is retried.
        self.plan_at_node(from, 5 * REDIAL, NodeEvent::Dial(to));
    }

    /// Another node opens a link: earlier messages from it may have been lost.
    pub(super) fn called(&mut self, node: NodeId, from: NodeId, link: u64) -> Checked {
        if !self.arrives(from, node, link) {
            return Ok(());
        }
        self.trace
            .note(None, || format!("{:>12} node {node} accepts a link from {from}", self.now));
        let later = delay(&mut self.rng, 3 * MILLIS, false);
        self.plan_at_node(from, later, NodeEvent::Linked { to: node, link });
        let number = self.nodes[node].newest.begin(&name(from));
        self.nodes[node].accepted.insert((from, link), number);
        self.tell(node, NodeInput::Called(name(from)))
    }

    /// The link to another node is open, for the first time or again.
    pub(super) fn linked(&mut self, node: NodeId, to: NodeId, link: u64) -> Checked {
        if !self.arrives(node, to, link) || !self.nodes[node].others.contains(&to) {
            return Ok(());
        }
        if let Some(link) = self.links.get_mut(&(node, to)) {
            link.ready = true;
        }
        self.trace.note(None, || format!("{:>12} node {node} is linked to {to}", self.now));
        self.tell(node, NodeInput::Linked(name(to)))
    }

    /// The link to another node is gone.
    pub(super) fn unlinked(&mut self, node: NodeId, to: NodeId, link: u64) -> Checked {
        let Some(found) = self.links.get_mut(&(node, to)) else { return Ok(()) };
        if found.number != link || !found.ready {
            return Ok(());
        }
        found.ready = false;
        self.trace.note(None, || format!("{:>12} node {node} cannot reach {to}", self.now));
        self.plan_at_node(node, REDIAL, NodeEvent::Dial(to));
        self.break_calls(|asked| asked.entry == node && asked.at == Some(to))?;
        self.tell(node, NodeInput::Unlinked(name(to)))
    }

    /// A link from another node is gone.
    pub(super) fn peer_disconnected(&mut self, node: NodeId, from: NodeId, link: u64) -> Checked {
        let Some(number) = self.nodes[node].accepted.remove(&(from, link)) else { return Ok(()) };
        let newest = self.nodes[node].newest.end(&name(from), number);
        match newest || self.saboteur.counts_old_ends() {
            true => self.tell(node, NodeInput::LinkClosed(name(from))),
            false => Ok(()),
        }
    }

    /// A message has arrived on a link, which another one may have replaced.
    pub(super) fn received(
        &mut self,
        node: NodeId,
        from: NodeId,
        link: u64,
        message: PeerMessage,
    ) -> Checked {
        let Some(number) = self.nodes[node].accepted.get(&(from, link)) else { return Ok(()) };
        let newest = self.nodes[node].newest.is_newest(&name(from), *number);
        match newest {
            true => self.tell(node, NodeInput::Received(name(from), message)),
            false => Ok(()),
        }
    }

    /// Sets the other nodes of the cluster.
    pub(super) fn keep_links(&mut self, node: NodeId, others: BTreeSet<NodeId>) -> Checked {
        let before = std::mem::replace(&mut self.nodes[node].others, others.clone());
        for came in others.difference(&before) {
            self.plan_at_node(node, MILLIS, NodeEvent::Dial(*came));
        }
        before.difference(&others).try_for_each(|gone| self.give_up_link(node, *gone))
    }

    /// Another node has left the cluster.
    fn give_up_link(&mut self, node: NodeId, gone: NodeId) -> Checked {
        self.break_link(node, gone);
        match self.links.get(&(node, gone)).map(|link| link.number) {
            Some(number) => self.unlinked(node, gone, number),
            None => Ok(()),
        }
    }

    /// Breaks a link; both ends notice some time later.
    pub(super) fn break_link(&mut self, from: NodeId, to: NodeId) {
        let Some(link) = self.links.get_mut(&(from, to)) else { return };
        if link.broken_at.is_some() {
            return;
        }
        self.disturbed = self.disturbed.max(self.now);
        let number = link.number;
        // The last messages may arrive when the other end has opened another link.
        let lags = self.rng.chance(300);
        let lag =
            if lags { self.rng.between(SECOND, 3 * SECOND) } else { self.rng.below(20 * MILLIS) };
        link.broken_at = Some(self.now + lag);
        if lags {
            link.arrives = link.arrives.max(self.now + self.rng.between(lag / 2, lag));
        }
        let later = self.rng.below(200 * MILLIS);
        self.plan_at_node(from, later, NodeEvent::Unlinked { to, link: number });
        let later = lag + self.rng.between(20 * MILLIS, 200 * MILLIS);
        self.plan_at_node(to, later, NodeEvent::PeerDisconnected { from, link: number });
    }

    /// Breaks the links of a process that has died.
    pub(super) fn cut_links_of(&mut self, node: NodeId) {
        for other in 0..self.nodes.len() {
            self.break_link(other, node);
            self.break_link(node, other);
            if let Some(link) = self.links.get_mut(&(node, other)) {
                link.ready = false;
            }
        }
    }

    /// Whether messages on this link arrive.
    pub(super) fn arrives(&self, from: NodeId, to: NodeId, link: u64) -> bool {
        self.links.get(&(from, to)).is_some_and(|found| match found.former {
            Some((former, at)) if former == link => self.now < at,
            _ => found.number == link && found.broken_at.is_none_or(|at| self.now < at),
        })
    }

    /// Whether one node can send to the other.
    pub(super) fn ready(&self, from: NodeId, to: NodeId) -> bool {
        self.links.get(&(from, to)).is_some_and(Link::ready)
    }

    /// Records a fault of a node or a link until then.
    pub(super) fn disturb(&mut self, until: Micros) {
        self.disturbed = self.disturbed.max(until);
    }

    /// Whether no node or link has had a fault since then.
    pub(super) fn all_linked_since(&self, since: Micros) -> bool {
        let nodes = 0..self.nodes.len();
        let pairs = nodes.clone().flat_map(|from| nodes.clone().map(move |to| (from, to)));
        let whole = |(from, to): &(NodeId, NodeId)| {
            let link = self.links.get(&(*from, *to));
            from == to || link.is_some_and(|link| link.ready && link.broken_at.is_none())
        };
        self.disturbed < since
            && self.nodes.iter().all(Node::reachable)
            && pairs.into_iter().all(|pair| whole(&pair))
    }

    /// Sends a message to a node, in order. It is lost if there is no link.
    pub(super) fn say(&mut self, from: NodeId, to: NodeId, message: PeerMessage) {
        if !self.ready(from, to) {
            return;
        }
        let slow = self.trouble(self.settings.odds.peer_slow);
        let later = delay(&mut self.rng, 3 * MILLIS, slow);
        if slow {
            self.disturb(self.now + later);
        }
        let Some(link) = self.links.get_mut(&(from, to)) else { return };
        link.arrives = link.arrives.max(self.now + later);
        let event = NodeEvent::Said { from, link: link.number, message: Box::new(message) };
        let later = link.arrives - self.now;
        self.plan_at_node(to, later, event);
        if self.trouble(self.settings.odds.peer_breaks) {
            self.break_link(from, to);
        }
    }
}
