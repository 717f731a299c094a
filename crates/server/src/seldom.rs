//! Limits the rate of a log line that peers can cause a thousand times a second.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two log lines of the same kind.
const SELDOM: Duration = Duration::from_secs(10);

/// When a line was logged last, and the count at that time.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<(Instant, u64)>>);

impl Seldom {
    /// How many are new since the last line, if it is time for a line. `count` is the number of all.
    pub(crate) fn due(&self, count: u64) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if last.is_some_and(|(at, _)| now < at + SELDOM) {
            return None;
        }
        let before = last.replace((now, count)).map_or(0, |(_, before)| before);
        Some(count.saturating_sub(before))
    }
}
