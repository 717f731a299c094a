//! The way of a call to the node that serves its shard, which may be on its way itself.

use std::time::Duration;

use abide_core::{call::CallError, ids::ShardId};
use tokio::{
    sync::futures::Notified,
    time::{Instant, timeout_at},
};

use crate::cluster::Cluster;

/// Where a shard is.
pub(crate) enum Place {
    /// It is served by this node.
    Here,
    /// By another one.
    At(String),
    /// By nobody, as far as this node knows.
    Nowhere,
}

/// How long a node is left in peace that said that it does not serve a shard, should nothing be heard of
/// the shard meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// The way of one call.
pub(crate) struct Way<'a> {
    cluster: &'a Cluster,
    pub(crate) shard: ShardId,
    /// The call may be made any number of times.
    pub(crate) repeatable: bool,
    /// When the last try began, and a way to learn that the shard has moved since.
    tried_at: Instant,
    moved: Option<Notified<'a>>,
    /// Until when it is tried.
    until: Option<Instant>,
}

impl<'a> Way<'a> {
    pub(crate) fn new(cluster: &'a Cluster, shard: ShardId, repeatable: bool) -> Self {
        let moved = cluster.until_moved(shard);
        Self { cluster, shard, repeatable, tried_at: Instant::now(), moved, until: None }
    }

    /// Waits until it is worth trying again. Gives the failure back if that cannot be, or if it was
    /// tried for long enough.
    pub(crate) async fn wait(&mut self, failed: CallError) -> Result<(), CallError> {
        if !self.may_repeat(&failed) {
            return Err(failed);
        }
        let (now, patience) = (Instant::now(), self.cluster.patience());
        // A call may have waited for its run for long before its shard moved.
        self.until = self.until.filter(|_| now < self.tried_at + patience);
        let until = *self.until.get_or_insert(now + patience);
        if now >= until {
            return Err(failed);
        }
        if let Some(moved) = self.moved.take() {
            drop(timeout_at(until.min(now + PAUSE), moved).await);
        }
        self.tried_at = Instant::now();
        self.moved = self.cluster.until_moved(self.shard);
        Ok(())
    }

    /// What was not served has not happened. Of anything else that passes nobody knows.
    fn may_repeat(&self, failed: &CallError) -> bool {
        match failed {
            CallError::NotServed => true,
            CallError::Reset | CallError::Unavailable(_) => self.repeatable,
            _ => false,
        }
    }
}
