//! The nodes that serve one store, as operators see them.

/// A node, as recorded in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeListing {
    pub name: String,
    /// Address at which other nodes reach it.
    pub address: String,
    pub standing: NodeStanding,
    /// Number of shards that it owns, of [`crate::ids::ShardId::COUNT`].
    pub shards: usize,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStanding {
    /// Serves its share of the shards.
    Alive,
    /// Is handing over its shards.
    Leaving,
    /// Has left, or other nodes have taken its shards.
    Gone,
    /// Has missed renewals of its lease, as seen by another node: it is stalled, cut off or dead.
    Silent,
    /// A newer version wrote its entry, which this version cannot read.
    Unreadable,
}

impl NodeStanding {
    pub const ALL: [Self; 5] =
        [Self::Alive, Self::Leaving, Self::Gone, Self::Silent, Self::Unreadable];
}
