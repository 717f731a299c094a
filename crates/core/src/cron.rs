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

/// The fields of an expression and the numbers that each may have.
const FIELDS: [(&str, u32, u32); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7)];

/// What is wrong with the expression, to be read after it; `None` if it matches some time.
pub fn problem(expression: &str) -> Option<String> {
    if next_after(expression, Timestamp::EPOCH).is_some() {
        return None;
    }
    if Cron::from_str(expression).is_ok() {
        return Some("never matches a time".into());
    }
    let fields: Vec<_> = expression.split_whitespace().collect();
    let detail = match fields.len() {
        5 => fields.iter().zip(FIELDS).find_map(|(text, field)| out_of_range(text, field)),
        count => {
            let names = FIELDS.map(|(name, ..)| name).join(", ");
            Some(format!("it has {count} of the 5 fields {names}"))
        }
    };
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    Some(format!("is not a cron expression{detail}"))
}

/// Names the first number of a field that it may not have. What follows a slash is a step.
fn out_of_range(text: &str, (name, least, most): (&str, u32, u32)) -> Option<String> {
    let mut numbers = text
        .split(',')
        .filter_map(|part| part.split('/').next())
        .flat_map(|range| range.split('-'))
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let outside =
        |number: &&str| !number.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number));
    let number = numbers.find(outside)?;
    Some(format!("{name} {number} is not in {least} to {most}"))
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
    }

    #[test]
    fn a_problem_names_field_and_range() {
        assert_eq!(problem("@hourly"), None);
        assert_eq!(problem("0 0 29 2 *"), None);
        assert_eq!(problem("0 0 30 2 *").as_deref(), Some("never matches a time"));
        let invalid = |detail: &str| Some(format!("is not a cron expression{detail}"));
        assert_eq!(problem("0 25 * * *"), invalid(": hour 25 is not in 0 to 23"));
        assert_eq!(problem("0-61/5 * * * *"), invalid(": minute 61 is not in 0 to 59"));
        assert_eq!(problem("0 0 1,0 * *"), invalid(": day 0 is not in 1 to 31"));
        let huge = "0 0 * 99999999999 *";
        assert_eq!(problem(huge), invalid(": month 99999999999 is not in 1 to 12"));
        assert_eq!(problem("0 0 * * SOMEDAY"), invalid(""));
        let fields = "minute, hour, day, month, weekday";
        assert_eq!(problem("0 25"), invalid(&format!(": it has 2 of the 5 fields {fields}")));
    }
}
