//! What a node knows of its cluster, shared by all its tasks: the way to other nodes, what it knows of
//! them, and until when its own lease is good. Nothing is sent while its lock is held.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use abide_core::ids::ShardId;
use abide_shard::{
    lease::{Lease, LeaseOptions},
    neighbours::Neighbours,
};
use tokio::sync::{Notify, futures::Notified, watch};

use crate::{
    clock::since_boot,
    peers::{PeerMessage, Peers},
};

/// How an engine takes part in a cluster.
#[derive(Clone)]
pub struct Membership {
    /// Who the node is and how long its lease lasts.
    pub lease: LeaseOptions,
    /// The way to other nodes.
    pub peers: Arc<dyn Peers>,
}

/// The cluster, as one node sees it.
pub(crate) struct Cluster {
    pub(crate) peers: Arc<dyn Peers>,
    neighbours: Mutex<Neighbours>,
    /// Those who wait until a shard is served, by shard.
    waiting: BTreeMap<ShardId, Notify>,
    /// Until when the lease is good, in nanoseconds of [`since_boot`].
    good_until: AtomicU64,
    /// The lease was good when it was last looked at.
    was_good: watch::Sender<bool>,
    /// Rows of nodes that have missed renewals.
    silent: Mutex<BTreeSet<String>>,
    /// How long a call waits for a shard that nobody serves.
    patience: Duration,
}

impl Cluster {
    pub(crate) fn new(membership: &Membership) -> Self {
        let LeaseOptions { address, lease, .. } = &membership.lease;
        Self {
            peers: Arc::clone(&membership.peers),
            neighbours: Mutex::new(Neighbours::new(address.clone())),
            waiting: ShardId::all().map(|shard| (shard, Notify::new())).collect(),
            good_until: AtomicU64::new(0),
            was_good: watch::Sender::new(false),
            silent: Mutex::default(),
            // So long it takes others to find out that a node is dead, and a little more.
            patience: *lease + *lease / 5,
        }
    }

    /// How the lease stands, and where the shards are as far as it knows.
    pub(crate) fn standing(&self, lease: &Lease) {
        let until = lease.good_until();
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.good_until.store(nanos, Ordering::SeqCst);
        *lock(&self.silent) = lease.silent().map(str::to_owned).collect();
        let changes = self.neighbours().read(lease.addresses(), lease.nodes(), lease.read_at());
        for shard in changes.moved {
            self.moved(shard);
        }
        if let Some(nodes) = changes.nodes {
            self.peers.keep(nodes);
        }
    }

    /// The node of this row has missed renewals.
    pub(crate) fn silent(&self, row: &str) -> bool {
        lock(&self.silent).contains(row)
    }

    /// The lease is good at this moment, so that nobody else has changed what this node remembers.
    pub(crate) fn trusted(&self) -> bool {
        since_boot().as_nanos() < u128::from(self.good_until.load(Ordering::SeqCst))
    }

    /// How long a call waits for a shard that nobody serves.
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// The lease was good at the last of these looks and is good no more.
    pub(crate) fn lease_lost(&self) -> bool {
        let good = self.trusted();
        self.was_good.send_replace(good) && !good
    }

    /// Waits until the lease is seen to be good, or to be good no more.
    pub(crate) async fn until_lease(&self, good: bool) {
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(self.was_good.subscribe().wait_for(|was_good| *was_good == good).await);
    }

    /// How much longer the lease is good.
    pub(crate) fn lease_left(&self) -> Duration {
        let until = Duration::from_nanos(self.good_until.load(Ordering::SeqCst));
        until.saturating_sub(since_boot())
    }

    /// How many other nodes there are, and to how many there is a link.
    pub(crate) fn others(&self) -> (usize, usize) {
        let neighbours = self.neighbours();
        (neighbours.nodes().len(), neighbours.links())
    }

    /// The other node that serves the shard, as far as this one knows.
    pub(crate) fn owner(&self, shard: ShardId) -> Option<String> {
        self.neighbours().owner(shard).cloned()
    }

    /// Another node has these shards in memory.
    pub(crate) fn opened(&self, node: &str, shards: &BTreeSet<ShardId>) {
        self.neighbours().opened(node, shards, since_boot());
        for shard in shards {
            self.moved(*shard);
        }
    }

    /// The shard is served by somebody else than before.
    pub(crate) fn moved(&self, shard: ShardId) {
        if let Some(waiting) = self.waiting.get(&shard) {
            waiting.notify_waiters();
        }
    }

    /// Ends when the shard moves the next time, counted from this call.
    pub(crate) fn until_moved(&self, shard: ShardId) -> Option<Notified<'_>> {
        self.waiting.get(&shard).map(Notify::notified)
    }

    /// Tells all other nodes.
    pub(crate) fn broadcast(&self, message: &PeerMessage) {
        let nodes = self.neighbours().nodes().clone();
        for node in nodes {
            self.peers.send(&node, message.clone());
        }
    }

    pub(crate) fn neighbours(&self) -> MutexGuard<'_, Neighbours> {
        lock(&self.neighbours)
    }
}

/// What is behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
