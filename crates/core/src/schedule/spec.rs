//! When a schedule is due: the times of all its rules together, less the excluded ones.

use std::{hash::Hasher, time::Duration};

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use super::{
    calendar::{AbsentTime, Calendar, Matcher},
    cron,
    interval::Interval,
    rule::Rule,
    zone::Zone,
};
use crate::{limits::InvalidField, time::Timestamp};

/// When a schedule is due. Without any rule it starts only what is triggered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Cron expressions.
    pub cron: Vec<String>,
    pub calendars: Vec<Calendar>,
    pub intervals: Vec<Interval>,
    /// Times that are left out. In these, an empty second, minute or hour means every one.
    pub exclusions: Vec<Calendar>,
    /// Only times at or after this.
    pub start_at: Option<Timestamp>,
    /// Only times at or before this.
    pub end_at: Option<Timestamp>,
    /// Each start is delayed by up to this, always by the same for the same time.
    pub jitter: Option<Duration>,
    /// Zone of calendars, exclusions and cron expressions without their own; empty is UTC.
    pub time_zone: String,
}

/// Rules of one kind: each is searched whenever the schedule is due.
const RULES_MAX: usize = 100;
/// Bytes of a cron expression or a calendar.
const RULE_BYTES: usize = 1000;
const JITTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// Searches of single rules for one time. A specification that excludes most of its times needs many.
const SEARCHES_MAX: usize = 2_000;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    Found(Timestamp),
    /// There is none up to this time; the search took long and ended here.
    NoneUntil(Timestamp),
    /// None follows.
    Never,
}

impl Spec {
    /// Whether it has no rule, so that only triggers start something.
    pub fn is_empty(&self) -> bool {
        self.cron.is_empty() && self.calendars.is_empty() && self.intervals.is_empty()
    }

    /// Refuses a specification that is malformed or never matches after `now`.
    pub fn check(&self, now: Timestamp) -> Result<(), InvalidField> {
        let times = self.times()?;
        if !times.rules.is_empty() && times.next_after(now) == Search::Never {
            let problem =
                "matches no time from now on; look at its fields, exclusions, start and end";
            return Err(InvalidField::new("schedule", problem));
        }
        Ok(())
    }

    /// The same, ready to be searched.
    pub fn times(&self) -> Result<Times, InvalidField> {
        self.check_bounds()?;
        let zone = Zone::named(&self.time_zone)
            .map_err(|problem| InvalidField::new("time zone", problem))?;
        let mut rules = Vec::new();
        for text in &self.cron {
            let parsed = cron::rules(text, &zone);
            rules.extend(parsed.map_err(|problem| {
                InvalidField::new("cron", format!("{text:?} is not a cron expression: {problem}"))
            })?);
        }
        let matcher = |field, calendar: &Calendar, absent| {
            let bad = |problem| InvalidField::new(field, format!("\"{calendar}\": {problem}"));
            calendar.matcher(absent).map_err(bad)
        };
        for calendar in &self.calendars {
            let matcher = matcher("calendar", calendar, AbsentTime::Zero)?;
            rules.push(Rule::Calendar(Box::new(matcher), zone.clone()));
        }
        for interval in &self.intervals {
            interval.check("interval")?;
            rules.push(Rule::Interval(*interval));
        }
        let excluded = |calendar| matcher("exclusion", calendar, AbsentTime::All);
        let exclusions = self.exclusions.iter().map(excluded).collect::<Result<_, _>>()?;
        let (start_at, end_at) = (self.start_at, self.end_at);
        let jitter = self.jitter.unwrap_or_default();
        Ok(Times { rules, exclusions, zone, start_at, end_at, jitter })
    }

