//! Cron schedules: when the next run is due. Times are UTC.

use std::str::FromStr;

use croner::Cron;
use jiff::tz::TimeZone;

use crate::time::Timestamp;

/// First time after `now` that matches `expression`; `None` if there is none, or if it is not a
/// cron expression.
pub fn next_after(expression: &str, now: Timestamp) -> Option<Timestamp> {
    let nanos = i32::try_from(now.nanos()).ok()?;
    let now = jiff::Timestamp::new(now.seconds(), nanos).ok()?.to_zoned(TimeZone::UTC);
    let next = Cron::from_str(expression).ok()?.find_next_occurrence(&now, false).ok()?;
    Timestamp::new(next.timestamp().as_second(), 0)
}

/// Whether the expression is valid and ever matches.
pub fn valid(expression: &str) -> bool {
    next_after(expression, Timestamp::EPOCH).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expression: &str, now: i64) -> Option<String> {
        next_after(expression, Timestamp::new(now, 500_000_000)?).map(|at| at.to_string())
    }

    #[test]
    fn next_times() {
        assert_eq!(next("*/5 * * * *", 0).as_deref(), Some("1970-01-01T00:05:00Z"));
        assert_eq!(next("0 12 * * MON", 0).as_deref(), Some("1970-01-05T12:00:00Z"));
        assert_eq!(next("0 0 30 2 *", 0), None);
        assert_eq!(next("nonsense", 0), None);
        assert!(valid("@hourly") && !valid("61 * * * *"));
        assert!(!valid("0 0 30 2 *"), "a day that never comes");
    }
}
