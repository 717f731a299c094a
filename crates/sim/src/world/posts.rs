//! Messages to the shards of a node.

use abide_core::ids::ShardId;
use abide_shard::message::Message;

use super::{
    World,
    nodes::{NodeEvent, NodeId},
};
use crate::{checks::Checked, schedule::MILLIS, settings::delay};

impl World {
    /// Sends a message to a shard of the same node: it may be lost, late, overtaken, or come twice.
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

    /// A message for a shard that the node serves. Else, or if it closes, it is lost, but for the credit
    /// of a match.
    pub(super) fn deliver_to_shard(
        &mut self,
        node: NodeId,
        shard: ShardId,
        message: Message,
    ) -> Checked {
        let slot = self.nodes[node].shards.get(&shard).copied();
        let open = slot.filter(|slot| self.slots.get(slot).is_some_and(|slot| !slot.closing));
        match (open, message) {
            (Some(slot), message) => self.deliver(slot, message),
            (None, Message::Matched(offer, taker)) => self.unmatched(node, offer, taker),
            (None, _) => Ok(()),
        }
    }
}