    fn check_bounds(&self) -> Result<(), InvalidField> {
        let counts = [
            ("cron", self.cron.len()),
            ("calendar", self.calendars.len()),
            ("interval", self.intervals.len()),
            ("exclusion", self.exclusions.len()),
        ];
        for (field, count) in counts {
            if count > RULES_MAX {
                let problem = format!("is given {count} times, the limit is {RULES_MAX}");
                return Err(InvalidField::new(field, problem));
            }
        }
        let cron = self.cron.iter().map(|text| ("cron", text.len()));
        let calendars = self.calendars.iter().map(|calendar| ("calendar", calendar.size()));
        let excluded = self.exclusions.iter().map(|calendar| ("exclusion", calendar.size()));
        let zone = ("time zone", self.time_zone.len());
        for (field, bytes) in cron.chain(calendars).chain(excluded).chain([zone]) {
            if bytes > RULE_BYTES {
                let problem = format!("has {bytes} bytes, the limit is {RULE_BYTES}");
                return Err(InvalidField::new(field, problem));
            }
        }
        let jitter = self.jitter.unwrap_or_default();
        if jitter > JITTER_MAX {
            let problem = format!("is {jitter:?}, the limit is {JITTER_MAX:?}");
            return Err(InvalidField::new("jitter", problem));
        }
        match (self.start_at, self.end_at) {
            (Some(start), Some(end)) if end < start => {
                let problem = format!("{end} is before the start {start}");
                Err(InvalidField::new("end", problem))
            }
            _ => Ok(()),
        }
    }
}

/// A specification that can be searched.
#[derive(Clone, Debug)]
pub struct Times {
    rules: Vec<Rule>,
    exclusions: Vec<Matcher>,
    zone: Zone,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    jitter: Duration,
}

impl Times {
    /// First time after `after`.
    pub fn next_after(&self, after: Timestamp) -> Search {
        let before_start = self.start_at.map(|start| start - Duration::from_nanos(1));
        let mut after = before_start.map_or(after, |before| after.max(before));
        let mut next: Vec<_> = vec![None; self.rules.len()];
        let mut searches = 0;
        loop {
            for (rule, next) in self.rules.iter().zip(&mut next) {
                if next.is_none_or(|next| next <= after) {
                    *next = Some(rule.next_after(after).unwrap_or(Timestamp::NEVER));
                    searches += 1;
                }
            }
            let first = next.iter().flatten().min().copied().unwrap_or(Timestamp::NEVER);
            if first.is_never() || self.end_at.is_some_and(|end| first > end) {
                return Search::Never;
            }
            let Some(skip_to) = self.excluded_until(first) else { return Search::Found(first) };
            after = skip_to;
            if searches > SEARCHES_MAX {
                return Search::NoneUntil(after);
            }
        }
    }

    /// Up to `count` times after `after`.
    pub fn some_after(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        let next = |after: &Timestamp| match self.next_after(*after) {
            Search::Found(at) => Some(at),
            Search::NoneUntil(_) | Search::Never => None,
        };
        std::iter::successors(next(&after), next).take(count).collect()
    }

    /// When the start for a nominal time is due: delayed by a fraction of the jitter that follows from
    /// the schedule and the time alone, and never as late as the next nominal time.
    pub fn delayed(&self, schedule: &str, nominal: Timestamp) -> Timestamp {
        if self.jitter.is_zero() {
            return nominal;
        }
        let gap = match self.next_after(nominal) {
            Search::Found(next) | Search::NoneUntil(next) => next.saturating_since(nominal),
            Search::Never => self.jitter,
        };
        let millis = u64::try_from(self.jitter.min(gap).as_millis()).unwrap_or(u64::MAX);
        let mut hasher = SipHasher24::new();
        hasher.write(schedule.as_bytes());
        hasher.write(&nominal.seconds().to_be_bytes());
        nominal.saturating_add(Duration::from_millis(hasher.finish() % millis.max(1)))
    }

    /// If the time is excluded: the last time that is excluded with it.
    fn excluded_until(&self, at: Timestamp) -> Option<Timestamp> {
        if self.exclusions.is_empty() {
            return None;
        }
        let local = self.zone.local(at)?;
        let exclusion = self.exclusions.iter().find(|exclusion| exclusion.matches(local))?;
        match exclusion.whole_days() {
            true => self.zone.end_of_day(at).filter(|end| *end >= at).or(Some(at)),
            false => Some(at),
        }
    }
}
