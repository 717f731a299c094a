//! What all parts of one worker share.

use std::sync::Arc;

use abide_core::{
    dispatch::{self, QueueKey},
    ids::ShardId,
};
use futures_util::future::join_all;
use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore, watch},
};

use super::{attempts::Attempts, eager::EagerSlots, slots::Slots};
use crate::{
    registry::Registry,
    transport::{SessionSender, Transport},
};

/// What all parts of one worker share.
pub(super) struct Shared {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) runtime: Handle,
    pub(super) registry: Registry,
    /// The worker as the engine knows it.
    pub(super) worker: dispatch::Worker,
    pub(super) queue: String,
    pub(super) tasks: Slots,
    pub(super) activities: Slots,
    pub(super) eager: EagerSlots,
    /// How many local activities may run at once.
    pub(super) local_activities: Arc<Semaphore>,
    pub(super) attempts: Attempts,
    /// The way to the engine while there is a stream.
    pub(super) stream: watch::Sender<Option<Arc<dyn SessionSender>>>,
    /// Some work ended: whoever waits for the last of it may look again.
    pub(super) ended: Notify,
}

impl Shared {
    /// How much the worker takes at once of which queues.
    pub(super) fn takes(&self) -> Vec<(QueueKey, usize)> {
        let takes = [self.tasks.takes(), self.activities.takes()];
        takes.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// A stream was opened. A worker that shuts down opens one for its results alone.
    pub(super) fn connected(&self, sender: &Arc<dyn SessionSender>, closing: bool) {
        self.stream.send_replace(Some(Arc::clone(sender)));
        if !closing {
            self.tasks.open(sender);
            self.activities.open(sender);
        }
    }

    /// The stream has ended.
    pub(super) fn disconnected(&self) {
        self.stop_credit();
        self.stream.send_replace(None);
    }

    fn stop_credit(&self) {
        self.tasks.close();
        self.activities.close();
    }

    /// The worker shuts down: nothing new is taken, not even what its own workflows ask for.
    pub(super) fn stop(&self) {
        self.stop_credit();
        self.eager.close();
        let sender = self.stream.borrow().clone();
        if let Some(sender) = sender {
            sender.withdraw();
        }
    }

    /// Nothing is under way, nor promised to come.
    pub(super) fn idle(&self) -> bool {
        self.tasks.idle() && self.attempts.none() && self.eager.none_promised()
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle_again(&self) {
        while !self.idle() {
            self.ended.notified().await;
        }
    }

    /// The way to the engine, as soon as there is one; none if there never will be.
    pub(super) async fn sender(&self) -> Option<Arc<dyn SessionSender>> {
        let mut stream = self.stream.subscribe();
        let open = stream.wait_for(Option::is_some).await.ok()?;
        open.clone()
    }

    /// Tells a shard, or all of them, which attempts of their activities the worker has.
    pub(super) fn present(self: &Arc<Self>, shard: Option<ShardId>) {
        let held = self.attempts.of_shard(shard);
        if held.is_empty() {
            return;
        }
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            // All at once: the engine waits for all of them only so long.
            join_all(held.iter().map(|attempt| shared.present_one(attempt))).await;
        });
    }
}

/// A workflow task's place; dropped when the task is answered or given up.
pub(super) struct TaskSlot(Arc<Shared>);

impl TaskSlot {
    /// Takes the place of a task that has come.
    pub(super) fn take(shared: &Arc<Shared>) -> Self {
        shared.tasks.take();
        Self(Arc::clone(shared))
    }
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        self.0.tasks.give_back();
        self.0.ended.notify_one();
    }
}
