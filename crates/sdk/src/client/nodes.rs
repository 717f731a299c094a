//! The nodes of a cluster, as clients see them.

use abide_core::node;

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// The address at which other nodes reach it.
    pub address: String,
    /// Whether it serves.
    pub status: NodeStatus,
    /// How many shards it owns.
    pub shards: usize,
}

/// Whether a node serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeStatus {
    /// It serves its share of the shards.
    Alive,
    /// It is handing over its shards.
    Leaving,
    /// It has left, or other nodes have taken its shards.
    Gone,
    /// It has missed renewals of its lease: it is stalled, cut off or dead.
    Silent,
    /// A newer version wrote its entry, which the asked node cannot read.
    Unreadable,
}

impl From<node::NodeListing> for NodeInfo {
    fn from(listing: node::NodeListing) -> Self {
        let status = match listing.standing {
            node::NodeStanding::Alive => NodeStatus::Alive,
            node::NodeStanding::Leaving => NodeStatus::Leaving,
            node::NodeStanding::Gone => NodeStatus::Gone,
            node::NodeStanding::Silent => NodeStatus::Silent,
            node::NodeStanding::Unreadable => NodeStatus::Unreadable,
        };
        Self { name: listing.name, address: listing.address, status, shards: listing.shards }
    }
}
