//! What a node knows of its cluster, shared by all its tasks: the way to other nodes, and until when its
//! own lease is good.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use abide_shard::lease::{Lease, LeaseOptions};
use tokio::sync::watch;

use crate::{clock::since_boot, peers::Peers};

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
    /// Until when the lease is good, in nanoseconds of [`since_boot`].
    good_until: AtomicU64,
    /// The lease was good when it was last looked at.
    was_good: watch::Sender<bool>,
    /// Rows of nodes that have missed renewals.
    silent: Mutex<BTreeSet<String>>,
}

impl Cluster {
    pub(crate) fn new(membership: &Membership) -> Self {
        Self {
            peers: Arc::clone(&membership.peers),
            good_until: AtomicU64::new(0),
            was_good: watch::Sender::new(false),
            silent: Mutex::default(),
        }
    }

    /// How the lease stands.
    pub(crate) fn standing(&self, lease: &Lease) {
        let until = lease.good_until();
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.good_until.store(nanos, Ordering::SeqCst);
        self.was_good.send_replace(self.trusted());
        *lock(&self.silent) = lease.silent().map(str::to_owned).collect();
    }

    /// The node of this row has missed renewals.
    pub(crate) fn silent(&self, row: &str) -> bool {
        lock(&self.silent).contains(row)
    }

    /// The lease is good at this moment, so that nobody else has changed what this node remembers.
    pub(crate) fn trusted(&self) -> bool {
        since_boot().as_nanos() < u128::from(self.good_until.load(Ordering::SeqCst))
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
}

/// What is behind these locks is whole whenever they are released, also by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
