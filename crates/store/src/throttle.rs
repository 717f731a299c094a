//! Limits the rate of a log line that a failing store or a peer can cause a thousand times a second.

use std::time::{Duration, Instant};

/// Minimum time between two log lines of one kind: often enough for a reader, rare enough for the
/// log's disk.
pub const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// When lines of one kind were last logged, and how many were suppressed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogThrottle {
    logged_at: Option<Instant>,
    held_back: u64,
}

impl LogThrottle {
    /// Number of lines that were suppressed since the last one, if another one may be logged now;
    /// `None` if it must be suppressed too.
    pub fn admit(&mut self, now: Instant) -> Option<u64> {
        let logged = |at| now.saturating_duration_since(at) < BETWEEN_LINES;
        if self.logged_at.is_some_and(logged) {
            self.held_back += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_not_repeated_too_often_and_counts_what_was_not_said() {
        let (mut throttle, start) = (LogThrottle::default(), Instant::now());
        let mut admitted = |seconds| throttle.admit(start + Duration::from_secs(seconds));
        assert_eq!(admitted(100), Some(0));
        assert_eq!(admitted(101), None);
        assert_eq!(admitted(109), None);
        assert_eq!(admitted(110), Some(2));
        assert_eq!(admitted(120), Some(0));
    }
}
