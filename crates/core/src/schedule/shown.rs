//! A schedule as lists and people see it.

use std::time::Duration;

use super::{Interval, ScheduleState, Spec};
use crate::{event::WaitDetails, time::Timestamp};

/// What lists show of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleListing {
    /// Type of the workflows that it starts.
    pub workflow_type: String,
    /// Its times, for people.
    pub summary: String,
    pub paused: bool,
    pub note: String,
    /// The nominal time of its next start.
    pub next: Option<Timestamp>,
    /// Number of open runs that it started.
    pub running: u32,
}

/// Characters of a summary: a list shows many of them.
const SUMMARY_CHARACTERS: usize = 200;

impl ScheduleState {
    pub fn listing(&self) -> ScheduleListing {
        ScheduleListing {
            workflow_type: self.schedule.run.workflow_type.clone(),
            summary: self.schedule.spec.summary(),
            paused: self.paused,
            note: self.note.clone(),
            next: self.next.map(|next| next.nominal),
            running: u32::try_from(self.running.len()).unwrap_or(u32::MAX),
        }
    }

    /// What the wait for its next time shows.
    pub(crate) fn shown(&self) -> WaitDetails {
        WaitDetails { subject: self.schedule.spec.summary(), ..WaitDetails::default() }
    }
}

impl Spec {
    /// The times, for people.
    pub fn summary(&self) -> String {
        let cron = self.cron.iter().cloned();
        let calendars = self.calendars.iter().map(ToString::to_string);
        let intervals = self.intervals.iter().map(every);
        let rules: Vec<_> = cron.chain(calendars).chain(intervals).collect();
        let mut text = if rules.is_empty() { "when triggered".into() } else { rules.join("; ") };
        if !self.time_zone.is_empty() {
            text = format!("{text} ({})", self.time_zone);
        }
        match text.char_indices().nth(SUMMARY_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

fn every(interval: &Interval) -> String {
    let offset = interval.offset.filter(|offset| !offset.is_zero());
    let offset = offset.map(|offset| format!(" offset {}", length(offset)));
    format!("every {}{}", length(interval.every), offset.unwrap_or_default())
}

/// A length as cron expressions have it: `1h30m`. Parts of a second are left out.
pub fn length(length: Duration) -> String {
    let seconds = length.as_secs();
    if seconds == 0 {
        return "0s".into();
    }
    let parts = [
        (seconds / 86_400, 'd'),
        (seconds / 3600 % 24, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ];
    let given = parts.into_iter().filter(|(count, _)| *count > 0);
    given.map(|(count, unit)| format!("{count}{unit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_all_rules_and_the_zone() {
        let interval =
            Interval { every: Duration::from_secs(5400), offset: Some(Duration::from_secs(60)) };
        let spec = Spec {
            cron: vec!["0 9 * * *".into()],
            calendars: vec!["hour=12 weekday=SAT".parse().unwrap()],
            intervals: vec![interval],
            time_zone: "Europe/Berlin".into(),
            ..Spec::default()
        };
        let expected = "0 9 * * *; weekday=SAT hour=12; every 1h30m offset 1m (Europe/Berlin)";
        assert_eq!(spec.summary(), expected);
        assert_eq!(Spec::default().summary(), "when triggered");
        let long = Spec { cron: vec!["ü".repeat(300)], ..Spec::default() }.summary();
        assert_eq!(long.chars().count(), 201);
    }
}
