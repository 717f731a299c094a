//! Counts failed TLS handshakes, and logs them at a low rate. The peer sees only that the connection
//! ends, so the reason must be found here.

use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::seldom::Seldom;

#[derive(Debug, Default)]
pub(crate) struct FailedHandshakes {
    count: AtomicU64,
    logged: Seldom,
}

impl FailedHandshakes {
    /// Counts a handshake that failed for this reason.
    pub(crate) fn add(&self, peer: Option<impl Display>, reason: impl Display) {
        let count = self.count.fetch_add(1, Relaxed) + 1;
        if let Some(count) = self.logged.due(count) {
            let last = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_string());
            tracing::warn!(count, last, %reason, "TLS handshakes failed");
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}
