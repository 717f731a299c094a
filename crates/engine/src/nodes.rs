//! Lists the nodes of the cluster from the registry, for operators.

use abide_core::{
    ids::ShardId,
    node::{NodeListing, NodeStanding},
};
use abide_shard::lease::{NODE_PREFIX, NodeRow, NodeState};
use abide_store::{ReadError, rows::RegistryRow};

use crate::{cluster::Cluster, node::Node};

/// All nodes in the registry by name, or only this one if it is alone.
pub(crate) async fn list(node: &Node) -> Result<Vec<NodeListing>, ReadError> {
    let Some(cluster) = &node.cluster else {
        return Ok(vec![NodeListing {
            name: node.name.clone(),
            address: String::new(),
            standing: NodeStanding::Alive,
            shards: node.shards_served(),
        }]);
    };
    let rows = node.store.registry(NODE_PREFIX.into()).await?;
    Ok(rows.into_iter().map(|row| listing(cluster, row)).collect())
}

fn listing(cluster: &Cluster, row: RegistryRow) -> NodeListing {
    let name = row.name.strip_prefix(NODE_PREFIX).unwrap_or(&row.name).to_owned();
    let Ok(NodeRow { state, shards, address, .. }) = NodeRow::decode(&row.value) else {
        // A row that cannot be decoded may hold every shard.
        let (address, standing) = (String::new(), NodeStanding::Unreadable);
        return NodeListing { name, address, standing, shards: ShardId::all().count() };
    };
    let standing = match state {
        NodeState::Gone => NodeStanding::Gone,
        NodeState::Alive | NodeState::Leaving if cluster.silent(&row.name) => NodeStanding::Silent,
        NodeState::Alive => NodeStanding::Alive,
        NodeState::Leaving => NodeStanding::Leaving,
    };
    NodeListing { name, address, standing, shards: shards.len() }
}
