//! Counts failed TLS handshakes, and logs them at a low rate. The peer sees only that the connection
//! ends, so the reason must be found here.

use std::{
    fmt::Display,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use abide_store::throttle::LogThrottle;

use crate::lock::lock;

#[derive(Debug, Default)]
pub(crate) struct FailedHandshakes {
    count: AtomicU64,
    throttle: Mutex<LogThrottle>,
}

impl FailedHandshakes {
    /// Counts a handshake that failed for this reason.
    pub(crate) fn add(&self, peer: Option<impl Display>, reason: impl Display) {
        self.count.fetch_add(1, Relaxed);
        let admitted = lock(&self.throttle).admit(Instant::now());
        if let Some(held_back) = admitted {
            let count = held_back + 1;
            let last = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
            tracing::warn!(count, last, %reason, "TLS handshakes failed");
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}
