//! Faults: of processes, owners, clocks, streams, workers, queues and links.

use abide_shard::{lease::LeaseMessage, node::NodeInput};

use super::{Event, World, nodes::NodeId};
use crate::{
    checks::{Checked, rows},
    names::shards,
    programs::Build,
    schedule::{MILLIS, SECOND},
};

impl World {
    pub(super) fn break_something(&mut self) -> Checked {
        if self.calm {
            return Ok(());
        }
        self.counts.faults += 1;
        match self.rng.weighted(&[10, 2, 2, 4, 3, 2, 2]) {
            0 if self.leased() => self.break_a_node(),
            0 => self.break_the_node(),
            1 => {
                self.step_clocks(true);
                Ok(())
            }
            2 => {
                self.pull_in_flight();
                let later = self.rng.below(200 * MILLIS);
                self.plan_in(later, Event::ClocksBack);
                Ok(())
            }
            3 => {
                let index = self.rng.index(self.workers.len());
                self.lose_stream(index)
            }
            4 => self.replace_worker(),
            5 => {
                let index = self.rng.index(self.workers.len());
                self.stop_reading(index);
                Ok(())
            }
            _ => {
                let later = self.rng.between(100 * MILLIS, 8 * SECOND);
                self.full_until = self.now + later;
                self.trace.note(None, || format!("{:>12} the disk is full", self.now));
                Ok(())
            }
        }
    }

    /// A fault of the only node.
    fn break_the_node(&mut self) -> Checked {
        match self.rng.weighted(&[3, 3, 2, 2]) {
            0 => self.crash(),
            1 => self.take_over(),
            2 => self.crash_one(),
            _ => self.restart_queues(),
        }
    }

    /// A fault of one of several nodes, or between two.
    fn break_a_node(&mut self) -> Checked {
        let Some(node) = self.some_node(|node| node.up) else { return Ok(()) };
        match self.rng.weighted(&[5, 6, 3, 3, 3, 2]) {
            0 => {
                self.kill_node(node)?;
                self.start_later(node);
                Ok(())
            }
            1 => {
                self.freeze(node);
                Ok(())
            }
            2 => {
                let most = 3 * self.settings.lease;
                self.nodes[node].cut_until = self.now + self.rng.between(100 * MILLIS, most);
                Ok(())
            }
            3 => {
                self.cut_two(node);
                Ok(())
            }
            4 => self.leave(node),
            _ => self.crash(),
        }
    }

    /// A node stalls, while others and its own clock go on. Some of them consider it dead.
    fn freeze(&mut self, node: NodeId) {
        if self.nodes[node].frozen {
            return;
        }
        self.disturb(self.now);
        self.trace.note(None, || format!("{:>12} node {node} stalls", self.now));
        self.nodes[node].frozen = true;
        let lease = self.settings.lease;
        let later = self.rng.between(lease / 4, 3 * lease);
        let process = self.nodes[node].process;
        self.plan_in(later, Event::Thaw(node, process));
        self.suspect_streams_of(node);
        self.ask_frozen(node, later);
        for other in 0..self.nodes.len() {
            if other != node && self.rng.chance(600) {
                self.break_link(other, node);
            }
        }
    }

    /// Two nodes cannot reach each other for a while, in one direction or both.
    fn cut_two(&mut self, node: NodeId) {
        let other = self.rng.index(self.nodes.len());
        if other == node {
            return;
        }
        let until = self.now + self.rng.below(2 * self.settings.lease);
        self.cuts.insert((node, other), until);
        self.break_link(node, other);
        if self.rng.chance(500) {
            self.cuts.insert((other, node), until);
            self.break_link(other, node);
        }
    }

    /// A node hands over its shards and stops; it returns later.
    fn leave(&mut self, node: NodeId) -> Checked {
        if self.nodes[node].frozen || std::mem::replace(&mut self.nodes[node].leaving, true) {
            return Ok(());
        }
        self.disturb(self.now);
        self.trace.note(None, || format!("{:>12} node {node} leaves", self.now));
        self.tell(node, NodeInput::WithdrawAll)?;
        self.lease(node, LeaseMessage::Leave)
    }

    /// Ends all faults of nodes.
    pub(super) fn heal(&mut self) {
        self.full_until = 0;
        self.cuts.clear();
        for node in 0..self.nodes.len() {
            self.nodes[node].cut_until = 0;
            let process = self.nodes[node].process;
            self.thaw(node, process);
            if !self.nodes[node].up {
                self.start_later(node);
            }
        }
    }

    /// All processes of the server die: machines, queues, streams and messages are gone. Commits in
    /// flight are lost or applied, without a reply.
    pub(super) fn crash(&mut self) -> Checked {
        let made = self.rng.chance(500);
        let mut commits = Vec::new();
        self.schedule.retain(|event| match event {
            Event::Commit(slot, batch) => {
                commits.push((*slot, batch.clone()));
                false
            }
            Event::Forget(_) | Event::Open(_) => false,
            _ => true,
        });
        commits.sort_by_key(|(slot, _)| *slot);
        for (slot, batch) in commits {
            if made && self.rng.chance(500) {
                let torn = self.saboteur.torn(&batch);
                self.apply(slot, torn.as_ref().unwrap_or(&batch))?.ok();
            }
        }
        rows::rows_are_the_projection(&self.ledger, &self.tables, shards())?;
        self.reopening.clear();
        for node in 0..self.nodes.len() {
            self.kill_node(node)?;
            match self.leased() {
                true => self.start_later(node),
                false => self.start_node(node)?,
            }
        }
        Ok(())
    }

    /// One machine crashes, the others continue.
    fn crash_one(&mut self) -> Checked {
        let owners: Vec<_> = self.nodes[0].shards.values().copied().collect();
        match self.rng.pick(&owners).copied() {
            Some(slot) => self.drop_slot(slot),
            None => Ok(()),
        }
    }

    /// A new owner takes a shard while the old one is still running.
    fn take_over(&mut self) -> Checked {
        let owned: Vec<_> = self.nodes[0].shards.keys().copied().collect();
        match self.rng.pick(&owned).copied() {
            Some(shard) => self.open(shard),
            None => Ok(()),
        }
    }

    /// A worker dies and another replaces it, sometimes with other code; the last right one stays
    /// right.
    fn replace_worker(&mut self) -> Checked {
        let index = self.rng.index(self.workers.len());
        let build = match self.rng.weighted(&[6, 2, 2]) {
            1 if self.workers_of(Build::Right) > 1 => Build::Before,
            2 if self.workers_of(Build::Right) > 1 => Build::Wrong,
            _ => Build::Right,
        };
        self.kill(index, build)
    }

    /// The queues lose their state; streams end with them, and shards are reopened.
    fn restart_queues(&mut self) -> Checked {
        self.nodes[0].machine = self.new_machine(0);
        for index in 0..self.workers.len() {
            self.lose_stream(index)?;
        }
        let slots: Vec<_> = self.nodes[0].shards.values().copied().collect();
        for slot in slots {
            self.drop_slot(slot)?;
        }
        Ok(())
    }
}
