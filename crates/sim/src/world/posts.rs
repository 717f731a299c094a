//! Messages to the shards of a node.

use abide_core::ids::ShardId;
use abide_shard::{message::Message, node::NodeInput};

use super::{
    World,
    nodes::{NodeEvent, NodeId},
};
use crate::{checks::Checked, schedule::MILLIS, settings::delay};

impl World {
    /// Sends a message to a shard of the same node: it may be lost, late, reordered or duplicated.
    pub(super) fn send(&mut self, node: NodeId, shard: ShardId, message: Message) {
        if self.trouble(self.settings.odds.link_lost) {
            return;
        }
        if self.trouble(self.settings.odds.link_twice) {
            let later = delay(&mut self.rng, 10 * MILLIS, true);
            self.plan_at_node(node, later, NodeEvent::ToShard(shard, message.clone()));
        }
        let slow = self.trouble(self.settings.odds.link_slow);
        let later = delay(&mut self.rng, 10 * MILLIS, slow);
        self.plan_at_node(node, later, NodeEvent::ToShard(shard, message));
    }

    /// Sends a message to every shard that the node serves.
    pub(super) fn tell_shards(&mut self, node: NodeId, message: &Message) {
        let shards: Vec<_> = self.nodes[node].shards.keys().copied().collect();
        for shard in shards {
            let later = delay(&mut self.rng, 3 * MILLIS, false);
            self.plan_at_node(node, later, NodeEvent::ToShard(shard, message.clone()));
        }
    }

    /// Delivers a message to a shard of the node. If it is not served here, the node's machine is
    /// told.
    pub(super) fn deliver_to_shard(
        &mut self,
        node: NodeId,
        shard: ShardId,
        message: Message,
    ) -> Checked {
        match self.nodes[node].shards.get(&shard).copied() {
            Some(slot) => self.deliver(slot, message),
            None => self.tell(node, NodeInput::Undelivered(shard, message)),
        }
    }
}
