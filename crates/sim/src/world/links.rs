//! Messages between shards, and to and from the queues.

use abide_core::ids::ShardId;
use abide_shard::{
    message::Message,
    queue::{QueueMessage, QueueOutput},
};

use super::{Event, World};
use crate::{checks::Checked, names::shards, schedule::MILLIS, settings::delay, trace::brief};

impl World {
    /// Sends a message to another shard: it may be lost, late, overtaken, or come twice.
    pub(super) fn send(&mut self, target: ShardId, message: Message) {
        if self.trouble(self.settings.odds.link_lost) {
            return;
        }
        if self.trouble(self.settings.odds.link_twice) {
            let later = delay(&mut self.rng, 10 * MILLIS, true);
            self.plan_in(later, Event::ToShard(target, message.clone()));
        }
        let slow = self.trouble(self.settings.odds.link_slow);
        let later = delay(&mut self.rng, 10 * MILLIS, slow);
        self.plan_in(later, Event::ToShard(target, message));
    }

    /// Sends a message to every shard.
    pub(super) fn send_to_all(&mut self, message: &Message) {
        for shard in shards() {
            let later = delay(&mut self.rng, 3 * MILLIS, false);
            self.plan_in(later, Event::ToShard(shard, message.clone()));
        }
    }

    /// Something happens to the queues; what they ask for is carried out.
    pub(super) fn tell_queues(&mut self, message: QueueMessage) -> Checked {
        self.trace.note(None, || format!("{:>12} queues <- {}", self.now, brief(&message)));
        self.queues.handle(message);
        while let Some(output) = self.queues.poll() {
            self.trace.note(None, || format!("{:>12} queues -> {}", self.now, brief(&output)));
            match output {
                QueueOutput::Match(offer, taker) => {
                    let later = delay(&mut self.rng, 2 * MILLIS, false);
                    let message = Message::Matched(offer.clone(), taker);
                    self.plan_in(later, Event::ToShard(offer.shard, message));
                }
                QueueOutput::Refill(queue) => self.send_to_all(&Message::Refill(queue)),
                QueueOutput::NewBuild(queue, build) => {
                    self.send_to_all(&Message::NewBuild(queue, build));
                }
                // The world has one set of queues, which no other node lends to.
                QueueOutput::Pass(..) | QueueOutput::Declined(_) | QueueOutput::Spare { .. } => {}
            }
        }
        Ok(())
    }
}
