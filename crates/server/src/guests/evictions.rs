//! Counts evictions by reason. Each reason is logged at a low rate, because a misbehaving peer can
//! repeat it a thousand times a second.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crate::connection::Address;

/// Minimum time between two log lines about the same reason.
const SELDOM: Duration = Duration::from_secs(10);

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
}

impl Evicted {
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::OverShare, Self::Greedy, Self::Unfinished, Self::Unread];

    /// Value of the metric's label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::OverShare => "over_share",
            Self::Greedy => "greedy",
            Self::Unfinished => "unfinished",
            Self::Unread => "unread",
        }
    }

    const fn line(self) -> &'static str {
        match self {
            Self::Idle => "connections that were idle for longest make place for others",
            Self::OverShare => {
                "connections are refused: their address has its share, bounds.connections_per_address"
            }
            Self::Greedy => {
                "connections are ended that held most of bounds.bytes_in_flight for longest"
            }
            Self::Unfinished => "streams are ended whose messages stand still for bounds.stall_ms",
            Self::Unread => "streams are ended whose answers nobody reads for bounds.stall_ms",
        }
    }
}

/// Counts evictions, and logs them.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    counts: [AtomicU64; Evicted::ALL.len()],
    logged: Mutex<[Option<(Instant, u64)>; Evicted::ALL.len()]>,
}

impl Evictions {
    /// Counts one eviction, and logs it unless this reason was logged a moment ago.
    pub(crate) fn count(&self, why: Evicted, address: &Address) {
        let count = self.counts[why as usize].fetch_add(1, Relaxed) + 1;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let last = &mut logged[why as usize];
        let now = Instant::now();
        if last.is_none_or(|(at, _)| now >= at + SELDOM) {
            let before = last.replace((now, count)).map_or(0, |(_, before)| before);
            let since = count.saturating_sub(before);
            tracing::warn!(kind = why.label(), count = since, last = %address, "{}", why.line());
        }
    }

    /// Number of evictions by reason.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (Evicted, u64)> {
        Evicted::ALL.into_iter().map(|why| (why, self.counts[why as usize].load(Relaxed)))
    }
}
