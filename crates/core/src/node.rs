//! The nodes that serve the runs of one store, as operators see them.

/// A node, as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeListing {
    /// Its name.
    pub name: String,
    /// Where others reach it.
    pub address: String,
    /// How it stands.
    pub standing: NodeStanding,
    /// How many shards it holds, of [`crate::ids::ShardId::COUNT`].
    pub shards: usize,
}

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeStanding {
    /// It serves its share.
    Alive,
    /// It hands over what it serves.
    Leaving,
    /// It has left, or others have taken what it served.
    Gone,
    /// It has missed renewals of its lease, as another node has seen: it stands still, is cut off, or
    /// has died and will be gone soon.
    Silent,
    /// A newer version wrote of it what this one cannot read.
    Unreadable,
}

impl NodeStanding {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Alive, Self::Leaving, Self::Gone, Self::Silent, Self::Unreadable];
}
