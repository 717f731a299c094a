//! Counts evictions by reason. Each reason is logged at a low rate, because a misbehaving peer can
//! repeat it a thousand times a second.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use abide_store::throttle::LogThrottle;

use crate::{accept::Address, lock::lock};

/// Why a connection was evicted, refused, or lost a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// All connections were taken, a new one came, and this one had been idle for longest.
    Idle,
    /// The address has its share of connections, and none of them is idle.
    OverShare,
    /// Too many bytes were in flight, and this connection had the largest product of bytes and
    /// time.
    Greedy,
    /// A message stopped arriving before its end.
    Unfinished,
    /// An answer was not read in time.
    Unread,
    /// All places for streams were taken, another one came, and this one was the idlest of the largest
    /// holder.
    Stream,
}

impl Evicted {
    pub(crate) const ALL: [Self; 6] =
        [Self::Idle, Self::OverShare, Self::Greedy, Self::Unfinished, Self::Unread, Self::Stream];

    /// Value of the metric's label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::OverShare => "over_share",
            Self::Greedy => "greedy",
            Self::Unfinished => "unfinished",
            Self::Unread => "unread",
            Self::Stream => "stream",
        }
    }

    const fn line(self) -> &'static str {
        match self {
            Self::Idle => {
                "closing the connections that were idle for the longest time, to make room for others"
            }
            Self::OverShare => {
                "refusing connections: their address has reached bounds.connections_per_address"
            }
            Self::Greedy => {
                "closing the connections that held most of bounds.bytes_in_flight for the longest time"
            }
            Self::Unfinished => {
                "closing streams whose messages made no progress for bounds.stall_ms"
            }
            Self::Unread => "closing streams whose clients read no answers for bounds.stall_ms",
            Self::Stream => {
                "closing streams of those who hold most of bounds.streams, to make room for others"
            }
        }
    }
}

/// Counts evictions, and logs them.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    counts: [AtomicU64; Evicted::ALL.len()],
    throttles: [Mutex<LogThrottle>; Evicted::ALL.len()],
}

impl Evictions {
    /// Counts one eviction, and logs it unless this reason was logged a moment ago.
    pub(crate) fn count(&self, why: Evicted, address: &Address) {
        self.counts[why as usize].fetch_add(1, Relaxed);
        let admitted = lock(&self.throttles[why as usize]).admit(Instant::now());
        if let Some(held_back) = admitted {
            let count = held_back + 1;
            tracing::warn!(kind = why.label(), count, last = %address, "{}", why.line());
        }
    }

    /// Number of evictions by reason.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (Evicted, u64)> {
        Evicted::ALL.into_iter().map(|why| (why, self.counts[why as usize].load(Relaxed)))
    }
}
