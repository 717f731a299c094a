//! Cron expressions: five fields from minute to weekday, a sixth for seconds before them, a seventh
//! for the year after them; `@daily` and the like; `@every 90m`; `CRON_TZ=Europe/Berlin` in front.
//! If both day and weekday are given, either may match, as in every cron.

use std::time::Duration;

use super::{
    calendar::{AbsentTime, Calendar},
    interval::Interval,
    rule::Rule,
    zone::Zone,
};
use crate::time::Timestamp;

/// First time after `now` that matches `expression`; `None` if there is none, or if it is not a
/// cron expression. Times are UTC unless the expression names a zone.
pub fn next_after(expression: &str, now: Timestamp) -> Option<Timestamp> {
    let rules = rules(expression, &Zone::UTC).ok()?;
    rules.iter().filter_map(|rule| rule.next_after(now)).min()
}

/// What is wrong with the expression, to be read after it; `None` if it matches some time.
pub fn problem(expression: &str) -> Option<String> {
    match rules(expression, &Zone::UTC) {
        Err(problem) => Some(format!("is not a cron expression: {problem}")),
        Ok(rules) => {
            let next = rules.iter().find_map(|rule| rule.next_after(Timestamp::EPOCH));
            next.is_none().then(|| "never matches a time".into())
        }
    }
}

/// What the expression stands for. `zone` counts if the expression names none.
pub(super) fn rules(expression: &str, zone: &Zone) -> Result<Vec<Rule>, String> {
    let expression = without_comment(expression).trim();
    let (zone, times) = match expression.split_once(char::is_whitespace) {
        Some((first, times)) if first.contains('=') => {
            let name = first.strip_prefix("CRON_TZ=").or_else(|| first.strip_prefix("TZ="));
            let unknown = || format!("{first:?} is not a setting; CRON_TZ=Europe/Berlin is one");
            (Zone::named(name.ok_or_else(unknown)?)?, times.trim())
        }
        _ => (zone.clone(), expression),
    };
    if let Some(length) = times.strip_prefix("@every ") {
        return Ok(vec![Rule::Interval(Interval::every(duration(length.trim())?))]);
    }
    let calendars = calendars(written_out(times)?)?;
    let rule = |calendar: Calendar| {
        let matcher = calendar.matcher(AbsentTime::Zero)?;
        Ok(Rule::Calendar(Box::new(matcher), zone.clone()))
    };
    calendars.into_iter().map(rule).collect()
}

/// A comment begins with `#` after a space; `MON#2` has none.
fn without_comment(expression: &str) -> &str {
    expression.split(" #").next().unwrap_or_default()
}

fn written_out(times: &str) -> Result<&str, String> {
    Ok(match times {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        name if name.starts_with('@') => {
            let known = "@yearly, @monthly, @weekly, @daily, @hourly and @every 90m";
            return Err(format!("there is no {name:?}; there are {known}"));
        }
        fields => fields,
    })
}

fn calendars(times: &str) -> Result<Vec<Calendar>, String> {
    let fields: Vec<_> = times.split_whitespace().collect();
    let (second, five, year) = match fields.as_slice() {
        five @ [_, _, _, _, _] => ("0", five, "*"),
        [second, five @ ..] if five.len() == 5 => (*second, five, "*"),
        [second, five @ .., year] if five.len() == 5 => (*second, five, *year),
        _ => {
            let names = "minute, hour, day, month, weekday";
            return Err(format!("it has {} of the 5 fields {names}", fields.len()));
        }
    };
    let text = |place: usize| five.get(place).copied().unwrap_or("*").to_owned();
    let both = Calendar {
        second: second.to_owned(),
        minute: text(0),
        hour: text(1),
        day: text(2),
        month: text(3),
        weekday: text(4),
        year: year.to_owned(),
    };
    let restricted = |field: &str| !field.starts_with(['*', '?']);
    if !restricted(&both.day) || !restricted(&both.weekday) {
        return Ok(vec![both]);
    }
    let by_day = Calendar { weekday: String::new(), ..both.clone() };
    Ok(vec![by_day, Calendar { day: String::new(), ..both }])
}

