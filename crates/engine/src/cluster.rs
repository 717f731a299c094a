//! What a node knows of its cluster: where each shard is, which nodes there are, at which of them a
//! foreign worker is connected, and until when its own lease is good.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use abide_core::{
    call::Worker,
    ids::{RunId, SessionId, ShardId},
};
use abide_shard::{
    lease::LeaseOptions,
    message::{Offer, Work},
};

use crate::peers::{PeerMessage, Peers};

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
    own: String,
    view: Mutex<View>,
    /// Until when the lease is good, in nanoseconds of [`crate::clock::since_boot`].
    good_until: AtomicU64,
    /// The lease was good when it was last looked at.
    was_good: AtomicBool,
}

#[derive(Default)]
struct View {
    owners: BTreeMap<ShardId, String>,
    nodes: BTreeSet<String>,
    /// Nodes to which there is a link.
    linked: BTreeSet<String>,
    /// Rows of nodes that have missed renewals.
    silent: BTreeSet<String>,
    /// Workers of other nodes that have had work of this one.
    guests: BTreeMap<SessionId, String>,
    /// Offers that were passed on to a node, which has not answered.
    passed: BTreeMap<String, BTreeSet<Offer>>,
    /// Matches of workers here that a node was told, and has not answered.
    lent: BTreeMap<String, Vec<(Offer, Worker)>>,
}

impl Cluster {
    pub(crate) fn new(membership: &Membership) -> Self {
        Self {
            peers: Arc::clone(&membership.peers),
            own: membership.lease.address.clone(),
            view: Mutex::default(),
            good_until: AtomicU64::new(0),
            was_good: AtomicBool::new(false),
        }
    }

    /// The rows were read: this is where the shards are, and which nodes there are.
    pub(crate) fn seen(&self, owners: BTreeMap<ShardId, String>, mut nodes: BTreeSet<String>) {
        nodes.remove(&self.own);
        let changed = {
            let mut view = self.view();
            view.owners = owners;
            let changed = view.nodes != nodes;
            view.nodes.clone_from(&nodes);
            changed
        };
        if changed {
            self.peers.keep(nodes);
        }
    }

    /// These rows were not renewed when they should have been.
    pub(crate) fn saw_silent(&self, rows: BTreeSet<String>) {
        self.view().silent = rows;
    }

    /// The node of this row has missed renewals.
    pub(crate) fn silent(&self, row: &str) -> bool {
        self.view().silent.contains(row)
    }

    /// The lease is good until then.
    pub(crate) fn trust_until(&self, until: Option<Duration>) {
        let nanos = until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX));
        self.good_until.store(nanos, Ordering::SeqCst);
    }

    /// The lease is good at this moment, so that nobody else has changed what this node remembers.
    pub(crate) fn trusted(&self) -> bool {
        let now = crate::clock::since_boot().as_nanos();
        now < u128::from(self.good_until.load(Ordering::SeqCst))
    }

    /// The lease was good at the last of these looks and is good no more.
    pub(crate) fn lease_lost(&self) -> bool {
        let good = self.trusted();
        self.was_good.swap(good, Ordering::SeqCst) && !good
    }

    /// How much longer the lease is good.
    pub(crate) fn lease_left(&self) -> Duration {
        let until = Duration::from_nanos(self.good_until.load(Ordering::SeqCst));
        until.saturating_sub(crate::clock::since_boot())
    }

    /// There is a link to a node, or there is none any more.
    pub(crate) fn link(&self, node: &str, up: bool) {
        let mut view = self.view();
        if up {
            view.linked.insert(node.to_owned());
        } else {
            view.linked.remove(node);
        }
    }

    /// How many other nodes there are, and to how many there is a link.
    pub(crate) fn others(&self) -> (usize, usize) {
        let view = self.view();
        (view.nodes.len(), view.linked.len())
    }

    /// The other node that serves the shard, as far as this one knows.
    pub(crate) fn owner(&self, shard: ShardId) -> Option<String> {
        self.view().owners.get(&shard).filter(|owner| **owner != self.own).cloned()
    }

    /// Tells all other nodes.
    pub(crate) fn broadcast(&self, message: &PeerMessage) {
        let nodes = self.view().nodes.clone();
        for node in nodes {
            self.peers.send(&node, message.clone());
        }
    }

    /// A worker of another node takes work of this one.
    pub(crate) fn welcome(&self, session: SessionId, node: &str) {
        self.view().guests.insert(session, node.to_owned());
    }

    /// Where a worker is that has had work of this node.
    pub(crate) fn home_of(&self, session: &SessionId) -> Option<String> {
        self.view().guests.get(session).cloned()
    }

    /// A worker of another node has gone.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.view().guests.remove(session);
    }

    /// An offer is on its way to a node.
    pub(crate) fn passed(&self, node: &str, offer: Offer) {
        self.view().passed.entry(node.to_owned()).or_default().insert(offer);
    }

    /// The node has answered.
    pub(crate) fn answered(&self, node: &str, offer: &Offer) {
        if let Some(passed) = self.view().passed.get_mut(node) {
            passed.remove(offer);
        }
    }

    /// What was passed on to a node that has not answered, to be offered anew.
    pub(crate) fn take_passed(&self, node: &str) -> BTreeSet<Offer> {
        self.view().passed.remove(node).unwrap_or_default()
    }

    /// A node is told that a worker here takes its work.
    pub(crate) fn lent(&self, node: &str, offer: Offer, worker: Worker) {
        self.view().lent.entry(node.to_owned()).or_default().push((offer, worker));
    }

    /// The node has sent the work, or said that it has gone.
    pub(crate) fn settled(&self, node: &str, run: RunId, work: Work) {
        if let Some(lent) = self.view().lent.get_mut(node) {
            lent.retain(|(offer, _)| (offer.run, offer.work) != (run, work));
        }
    }

    /// The matches that a node may never have heard of.
    pub(crate) fn take_lent(&self, node: &str) -> Vec<(Offer, Worker)> {
        self.view().lent.remove(node).unwrap_or_default()
    }

    /// A node cannot be reached; gives its workers that have had work of this one, and the offers that
    /// it has not answered.
    pub(crate) fn lost(&self, node: &str) -> (Vec<SessionId>, BTreeSet<Offer>) {
        let mut view = self.view();
        let gone: Vec<_> = view
            .guests
            .iter()
            .filter(|(_, home)| **home == *node)
            .map(|(session, _)| session.clone())
            .collect();
        for session in &gone {
            view.guests.remove(session);
        }
        (gone, view.passed.remove(node).unwrap_or_default())
    }

    /// What is behind the lock is whole whenever it is released, also by a panic.
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
