//! Calendars: which dates and times of day match, on the clock of a wall. What a wall clock means
//! when it is put forward or back is in `zone`.

use std::{fmt, str::FromStr};

use jiff::civil::{Date, DateTime, Time};
use serde::{Deserialize, Serialize};

use super::field::{DAY, FieldRange, HOUR, MINUTE, MONTH, SECOND, Span, WEEKDAY, YEAR};

/// A set of times by their fields, each as text like the field of a cron expression. All fields must
/// match. An empty second, minute or hour is 0; any other empty field allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    pub second: String,
    pub minute: String,
    pub hour: String,
    /// Day of the month; `L` is the last, `L-1` the one before.
    pub day: String,
    pub month: String,
    pub year: String,
    /// `MON`, also `MON#2` for the second and `MON#L` for the last one of the month.
    pub weekday: String,
}

impl Calendar {
    fn fields(&self) -> [(&'static str, &String); 7] {
        [
            (YEAR.name, &self.year),
            (MONTH.name, &self.month),
            (DAY.name, &self.day),
            (WEEKDAY.name, &self.weekday),
            (HOUR.name, &self.hour),
            (MINUTE.name, &self.minute),
            (SECOND.name, &self.second),
        ]
    }

    /// Bytes of all fields, for limits.
    pub fn size(&self) -> usize {
        self.fields().iter().map(|(_, text)| text.len()).sum()
    }

    pub(super) fn matcher(&self, absent: AbsentTime) -> Result<Matcher, String> {
        let time = |field: &FieldRange, text: &str| match (text, absent) {
            ("", AbsentTime::Zero) => Ok(1),
            ("", AbsentTime::All) => Ok(field.all()),
            (text, _) => field.bits(text),
        };
        Ok(Matcher {
            seconds: time(&SECOND, &self.second)?,
            minutes: time(&MINUTE, &self.minute)?,
            hours: time(&HOUR, &self.hour)?,
            days: Days::parse(or_all(&self.day))?,
            months: MONTH.bits(or_all(&self.month))?,
            years: YEAR.spans(or_all(&self.year))?,
            weekdays: Weekdays::parse(or_all(&self.weekday))?,
        })
    }
}

/// As people write it: `hour=9 weekday=MON-FRI`.
impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.fields().into_iter().filter(|(_, text)| !text.is_empty());
        let given: Vec<_> = given.map(|(name, text)| format!("{name}={text}")).collect();
        f.write_str(&given.join(" "))
    }
}

impl FromStr for Calendar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut calendar = Self::default();
        for part in text.split_whitespace() {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                format!("{part:?} is not a field; write fields as in hour=9 weekday=MON-FRI")
            })?;
            let field = match name {
                "second" => &mut calendar.second,
                "minute" => &mut calendar.minute,
                "hour" => &mut calendar.hour,
                "day" => &mut calendar.day,
                "month" => &mut calendar.month,
                "year" => &mut calendar.year,
                "weekday" => &mut calendar.weekday,
                _ => {
                    let known = "second, minute, hour, day, month, year and weekday";
                    return Err(format!("there is no field {name:?}; there are {known}"));
                }
            };
            *field = value.to_owned();
        }
        Ok(calendar)
    }
}

/// What a second, minute or hour that is not given means.
#[derive(Clone, Copy)]
pub(super) enum AbsentTime {
    /// The full hour, or midnight.
    Zero,
    /// Every time of the day.
    All,
}

fn or_all(text: &str) -> &str {
    if text.is_empty() { "*" } else { text }
}

/// How many years that match are searched. A leap day on a given weekday may be 40 years away.
const YEARS_SEARCHED: usize = 50;

/// A calendar that can be searched.
#[derive(Clone, Debug)]
pub(super) struct Matcher {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: Days,
    months: u64,
    years: Vec<Span>,
    weekdays: Weekdays,
}

impl Matcher {
    /// Whether it matches in every hour of the day.
    pub(super) fn hourly(&self) -> bool {
        self.hours == HOUR.all()
    }

    /// Whether it matches all times of a day of which it matches one.
    pub(super) fn whole_days(&self) -> bool {
        self.hourly() && self.minutes == MINUTE.all() && self.seconds == SECOND.all()
    }

    pub(super) fn matches(&self, at: DateTime) -> bool {
        has(self.hours, at.hour())
            && has(self.minutes, at.minute())
            && has(self.seconds, at.second())
            && self.matches_date(at.date())
    }

