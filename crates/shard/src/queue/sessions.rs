//! A session's part in all of its queues: how many matches it has in flight, and whether it takes more.

use std::collections::BTreeSet;

use abide_core::dispatch::QueueKey;

/// A session that has given credit.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The queues that it has named.
    pub(super) queues: BTreeSet<QueueKey>,
    /// Matches whose work is not on the worker's stream yet. Fewer than there are after a reconnect.
    in_flight: usize,
    /// The worker does not read what it is given.
    pub(super) held: bool,
    paused: bool,
}

impl Session {
    /// Number of further matches that the session may have, if it may have `most` in flight.
    pub(super) fn room(&self, most: usize) -> usize {
        if self.paused { 0 } else { most.saturating_sub(self.in_flight) }
    }

    /// The session has another match.
    pub(super) fn matched(&mut self) {
        self.in_flight += 1;
    }

    /// A match was delivered or has failed.
    pub(super) fn arrived(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Pauses the session or ends its pause, as it must be; returns whether that is a change. It resumes
    /// when half of its matches have arrived, not with each.
    pub(super) fn turn(&mut self, most: usize) -> bool {
        let full = if self.paused { self.in_flight > most / 2 } else { self.in_flight >= most };
        let paused = self.held || full;
        std::mem::replace(&mut self.paused, paused) != paused
    }
}
