//! What a node knows about its cluster, shared by all its tasks: the transport to other nodes, and
//! until when its own lease is valid.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use abide_shard::lease::{Lease, LeaseOptions};
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    clock::since_boot,
    lock::lock,
    peers::{NoPeers, Peers},
};

/// Membership of an engine in a cluster.
#[derive(Clone)]
pub struct Membership {
    /// Identity of the node and length of its lease.
    pub lease: LeaseOptions,
    /// The transport to other nodes.
    pub peers: Arc<dyn Peers>,
}

impl Membership {
    /// Membership of a node that no other can reach. It joins when no other node is alive, and is then
    /// the only one: a second process on the same store waits for its lease to end.
    pub fn only(node: impl Into<String>) -> Self {
        let lease = LeaseOptions {
            node: node.into(),
            incarnation: Uuid::new_v4().as_u64_pair().0,
            address: String::new(),
            lease: LeaseOptions::LEASE,
        };
        Self { lease, peers: Arc::new(NoPeers) }
    }
}

/// The cluster, as one node sees it.
pub(crate) struct Cluster {
    pub(crate) peers: Arc<dyn Peers>,
    /// Length of this node's lease.
    pub(crate) lease: Duration,
    /// Until when the lease is valid, in nanoseconds of [`since_boot`].
    good_until: AtomicU64,
    /// Whether the lease was valid when it was last published.
    was_good: watch::Sender<bool>,
    /// Rows of nodes that have missed renewals.
    silent: Mutex<BTreeSet<String>>,
}

impl Cluster {
    pub(crate) fn new(membership: &Membership) -> Self {
        Self {
            peers: Arc::clone(&membership.peers),
            lease: membership.lease.lease,
            good_until: AtomicU64::new(0),
            was_good: watch::Sender::new(false),
            silent: Mutex::default(),
        }
    }

    /// Publishes the state of the lease.
    pub(crate) fn standing(&self, lease: &Lease) {
        let until = lease.good_until();
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.good_until.store(nanos, Ordering::SeqCst);
        self.was_good.send_replace(self.trusted());
        *lock(&self.silent) = lease.silent().map(str::to_owned).collect();
    }

    /// Whether the node of this row has missed renewals.
    pub(crate) fn silent(&self, row: &str) -> bool {
        lock(&self.silent).contains(row)
    }

    /// Whether the lease is valid at this moment, so that no other node can have changed what this
    /// one remembers.
    pub(crate) fn trusted(&self) -> bool {
        since_boot().as_nanos() < u128::from(self.good_until.load(Ordering::SeqCst))
    }

    /// Waits until the published state of the lease is valid, or no longer valid.
    pub(crate) async fn until_lease(&self, good: bool) {
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(self.was_good.subscribe().wait_for(|was_good| *was_good == good).await);
    }

    /// How much longer the lease is valid.
    pub(crate) fn lease_left(&self) -> Duration {
        let until = Duration::from_nanos(self.good_until.load(Ordering::SeqCst));
        until.saturating_sub(since_boot())
    }
}
