//! A cluster whose store answers at once and whose shards close at once. After every step it checks
//! that no shard is served twice.

use std::{collections::BTreeMap, time::Duration};

use abide_core::ids::ShardId;
use abide_store::rows::RegistryRow;

use crate::lease::{Lease, LeaseMessage, LeaseOptions, LeaseOutput};

const STEP: Duration = Duration::from_millis(50);

pub(super) const LEASE: Duration = Duration::from_secs(10);

pub(super) fn options(node: &str, incarnation: u64) -> LeaseOptions {
    LeaseOptions { node: node.into(), incarnation, address: format!("{node}:7233"), lease: LEASE }
}

/// Rows by name, with the compare-and-set of a store.
#[derive(Clone, Default)]
pub(super) struct Registry(pub(super) BTreeMap<String, RegistryRow>);

impl Registry {
    pub(super) fn rows(&self) -> Vec<RegistryRow> {
        self.0.values().cloned().collect()
    }

    pub(super) fn put(&mut self, row: RegistryRow) -> bool {
        let stored = self.0.get(&row.name).map_or(0, |stored| stored.version);
        let written = stored + 1 == row.version;
        if written {
            self.0.insert(row.name.clone(), row);
        }
        written
    }
}

pub(super) struct Node {
    pub(super) lease: Lease,
    pub(super) clock: Duration,
    /// Its clock does not move.
    pub(super) frozen: bool,
    /// It does nothing, while its clock runs.
    pub(super) paused: bool,
    /// All its requests fail, and nothing is written.
    pub(super) cut_off: bool,
    /// Its shards do not finish closing.
    pub(super) holding: bool,
    pub(super) closing: Vec<ShardId>,
    pub(super) opened: usize,
    pub(super) left: bool,
}

impl Node {
    fn new(lease: Lease) -> Self {
        Self {
            lease,
            clock: Duration::ZERO,
            frozen: false,
            paused: false,
            cut_off: false,
            holding: false,
            closing: Vec::new(),
            opened: 0,
            left: false,
        }
    }

    pub(super) fn serving(&self, shard: ShardId) -> bool {
        self.lease.serves(shard) && self.lease.may_answer(self.clock)
    }

    pub(super) fn served(&self) -> usize {
        ShardId::all().filter(|shard| self.serving(*shard)).count()
    }
}

/// Nodes by name. A node that is removed was killed.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) nodes: BTreeMap<&'static str, Node>,
    pub(super) registry: Registry,
}

impl Cluster {
    pub(super) fn of(names: &[&'static str]) -> Self {
        let mut cluster = Self::default();
        for name in names {
            cluster.start(name, 1);
        }
        cluster.run(LEASE);
        cluster
    }

    pub(super) fn start(&mut self, name: &'static str, incarnation: u64) {
        self.start_with(name, options(name, incarnation));
    }

    pub(super) fn start_with(&mut self, name: &'static str, options: LeaseOptions) {
        self.nodes.insert(name, Node::new(Lease::new(options)));
        self.tell(name, LeaseMessage::Tick);
    }

    pub(super) fn node(&mut self, name: &str) -> &mut Node {
        self.nodes.get_mut(name).unwrap()
    }

    pub(super) fn served(&self) -> Vec<usize> {
        self.nodes.values().map(Node::served).collect()
    }

    /// Tells a node something and carries out all that comes of it.
    pub(super) fn tell(&mut self, name: &str, message: LeaseMessage) {
        let node = self.nodes.get_mut(name).unwrap();
        node.lease.handle(node.clock, message);
        while let Some(output) = node.lease.poll() {
            let answer = match output {
                LeaseOutput::ReadRegistry if node.cut_off => LeaseMessage::ReadFailed,
                LeaseOutput::ReadRegistry => LeaseMessage::Registry(self.registry.rows()),
                LeaseOutput::PutRegistry(_) if node.cut_off => LeaseMessage::WriteFailed,
                LeaseOutput::PutRegistry(row) => LeaseMessage::Written(self.registry.put(row)),
                LeaseOutput::Close(shard) if node.holding => {
                    node.closing.push(shard);
                    continue;
                }
                LeaseOutput::Close(shard) => LeaseMessage::ShardReleased(shard),
                LeaseOutput::Open(_) => {
                    node.opened += 1;
                    continue;
                }
                LeaseOutput::Left => {
                    node.left = true;
                    continue;
                }
                // Nobody is told: what is said between nodes may be lost.
                LeaseOutput::Tell | LeaseOutput::Lost => continue,
            };
            node.lease.handle(node.clock, answer);
        }
        self.check();
    }

    /// Lets time pass for all nodes.
    pub(super) fn run(&mut self, duration: Duration) {
        let mut passed = Duration::ZERO;
        while passed < duration {
            passed += STEP;
            let names: Vec<_> = self.nodes.keys().copied().collect();
            for name in names {
                let node = self.node(name);
                if !node.frozen {
                    node.clock += STEP;
                }
                let due = node.lease.wake_at().is_some_and(|at| at <= node.clock);
                if due && !node.paused {
                    self.tell(name, LeaseMessage::Tick);
                }
            }
            self.check();
        }
    }

    fn check(&self) {
        for shard in ShardId::all() {
            let serving = self.nodes.iter().filter(|(_, node)| node.serving(shard));
            let names: Vec<_> = serving.map(|(name, _)| name).collect();
            assert!(names.len() <= 1, "shard {shard} is served by {names:?}");
        }
    }
}
