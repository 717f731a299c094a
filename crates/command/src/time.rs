//! Times as people say them, "in 23 h" or "3 min ago", with the exact moment beside it; and parsing
//! of what they type.

use std::time::{Duration, SystemTime};

use abide::Timestamp;
use jiff::{Span, SpanRelativeTo};

use crate::Failed;

/// The time of this machine's clock.
pub fn system_now() -> Timestamp {
    SystemTime::now().into()
}

/// To the second, in UTC.
pub fn absolute(at: Timestamp) -> String {
    let seconds = Timestamp::new(at.seconds(), 0).unwrap_or(at);
    seconds.to_string().replace('T', " ")
}

/// The distance from `now`, in words.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    if at.is_never() {
        return "never".into();
    }
    let (ahead, behind) = (at.saturating_since(now), now.saturating_since(at));
    let seconds = (ahead.max(behind) + Duration::from_millis(500)).as_secs();
    if seconds == 0 {
        "now".into()
    } else if behind.is_zero() {
        format!("in {}", length(seconds))
    } else {
        format!("{} ago", length(seconds))
    }
}

/// A duration, in the largest unit of which there are at least two.
fn length(seconds: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = UNITS.into_iter().find(|(size, _)| seconds >= 2 * size);
    let (size, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", (seconds + size / 2) / size)
}

/// Parses a duration: `90s`, `2h 30m`, `3 days`.
pub fn parse_length(text: &str) -> Result<Duration, String> {
    let spoken = |error: &dyn std::fmt::Display| format!("{error}; write it as 90s or 2h 30m");
    let span: Span = text.parse().map_err(|error: jiff::Error| spoken(&error))?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let length = length.map_err(|error| spoken(&error))?;
    Duration::try_from(length).map_err(|_| spoken(&"it is negative"))
}

/// Parses a moment: `2026-12-24T18:00:00Z`, or with another offset.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    let spoken = |error: &dyn std::fmt::Display| format!("{error}; write 2026-12-24T18:00:00Z");
    let at: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| spoken(&error))?;
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or_default();
    Timestamp::new(at.as_second(), nanos).ok_or_else(|| spoken(&"it is out of range"))
}

/// The moment `after` from now.
pub fn moment(after: Duration) -> Result<Timestamp, Failed> {
    let at = system_now().saturating_add(after);
    if at.is_never() { Err(Failed::usage("the time is too far in the future")) } else { Ok(at) }
}

/// The moment so long before now.
pub fn ago(length: Duration) -> Timestamp {
    system_now() - length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::new(seconds, 500_000_000).unwrap()
    }

    #[test]
    fn times_read_as_people_say_them() {
        let now = at(1_000_000);
        let check = |seconds: i64, text: &str| {
            assert_eq!(relative(at(1_000_000 + seconds), now), text);
        };
        check(0, "now");
        check(45, "in 45 s");
        check(119, "in 119 s");
        check(120, "in 2 min");
        check(83_000, "in 23 h");
        check(86_399, "in 24 h");
        check(172_800, "in 2 d");
        check(-180, "3 min ago");
        assert_eq!(relative(Timestamp::NEVER, now), "never");
        assert_eq!(absolute(at(0)), "1970-01-01 00:00:00Z");
    }

    #[test]
    fn lengths_are_read_as_typed() {
        assert_eq!(parse_length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_length("2h 30m"), Ok(Duration::from_secs(9_000)));
        assert_eq!(parse_length("3 days"), Ok(Duration::from_secs(3 * 86_400)));
        assert!(parse_length("soon").unwrap_err().contains("write it as 90s"));
        assert!(parse_length("-1h").unwrap_err().contains("negative"));
    }

    #[test]
    fn moments_are_read_as_typed() {
        let moment = parse_moment("2026-12-24T18:00:00+01:00").unwrap();
        assert_eq!(moment.to_string(), "2026-12-24T17:00:00Z");
        assert!(parse_moment("tomorrow").unwrap_err().contains("2026-12-24T18:00:00Z"));
    }
}
