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

/// Rules of one kind: each is searched whenever the schedule acts.
const RULES_MAX: usize = 20;
/// Exclusions are only compared with times, and a list of holidays is long.
const EXCLUSIONS_MAX: usize = 100;
/// Bytes of a cron expression or a calendar.
const RULE_BYTES: usize = 1000;
const JITTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// Steps of the search for one time. A specification that excludes most of its times needs many.
const STEPS_MAX: u64 = 40_000;
/// Steps that one search of a rule counts beside one for each day that it passes.
const STEPS_OF_SEARCH: u64 = 20;

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
        self.check_bounds()?;
        let mut times = self.times()?;
        self.check_each_rule()?;
        if !times.rules.is_empty() && times.next_after(now) == Search::Never {
            let problem =
                "matches no time from now on; look at its fields, exclusions, start and end";
            return Err(InvalidField::new("schedule", problem));
        }
        Ok(())
    }

    /// Refuses a rule that never matches: each search would look for it in vain, for decades.
    fn check_each_rule(&self) -> Result<(), InvalidField> {
        let cron = self.cron.iter().map(|text| {
            let one = Self { cron: vec![text.clone()], ..self.without_rules() };
            ("cron", format!("{text:?}"), one)
        });
        let calendars = self.calendars.iter().map(|calendar| {
            let one = Self { calendars: vec![calendar.clone()], ..self.without_rules() };
            ("calendar", format!("\"{calendar}\""), one)
        });
        for (field, rule, one) in cron.chain(calendars) {
            if one.times()?.next_after(Timestamp::EPOCH) == Search::Never {
                return Err(InvalidField::new(field, format!("{rule} never matches a time")));
            }
        }
        Ok(())
    }

    fn without_rules(&self) -> Self {
        Self { time_zone: self.time_zone.clone(), ..Self::default() }
    }

    /// The same, ready to be searched.
    pub fn times(&self) -> Result<Times, InvalidField> {
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
        let known = vec![None; rules.len()];
        let asked = Timestamp::EPOCH;
        Ok(Times { rules, exclusions, zone, start_at, end_at, jitter, known, asked, steps: 0 })
    }

    fn check_bounds(&self) -> Result<(), InvalidField> {
        let counts = [
            ("cron", self.cron.len(), RULES_MAX),
            ("calendar", self.calendars.len(), RULES_MAX),
            ("interval", self.intervals.len(), RULES_MAX),
            ("exclusion", self.exclusions.len(), EXCLUSIONS_MAX),
        ];
        for (field, count, limit) in counts {
            if count > limit {
                let problem = format!("is given {count} times, the limit is {limit}");
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

/// A specification that can be searched. It remembers what it found: while later and later times are
/// asked for, each rule is searched only when its last time has passed.
#[derive(Clone, Debug)]
pub struct Times {
    rules: Vec<Rule>,
    exclusions: Vec<Matcher>,
    zone: Zone,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    jitter: Duration,
    /// The first time of each rule after `asked`, once it was searched.
    known: Vec<Option<Timestamp>>,
    asked: Timestamp,
    /// Steps of all searches so far.
    steps: u64,
}

impl Times {
    /// First time after `after`.
    pub fn next_after(&mut self, after: Timestamp) -> Search {
        let before_start = self.start_at.map(|start| start - Duration::from_nanos(1));
        let mut after = before_start.map_or(after, |before| after.max(before));
        let most = self.steps.saturating_add(STEPS_MAX);
        loop {
            let first = self.first_after(after);
            if first.is_never() || self.end_at.is_some_and(|end| first > end) {
                return Search::Never;
            }
            let Some(skip_to) = self.excluded_until(first) else { return Search::Found(first) };
            after = skip_to;
            if self.steps > most {
                return Search::NoneUntil(after);
            }
        }
    }

    /// First time of any rule after `after`, excluded or not.
    fn first_after(&mut self, after: Timestamp) -> Timestamp {
        if after < self.asked {
            self.known.fill(None);
        }
        self.asked = after;
        for (rule, known) in self.rules.iter().zip(&mut self.known) {
            if known.is_none_or(|known| known <= after) {
                let found = rule.next_after(after);
                let passed = found.map_or(0, |found| found.saturating_since(after).as_secs());
                self.steps += STEPS_OF_SEARCH + passed / (24 * 3600);
                *known = Some(found.unwrap_or(Timestamp::NEVER));
            }
        }
        self.known.iter().flatten().min().copied().unwrap_or(Timestamp::NEVER)
    }

    /// Steps of all searches so far: about one for each day that was looked at.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Up to `count` times after `after`.
    pub fn some_after(&mut self, mut after: Timestamp, count: usize) -> Vec<Timestamp> {
        let mut found = Vec::new();
        while found.len() < count
            && let Search::Found(at) = self.next_after(after)
        {
            found.push(at);
            after = at;
        }
        found
    }

    /// When the start for a nominal time is due: delayed by a fraction of the jitter that follows from
    /// the schedule and the time alone, and never as late as the next nominal time.
    pub fn delayed(&mut self, schedule: &str, nominal: Timestamp) -> Timestamp {
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
