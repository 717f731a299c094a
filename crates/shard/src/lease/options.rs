//! Who a node is and how long its lease lasts. All other times are fractions of the lease, so that
//! no setting can contradict another.

use std::time::Duration;

/// Who a node is and how long its lease lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// Name of the node; the same after a restart.
    pub node: String,
    /// Differs with every process, so that a node knows its own writes.
    pub incarnation: u64,
    /// Where other nodes reach it; empty if it keeps to itself, and then no other may be there.
    pub address: String,
    /// How long a node may be silent before others take its shards. Who watches a node with another
    /// lease waits for the longer of both.
    pub lease: Duration,
}

impl LeaseOptions {
    /// A lease that survives a slow store and still moves shards before people give up waiting.
    pub const LEASE: Duration = Duration::from_secs(5);

    /// How long a call waits for a shard that nobody serves: others have found out by then that a node is
    /// dead, and have taken its shards.
    pub fn patience(&self) -> Duration {
        self.lease + self.lease / 5
    }

    /// Five renewals per lease: four may fail.
    pub(super) fn renewal_interval(&self) -> Duration {
        self.lease / 5
    }

    /// Between two reads of all rows: a renewal is seen at most so much later, and so is a death.
    pub(super) fn watch_interval(&self) -> Duration {
        self.lease / 10
    }

    /// How long a node that leaves waits for others to take what it has released.
    pub(super) fn farewell(&self) -> Duration {
        self.lease / 2
    }

    /// Pause before a failed request is repeated, and between looks at shards that are to come.
    pub(super) fn retry_pause(&self) -> Duration {
        self.lease / 20
    }

    /// The longest time between two reads that counts as having watched others: a clock that leapt
    /// must not expel anybody.
    pub(super) fn watched_max(&self) -> Duration {
        self.lease / 2
    }

    /// How long a node trusts a renewal that it asked for at `start`. The margin of a fifth is for
    /// clocks that run at different speeds.
    pub(super) fn term(&self, start: Duration) -> Term {
        Term { start, until: start + (self.lease - self.lease / 5) }
    }
}

/// When a node trusts its lease. A clock before the start has gone back and is not trusted.
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
