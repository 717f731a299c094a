//! A clock that a test sets forwards and back again, while the clock of the machine stays as it is.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use abide_core::time::Timestamp;

use super::{Clock, Sleep, SystemClock};

/// The system clock, ahead by some milliseconds.
#[derive(Debug, Default)]
pub struct AheadClock(AtomicU64);

impl AheadClock {
    /// From now on the clock is ahead by this.
    pub fn set_ahead(&self, by: Duration) {
        self.0.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), SeqCst);
    }

    fn ahead(&self) -> Duration {
        Duration::from_millis(self.0.load(SeqCst))
    }

    /// The time of the system clock when this clock shows `at`.
    fn by_the_system(&self, at: Timestamp) -> Timestamp {
        let since = at.saturating_since(Timestamp::EPOCH);
        if at.is_never() {
            return at;
        }
        Timestamp::EPOCH.saturating_add(since.saturating_sub(self.ahead()))
    }
}

impl Clock for AheadClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_add(self.ahead())
    }

    fn sleep_until(&self, until: Timestamp) -> Sleep<'_> {
        SystemClock.sleep_until(self.by_the_system(until))
    }

    fn suffices(&self, sleep: &Sleep<'_>, until: Timestamp) -> bool {
        SystemClock.suffices(sleep, self.by_the_system(until))
    }
}
