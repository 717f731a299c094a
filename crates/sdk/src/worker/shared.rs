//! State that all parts of one worker share.

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

use super::{
    attempts::Attempts,
    eager::EagerSlots,
    metrics::{SlotMetrics, WorkerMetrics, count},
    slots::Slots,
    unserved::Unserved,
};
use crate::{
    codec::Codecs,
    registry::Registry,
    transport::{SessionSender, Transport},
};

/// State that all parts of one worker share.
pub(super) struct WorkerCore {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) codecs: Codecs,
    pub(super) runtime: Handle,
    pub(super) registry: Registry,
    /// The worker's description, as sent to the engine.
    pub(super) worker: dispatch::Worker,
    pub(super) queue: String,
    pub(super) tasks: Slots,
    pub(super) activities: Slots,
    pub(super) eager: EagerSlots,
    /// One permit for each local activity that may run.
    pub(super) local_activities: Arc<Semaphore>,
    pub(super) attempts: Attempts,
    /// The sender of the current stream; none while disconnected.
    pub(super) stream: watch::Sender<Option<Arc<dyn SessionSender>>>,
    /// Notified when work ends, for those that wait until the worker is idle.
    pub(super) ended: Notify,
    pub(super) metrics: WorkerMetrics,
    /// The largest number of local activities that run at once.
    pub(super) locals_count: usize,
    pub(super) unserved: Unserved,
}

impl WorkerCore {
    /// The queues, and how much work of each the worker takes at once.
    pub(super) fn takes(&self) -> Vec<(QueueKey, usize)> {
        let takes = [self.tasks.takes(), self.activities.takes()];
        takes.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// How much work is in flight.
    pub(super) fn slot_figures(&self) -> SlotMetrics {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let ((tasks_used, tasks), (used, count)) = (self.tasks.used(), self.activities.used());
        let (eager_used, eager) = self.eager.used();
        let locals = self.locals_count.clamp(1, Semaphore::MAX_PERMITS);
        SlotMetrics {
            tasks_used: number(tasks_used),
            tasks: number(tasks),
            activities_used: number(used + eager_used),
            activities: number(count + eager),
            local_activities_used: number(
                locals.saturating_sub(self.local_activities.available_permits()),
            ),
            local_activities: number(locals),
        }
    }

    /// A stream was opened. During shutdown it is opened only to deliver results.
    pub(super) fn connected(&self, sender: &Arc<dyn SessionSender>, closing: bool) {
        count(&self.metrics.connection().connects);
        self.stream.send_replace(Some(Arc::clone(sender)));
        if !closing {
            self.tasks.open(sender);
            self.activities.open(sender);
        }
    }

    pub(super) fn disconnected(&self) {
        self.stop_credit();
        self.stream.send_replace(None);
    }

    fn stop_credit(&self) {
        self.tasks.close();
        self.activities.close();
    }

    /// Shutdown begins: no new work is taken, not even eager activities.
    pub(super) fn stop(&self) {
        self.stop_credit();
        self.eager.close();
        let sender = self.stream.borrow().clone();
        if let Some(sender) = sender {
            sender.withdraw();
        }
    }

    /// No work is in flight or promised.
    pub(super) fn idle(&self) -> bool {
        self.tasks.idle() && self.attempts.none() && self.eager.none_promised()
    }

    /// Waits until no work is in flight.
    pub(super) async fn idle_again(&self) {
        while !self.idle() {
            self.ended.notified().await;
        }
    }

    /// The sender of the current stream, or of the next one; none if there will never be one.
    pub(super) async fn sender(&self) -> Option<Arc<dyn SessionSender>> {
        let mut stream = self.stream.subscribe();
        let open = stream.wait_for(Option::is_some).await.ok()?;
        open.clone()
    }

    /// Tells a shard, or all shards, which attempts of their activities the worker holds.
    pub(super) fn present(self: &Arc<Self>, shard: Option<ShardId>) {
        let held = self.attempts.of_shard(shard);
        if held.is_empty() {
            return;
        }
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            // Concurrently: the engine waits for presented attempts only for a limited time.
            join_all(held.iter().map(|attempt| shared.present_one(attempt))).await;
        });
    }
}

/// The slot of a workflow task or query, returned when dropped.
pub(super) struct TaskSlot(Arc<WorkerCore>);

impl TaskSlot {
    /// Takes a slot for a task that has arrived.
    pub(super) fn take(shared: &Arc<WorkerCore>) -> Self {
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
