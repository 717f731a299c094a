//! Readable durations, such as `ctx.sleep(days(3))`; and the current time, for everything but
//! workflow code.

use std::time::{Duration, SystemTime};

pub use abide_core::time::ParseTimestampError;
use abide_core::time::Timestamp;

use crate::executor;

/// The time of this machine's clock: `Timestamp::now()`, for clients and activities.
pub trait Now {
    /// The current time, in milliseconds.
    ///
    /// # Panics
    ///
    /// In workflow code, because it would take another path on replay. Use `ctx.now()` there, the
    /// time of the task; or a [side effect](crate::Context::side_effect), which is recorded.
    fn now() -> Self;
}

impl Now for Timestamp {
    fn now() -> Self {
        assert!(
            !executor::runs_here(),
            "workflow code must use `ctx.now()`: `Timestamp::now()` differs on replay"
        );
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since_epoch.unwrap_or_default().as_millis();
        Self::from_unix_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// The time of this machine's clock, for clients and activities: the same as `Timestamp::now()`.
///
/// # Panics
///
/// In workflow code, because it would take another path on replay. Use `ctx.now()` there.
pub fn now() -> Timestamp {
    Timestamp::now()
}

macro_rules! lengths {
    ($($(#[$doc:meta])* $name:ident = $seconds:expr;)+) => {$(
        $(#[$doc])*
        pub const fn $name(count: u64) -> Duration {
            Duration::from_secs(count.saturating_mul($seconds))
        }
    )+};
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

lengths! {
    /// A duration of this many seconds.
    seconds = 1;
    /// A duration of this many minutes.
    minutes = MINUTE;
    /// A duration of this many hours.
    hours = HOUR;
    /// A duration of this many days of 24 hours.
    days = DAY;
    /// A duration of this many weeks of seven days.
    weeks = 7 * DAY;
    /// A duration of this many months of 30 days. For calendar months, sleep until a date instead.
    months = 30 * DAY;
    /// A duration of this many years of 365 days. For calendar years, sleep until a date instead.
    years = 365 * DAY;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_between_the_times_before_and_after_it() {
        let millis = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let (before, now, after) = (millis(), Timestamp::now(), millis());
        let now = u128::from(now.unix_millis());
        assert!(before <= now && now <= after, "{before} {now} {after}");
    }

    #[test]
    fn lengths_add_up() {
        assert_eq!(minutes(2), seconds(120));
        assert_eq!(hours(1), minutes(60));
        assert_eq!(days(1), hours(24));
        assert_eq!(weeks(1), days(7));
        assert_eq!(months(1), days(30));
        assert_eq!(years(1), days(365));
        assert_eq!(years(u64::MAX), Duration::from_secs(u64::MAX), "the longest there is");
    }
}