/// A length such as `90m`, `1h30m` or `45s`.
fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("@every takes a length such as 90m or 1h30m, not {text:?}");
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let unit = match rest[digits..].chars().next() {
            Some('d') => 86_400,
            Some('h') => 3600,
            Some('m') => 60,
            Some('s') => 1,
            _ => return Err(bad()),
        };
        let more = number.checked_mul(unit).and_then(|more| seconds.checked_add(more));
        seconds = more.filter(|seconds| i64::try_from(*seconds).is_ok()).ok_or_else(bad)?;
        rest = &rest[digits + 1..];
    }
    if seconds == 0 { Err(bad()) } else { Ok(Duration::from_secs(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expression: &str, now: i64) -> Option<String> {
        next_after(expression, Timestamp::new(now, 500_000_000)?).map(|at| at.to_string())
    }

    fn first(expression: &str) -> String {
        next(expression, 0).unwrap()
    }

    #[test]
    fn next_times() {
        assert_eq!(first("*/5 * * * *"), "1970-01-01T00:05:00Z");
        assert_eq!(first("0 12 * * MON"), "1970-01-05T12:00:00Z");
        assert_eq!(first("15 30 9 * * *"), "1970-01-01T09:30:15Z");
        assert_eq!(first("0 0 0 29 2 * 2000-2010"), "2000-02-29T00:00:00Z");
        assert_eq!(next("0 0 30 2 *", 0), None);
        assert_eq!(next("nonsense", 0), None);
    }

    #[test]
    fn short_forms() {
        assert_eq!(first("@hourly"), "1970-01-01T01:00:00Z");
        assert_eq!(first("@daily"), "1970-01-02T00:00:00Z");
        assert_eq!(first("@weekly"), "1970-01-04T00:00:00Z");
        assert_eq!(first("@monthly"), "1970-02-01T00:00:00Z");
        assert_eq!(first("@yearly"), "1971-01-01T00:00:00Z");
        assert_eq!(first("@every 1h30m"), "1970-01-01T01:30:00Z");
        assert_eq!(first("@daily # at night"), "1970-01-02T00:00:00Z");
    }

    #[test]
    fn either_day_or_weekday_matches() {
        // The 3rd is a Saturday, the 5th the first Monday.
        assert_eq!(first("0 0 3 * MON"), "1970-01-03T00:00:00Z");
        assert_eq!(first("0 0 8 * MON"), "1970-01-05T00:00:00Z");
    }

    #[test]
    fn an_expression_may_name_its_zone() {
        assert_eq!(first("CRON_TZ=Europe/Berlin 0 9 * * *"), "1970-01-01T08:00:00Z");
        assert_eq!(first("TZ=Asia/Kolkata 0 9 * * *"), "1970-01-01T03:30:00Z");
        assert_eq!(first("CRON_TZ=America/New_York @daily"), "1970-01-01T05:00:00Z");
    }

    #[test]
    fn a_problem_names_field_and_range() {
        assert_eq!(problem("@hourly"), None);
        assert_eq!(problem("0 0 29 2 *"), None);
        assert_eq!(problem("0 0 30 2 *").as_deref(), Some("never matches a time"));
        let check = |expression: &str, detail: &str| {
            let problem = problem(expression).unwrap();
            assert_eq!(problem, format!("is not a cron expression: {detail}"));
        };
        check("0 25 * * *", "hour 25 is not in 0 to 23");
        check("0-61/5 * * * *", "minute 61 is not in 0 to 59");
        check("0 0 1,0 * *", "day 0 is not in 1 to 31");
        check("0 0 * 99999999999 *", "month 99999999999 is not in 1 to 12");
        let named = "weekday \"SOMEDAY\" is not a number from 0 to 7, or a name such as SUN";
        check("0 0 * * SOMEDAY", named);
        check("0 25", "it has 2 of the 5 fields minute, hour, day, month, weekday");
        let every = "@every takes a length such as 90m or 1h30m, not";
        for length in ["soon", "5", "0s", "99999999999999999999s", "9999999999999999d"] {
            check(&format!("@every {length}"), &format!("{every} {length:?}"));
        }
        let zone = "is no time zone; use a name of the IANA list, such as Europe/Berlin or UTC";
        check("CRON_TZ=Mars/Base 0 0 * * *", &format!("\"Mars/Base\" {zone}"));
        check("ZONE=UTC 0 0 * * *", "\"ZONE=UTC\" is not a setting; CRON_TZ=Europe/Berlin is one");
        let known = "@yearly, @monthly, @weekly, @daily, @hourly and @every 90m";
        check("@often", &format!("there is no \"@often\"; there are {known}"));
    }
}
