//! Identity of a node and length of its lease. All other times are fractions of the lease, so that
//! no setting can contradict another.

use std::time::Duration;

/// Identity of a node and length of its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// Name of the node; stays the same after a restart.
    pub node: String,
    /// Unique per process, so that a node recognises its own writes.
    pub incarnation: u64,
    /// Address at which other nodes reach it; empty if they cannot, and then it must be the only
    /// node.
    pub address: String,
    /// How long a node may be silent before others take its shards. If two nodes have different
    /// leases, the longer one counts between them.
    pub lease: Duration,
}

impl LeaseOptions {
    /// Default lease: long enough to survive a slow store, short enough to move shards before
    /// callers give up.
    pub const LEASE: Duration = Duration::from_secs(5);

    /// How long a call waits for a shard without an owner: by then other nodes have noticed a dead
    /// node and taken its shards.
    pub fn patience(&self) -> Duration {
        self.lease + self.lease / 5
    }

    /// Five renewals per lease, of which four may fail.
    pub(super) fn renewal_interval(&self) -> Duration {
        self.lease / 5
    }

    /// Interval between two reads of all rows; it bounds how late a renewal or a death is noticed.
    pub(super) fn watch_interval(&self) -> Duration {
        self.lease / 10
    }

    /// How long a leaving node waits for others to take what it has released.
    pub(super) fn farewell(&self) -> Duration {
        self.lease / 2
    }

    /// Pause before a failed request is retried, and between reads while shards are still to be
    /// opened.
    pub(super) fn retry_pause(&self) -> Duration {
        self.lease / 20
    }

    /// The longest time between two reads that counts as watching: a clock that jumps must not
    /// expel a live node.
    pub(super) fn watched_max(&self) -> Duration {
        self.lease / 2
    }

    /// How long a node trusts a renewal requested at `start`. The margin of a fifth allows for
    /// clocks that run at different speeds.
    pub(super) fn term(&self, start: Duration) -> Term {
        Term { start, until: start + (self.lease - self.lease / 5) }
    }
}

/// The time in which a node trusts its lease. A clock before `start` has gone back and is not
/// trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) start: Duration,
    pub(super) until: Duration,
}

impl Term {
    pub(super) fn covers(self, monotonic: Duration) -> bool {
        (self.start..self.until).contains(&monotonic)
    }
}
