//! What can be said of a schedule when it is created or updated: when it is due, what it starts, and
//! under which policy. Options that are not given leave things as they are.

use std::time::Duration;

use abide::{Timestamp, payload::PayloadValue as _};
use abide_command::{
    Failed,
    time::{parse_length, parse_moment},
};
use abide_core::{
    payload::PayloadMap,
    schedule::{Calendar, Interval, Schedule, Spec},
};
use clap::Args;

use super::overlap::Policy;
use crate::input::{Input, named};

#[derive(Args)]
pub(super) struct Options {
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    action: Action,
    /// What to do if a start is due while an earlier run is open
    #[arg(long, value_enum, value_name = "POLICY")]
    overlap: Option<Policy>,
    /// How late a start may be, after downtime [default: 365d]
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    catch_up: Option<Duration>,
    /// Pause the schedule when a run fails or times out
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pause_on_failure: Option<bool>,
    /// How many starts are left; triggers and backfills do not count
    #[arg(long, value_name = "COUNT")]
    remaining: Option<u64>,
}

/// When the schedule is due.
#[derive(Args)]
struct Times {
    /// Cron expression, such as "0 9 * * MON-FRI" or @daily; repeat for several
    #[arg(long, value_name = "CRON")]
    cron: Vec<String>,
    /// Calendar fields, such as "hour=9 weekday=MON-FRI" or "day=L hour=12"; repeat for several
    #[arg(long, value_name = "FIELDS")]
    calendar: Vec<Calendar>,
    /// Interval, such as 1h, or with an offset 1h+10m; repeat for several
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    every: Vec<Interval>,
    /// Calendar fields of times to leave out, such as "month=12 day=25"; repeat for several
    #[arg(long, value_name = "FIELDS")]
    except: Vec<Calendar>,
    /// Time zone of the rules, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// First moment that counts
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    start_at: Option<Timestamp>,
    /// Last moment that counts
    #[arg(long, value_name = "MOMENT", value_parser = parse_moment)]
    end_at: Option<Timestamp>,
    /// Delay each start by up to this
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    jitter: Option<Duration>,
}

/// What the schedule starts.
#[derive(Args)]
struct Action {
    /// Beginning of the workflow ids, to which the time is appended [default: the schedule's id]
    #[arg(long, value_name = "ID")]
    workflow_id: Option<String>,
    /// Task queue whose workers run it
    #[arg(short, long, value_name = "QUEUE")]
    queue: Option<String>,
    #[command(flatten)]
    input: Input,
    /// Time limit for one run
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    run_timeout: Option<Duration>,
    /// Time limit for a run and all runs that follow it
    #[arg(long, value_name = "TIME", value_parser = parse_length, allow_hyphen_values = true)]
    execution_timeout: Option<Duration>,
    /// Search attribute of the runs as NAME=JSON; repeat for several
    #[arg(long, value_name = "NAME=JSON")]
    search_attribute: Vec<String>,
    /// Named value that is shown with the runs, as NAME=JSON; repeat for several
    #[arg(long, value_name = "NAME=JSON")]
    memo: Vec<String>,
}

impl Options {
    /// Changes the schedule as the options say.
    pub(super) fn apply(self, schedule: &mut Schedule) -> Result<(), Failed> {
        let Self { times, action, overlap, catch_up, pause_on_failure, remaining } = self;
        times.apply(&mut schedule.spec);
        action.apply(schedule)?;
        replace(&mut schedule.overlap, overlap.map(Into::into));
        replace(&mut schedule.catch_up, catch_up);
        replace(&mut schedule.remaining, remaining);
        schedule.pause_on_failure = pause_on_failure.unwrap_or(schedule.pause_on_failure);
        Ok(())
    }
}

impl Times {
    /// New rules replace all rules, new exclusions all exclusions.
    fn apply(self, spec: &mut Spec) {
        let Self { cron, calendar, every, except, time_zone, start_at, end_at, jitter } = self;
        if !(cron.is_empty() && calendar.is_empty() && every.is_empty()) {
            spec.cron = cron;
            spec.calendars = calendar;
            spec.intervals = every;
        }
        if !except.is_empty() {
            spec.exclusions = except;
        }
        spec.time_zone = time_zone.unwrap_or_else(|| std::mem::take(&mut spec.time_zone));
        replace(&mut spec.start_at, start_at);
        replace(&mut spec.end_at, end_at);
        replace(&mut spec.jitter, jitter);
    }
}

impl Action {
    fn apply(self, schedule: &mut Schedule) -> Result<(), Failed> {
        if let Some(id) = self.workflow_id {
            schedule.workflow = id.into();
        }
        let run = &mut schedule.run;
        run.queue = self.queue.unwrap_or_else(|| std::mem::take(&mut run.queue));
        let input = self.input.payloads()?;
        if !input.is_empty() {
            run.input = input;
        }
        replace(&mut run.run_timeout, self.run_timeout);
        replace(&mut run.execution_timeout, self.execution_timeout);
        add(&mut run.search_attributes, &self.search_attribute, "--search-attribute")?;
        add(&mut run.memo, &self.memo, "--memo")
    }
}

fn replace<T>(old: &mut Option<T>, new: Option<T>) {
    *old = new.or_else(|| old.take());
}

fn add(values: &mut PayloadMap, texts: &[String], option: &str) -> Result<(), Failed> {
    for (name, value) in named(texts, option)? {
        let payload = value.to_payload().map_err(Failed::usage)?;
        values.insert(name, payload.unwrap_or_default());
    }
    Ok(())
}

fn parse_interval(text: &str) -> Result<Interval, String> {
    let (every, offset) = match text.split_once('+') {
        Some((every, offset)) => (every, Some(parse_length(offset.trim())?)),
        None => (text, None),
    };
    Ok(Interval { every: parse_length(every.trim())?, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_may_have_an_offset() {
        let interval = parse_interval("1h + 10m").unwrap();
        assert_eq!(interval.every, Duration::from_secs(3600));
        assert_eq!(interval.offset, Some(Duration::from_secs(600)));
        assert_eq!(parse_interval("90m").unwrap().offset, None);
        assert!(parse_interval("often").unwrap_err().contains("write it as 90s"));
    }
}
