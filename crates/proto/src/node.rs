//! Nodes, as operators see them.

use abide_core::{
    limits::InvalidField,
    node::{NodeListing, NodeStanding},
    operation::ListNodes,
};

use crate::{
    field::{case, enumeration},
    generated as wire,
};

enumeration!(NodeStanding, NodeStanding { Alive, Leaving, Gone, Silent, Unreadable });

impl From<NodeListing> for wire::NodeListing {
    fn from(node: NodeListing) -> Self {
        let NodeListing { name, address, standing, shards } = node;
        Self {
            name,
            address,
            standing: wire::NodeStanding::from(standing).into(),
            shards: u32::try_from(shards).unwrap_or(u32::MAX),
        }
    }
}

impl TryFrom<wire::NodeListing> for NodeListing {
    type Error = InvalidField;

    fn try_from(node: wire::NodeListing) -> Result<Self, InvalidField> {
        let wire::NodeListing { name, address, standing, shards } = node;
        let standing = case::<_, wire::NodeStanding>("standing", standing)?;
        Ok(Self { name, address, standing, shards: usize::try_from(shards).unwrap_or(usize::MAX) })
    }
}

impl From<ListNodes> for wire::ListNodesRequest {
    fn from(ListNodes: ListNodes) -> Self {
        Self {}
    }
}

impl TryFrom<wire::ListNodesRequest> for ListNodes {
    type Error = InvalidField;

    fn try_from(_: wire::ListNodesRequest) -> Result<Self, InvalidField> {
        Ok(Self)
    }
}
