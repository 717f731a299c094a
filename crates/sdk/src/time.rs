//! Lengths of time that read well: `ctx.sleep(days(3))`.

use std::time::Duration;

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
    /// So many seconds.
    seconds = 1;
    /// So many minutes.
    minutes = MINUTE;
    /// So many hours.
    hours = HOUR;
    /// So many days of 24 hours.
    days = DAY;
    /// So many weeks of seven days.
    weeks = 7 * DAY;
    /// So many months of 30 days. For the months of a calendar, sleep until a date instead.
    months = 30 * DAY;
    /// So many years of 365 days. For the years of a calendar, sleep until a date instead.
    years = 365 * DAY;
}

#[cfg(test)]
mod tests {
    use super::*;

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
