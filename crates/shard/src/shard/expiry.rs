//! When answers to effects may be deleted. An effect that is repeated after its answer was deleted takes
//! place a second time, so a clock that leaps ahead must not make answers old. Sweeps count the true
//! time: a leap causes one at most.

use abide_core::{limits::Limits, time::Timestamp};

/// What the sweeps of a shard have seen of the clock.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    /// When the last sweep was.
    swept_at: Option<Timestamp>,
    /// Nothing is deleted before this time.
    not_before: Timestamp,
    sweeps: u64,
}

/// A clock that passes this many sweeps between two of them has leapt, or the process stood still.
const LEAP_SWEEPS: u32 = 10;

impl Expiry {
    /// Number of sweeps so far.
    pub(super) const fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// Sweeps that come while the answer to a confirmed effect is kept, but for the first and the last.
    pub(super) fn sweeps_of_a_confirmation(limits: &Limits) -> u64 {
        let sweeps =
            limits.confirmed_retention.as_millis() / limits.sweep_interval.as_millis().max(1);
        u64::try_from(sweeps.saturating_sub(1)).unwrap_or(u64::MAX)
    }

    /// A sweep begins: returns the time before which answers are too old to be kept.
    pub(super) fn sweep(&mut self, now: Timestamp, limits: &Limits) -> Option<Timestamp> {
        self.sweeps += 1;
        let leap = limits.sweep_interval.saturating_mul(LEAP_SWEEPS);
        let wait = match self.swept_at.replace(now) {
            // Sources that come up together with this shard repeat their effects first.
            None => Some(limits.confirmed_retention),
            // The true age of an answer is unknown, whether the clock was wrong before or is now.
            Some(last) if now < last || now.saturating_since(last) > leap => {
                Some(limits.inbox_retention)
            }
            Some(_) => None,
        };
        if let Some(wait) = wait {
            self.not_before = now.saturating_add(wait);
        }
        let age = now.saturating_since(Timestamp::EPOCH).checked_sub(limits.inbox_retention)?;
        (now >= self.not_before).then(|| Timestamp::EPOCH.saturating_add(age))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Sweeps for so long; returns the last answer.
    fn sweeps(expiry: &mut Expiry, now: &mut Timestamp, duration: Duration) -> Option<Timestamp> {
        let limits = Limits::default();
        let end = now.saturating_add(duration);
        let mut last = None;
        while *now < end {
            *now = now.saturating_add(limits.sweep_interval);
            last = expiry.sweep(*now, &limits);
        }
        last
    }

    #[test]
    fn answers_are_kept_for_as_long_as_the_clock_has_run_steadily() {
        let retention = Limits::default().inbox_retention;
        let mut now = Timestamp::from_unix_millis(1_800_000_000_000);
        let mut expiry = Expiry::default();
        assert_eq!(sweeps(&mut expiry, &mut now, Duration::from_secs(300)), None, "it just began");
        let before = sweeps(&mut expiry, &mut now, DAY).expect("old answers go");
        assert_eq!(now.saturating_since(before), retention);
        now = now.saturating_add(30 * DAY);
        assert_eq!(sweeps(&mut expiry, &mut now, retention - DAY), None, "the clock leapt");
        let before = sweeps(&mut expiry, &mut now, 2 * DAY).expect("old answers go");
        assert_eq!(now.saturating_since(before), retention);
        now = Timestamp::EPOCH.saturating_add(now.saturating_since(Timestamp::EPOCH) - 20 * DAY);
        assert_eq!(sweeps(&mut expiry, &mut now, retention - DAY), None, "it was set back");
        assert!(sweeps(&mut expiry, &mut now, 2 * DAY).is_some());
    }
}