    /// First match at or after `from`, which is a whole second.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        let mut date = self.next_date(from.date())?;
        if date == from.date() {
            if let Some(time) = self.next_time(from.time()) {
                return Some(date.to_datetime(time));
            }
            date = self.next_date(date.tomorrow().ok()?)?;
        }
        Some(date.to_datetime(self.next_time(Time::midnight())?))
    }

    fn matches_date(&self, date: Date) -> bool {
        has(self.months, date.month())
            && self.days.matches(date)
            && self.weekdays.matches(date)
            && self.matches_year(date.year())
    }

    fn matches_year(&self, year: i16) -> bool {
        let in_span = |span: &Span| {
            u32::try_from(year).is_ok_and(|year| {
                (span.first..=span.last).contains(&year)
                    && (year - span.first).is_multiple_of(span.step)
            })
        };
        self.years.iter().any(in_span)
    }

    fn next_date(&self, from: Date) -> Option<Date> {
        let mut date = from;
        for _ in 0..=YEARS_SEARCHED {
            if !self.matches_year(date.year()) {
                date = Date::new(self.next_year(date.year())?, 1, 1).ok()?;
            }
            if let Some(found) = self.next_date_of_year(date) {
                return Some(found);
            }
            date = date.last_of_year().tomorrow().ok()?;
        }
        None
    }

    /// First date at or after `from` in its year, which matches.
    fn next_date_of_year(&self, from: Date) -> Option<Date> {
        let mut date = from;
        while date.year() == from.year() {
            if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if self.days.matches(date) && self.weekdays.matches(date) {
                return Some(date);
            } else {
                date = date.tomorrow().ok()?;
            }
        }
        None
    }

    /// First year after `year` that matches.
    fn next_year(&self, year: i16) -> Option<i16> {
        let year = u32::try_from(year).unwrap_or_default();
        let next = self.years.iter().filter_map(|span| span.next_after(year)).min();
        next.and_then(|year| i16::try_from(year).ok())
    }

    /// First time of the day at or after `from` that matches.
    fn next_time(&self, from: Time) -> Option<Time> {
        let time = |hour, minute, second| Time::new(hour, minute, second, 0).ok();
        let (first_minute, first_second) = (lowest(self.minutes, 0)?, lowest(self.seconds, 0)?);
        if has(self.hours, from.hour()) {
            if has(self.minutes, from.minute())
                && let Some(second) = lowest(self.seconds, from.second())
            {
                return time(from.hour(), from.minute(), second);
            }
            if let Some(minute) = lowest(self.minutes, from.minute() + 1) {
                return time(from.hour(), minute, first_second);
            }
        }
        time(lowest(self.hours, from.hour() + 1)?, first_minute, first_second)
    }
}

fn has(bits: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| bits >> number & 1 == 1)
}

/// Lowest number of a set that is at least `least`.
fn lowest(bits: u64, least: i8) -> Option<i8> {
    let above = bits.checked_shr(u32::try_from(least).ok()?)?;
    (above != 0).then(|| least + i8::try_from(above.trailing_zeros()).unwrap_or_default())
}

/// Days of a month, counted from its beginning and from its end.
#[derive(Clone, Copy, Debug)]
struct Days {
    days: u64,
    /// 0 is the last day of the month.
    from_end: u64,
}

impl Days {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = Self { days: 0, from_end: 0 };
        for part in text.split(',').map(str::trim) {
            let upper = part.to_ascii_uppercase();
            if let Some(before) = upper.strip_prefix('L') {
                parsed.from_end |= 1 << days_before_last(part, before)?;
            } else if upper.contains('W') {
                let hint = "nearest weekdays are not supported; name the weekday, as in MON#1";
                return Err(format!("day {part:?} is not a number from 1 to 31: {hint}"));
            } else {
                parsed.days |= DAY.bits(part)?;
            }
        }
        Ok(parsed)
    }

    fn matches(&self, date: Date) -> bool {
        has(self.days, date.day()) || has(self.from_end, date.days_in_month() - date.day())
    }
}

fn days_before_last(part: &str, before: &str) -> Result<u32, String> {
    if before.is_empty() {
        return Ok(0);
    }
    let count = before.strip_prefix('-').and_then(|count| count.parse().ok());
    let count = count.filter(|count| (1..=30).contains(count));
    count.ok_or_else(|| format!("day {part:?} is not L, nor L-1 to L-30"))
}

/// Weekdays, all of a month or some of them.
#[derive(Clone, Copy, Debug, Default)]
struct Weekdays {
    all: u64,
    /// The first, second and so on of a month, by weekday.
    nth: [u64; 7],
    /// The last of a month.
    last: u64,
}

impl Weekdays {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parsed = Self::default();
        for part in text.split(',').map(str::trim) {
            let bare = part.strip_suffix(['L', 'l']).filter(|day| WEEKDAY.number(day).is_ok());
            match part.split_once('#').or_else(|| Some((bare?, "L"))) {
                None => parsed.all |= WEEKDAY.bits(part)?,
                Some((day, which)) => {
                    let day = WEEKDAY.number(day)? % 7;
                    match which {
                        "L" | "l" => parsed.last |= 1 << day,
                        "1" | "2" | "3" | "4" | "5" => {
                            let nth: u32 = which.parse().unwrap_or_default();
                            let place = usize::try_from(day).unwrap_or_default();
                            parsed.nth[place] |= 1 << nth;
                        }
                        _ => return Err(format!("weekday {part:?} is not one of #1 to #5, or #L")),
                    }
                }
            }
        }
        // Sunday is 0 and also 7.
        parsed.all |= parsed.all >> 7 & 1;
        Ok(parsed)
    }

    fn matches(&self, date: Date) -> bool {
        let day = date.weekday().to_sunday_zero_offset();
        let place = usize::try_from(day).unwrap_or_default();
        has(self.all, day)
            || has(self.nth[place], (date.day() - 1) / 7 + 1)
            || (has(self.last, day) && date.days_in_month() - date.day() < 7)
    }
}
