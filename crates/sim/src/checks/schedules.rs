//! Schedules, at rest: each of their times is dealt with once, what they say to have started runs,
//! and they know what is still open.

use std::collections::BTreeMap;

use abide_core::{
    ids::{RunId, WorkflowKey},
    run::{Close, Status},
    schedule::{ScheduleChange, ScheduledOutcome, ScheduledRun, id_of},
    time::Timestamp,
};

use super::{
    Check, Checked, Violation, chains, course,
    ledger::{Ledger, Story},
};

/// What a schedule has recorded in one of its runs.
#[derive(Debug, Default)]
pub struct Doings {
    pub started: Vec<ScheduledRun>,
    /// By the number of the start.
    pub outcomes: BTreeMap<u64, ScheduledOutcome>,
    pub changes: Vec<ScheduleChange>,
}

/// More times than a schedule of a world has.
const MANY: usize = 1000;

/// All schedules, and all runs that schedules started.
pub fn schedules_keep_their_times(ledger: &Ledger) -> Checked {
    let mut started = BTreeMap::new();
    for workflow in ledger.workflows.keys().filter(|key| is_schedule(key)) {
        for schedule in lives(ledger, workflow) {
            let runs = schedule.iter().flat_map(|story| &story.schedule.started);
            started.extend(runs.map(|run| (run.run, run.number)));
            let Some(last) = schedule.last() else { continue };
            judge(ledger, &schedule)
                .map_err(|what| Violation::of(Check::Schedules, last.run.id, what))?;
        }
    }
    ledger.stories.values().try_for_each(|story| was_started(story, &started))
}

fn is_schedule(workflow: &WorkflowKey) -> bool {
    id_of(&workflow.workflow).is_some()
}

/// The runs of each schedule that had this id, one after the other.
fn lives<'a>(ledger: &'a Ledger, workflow: &WorkflowKey) -> Vec<Vec<&'a Story>> {
    let mut stories: Vec<_> = ledger.of_workflow(workflow).collect();
    stories.sort_by_key(|story| story.run.ordinal);
    let mut lives: Vec<Vec<&Story>> = Vec::new();
    for story in stories {
        let follows = course::started(story).is_some_and(|started| started.previous.is_some());
        match lives.last_mut().filter(|_| follows) {
            Some(life) => life.push(story),
            None => lives.push(vec![story]),
        }
    }
    lives
}

fn judge(ledger: &Ledger, schedule: &[&Story]) -> Result<(), String> {
    let starts: Vec<_> = schedule.iter().flat_map(|story| &story.schedule.started).collect();
    let outcomes: BTreeMap<_, _> =
        schedule.iter().flat_map(|story| &story.schedule.outcomes).collect();
    let changes: Vec<_> = schedule.iter().flat_map(|story| &story.schedule.changes).collect();
    // A schedule that was deleted does not record any more that a start was refused.
    let untold = schedule.last().is_some_and(|story| !story.run.open());
    for start in &starts {
        let same = starts.iter().filter(|other| other.nominal == start.nominal).count();
        if same > 1 + backfills(&changes, start.nominal) {
            return Err(format!("{} starts {same} times", start.nominal));
        }
        let outcome = outcomes.get(&start.number).copied();
        runs_as_told(ledger, start, outcome, untold)?;
    }
    knows_what_is_open(ledger, schedule, &starts)?;
    if changes.is_empty() { all_times_came(schedule, starts.len()) } else { Ok(()) }
}

/// Number of backfills that may start this time again.
fn backfills(changes: &[&ScheduleChange], nominal: Timestamp) -> usize {
    let covers = |change: &&&ScheduleChange| match change {
        ScheduleChange::Backfilled { from, to, .. } => (*from..=*to).contains(&nominal),
        ScheduleChange::Updated(_)
        | ScheduleChange::Paused { .. }
        | ScheduleChange::Unpaused { .. }
        | ScheduleChange::Triggered { .. } => false,
    };
    changes.iter().filter(covers).count()
}

fn runs_as_told(
    ledger: &Ledger,
    start: &ScheduledRun,
    outcome: Option<&ScheduledOutcome>,
    untold: bool,
) -> Result<(), String> {
    let failed = matches!(outcome, Some(ScheduledOutcome::NotStarted { .. }));
    match ledger.stories.get(&start.run) {
        Some(_) if failed => Err(format!("start {} is said to have failed", start.number)),
        Some(story) if story.run.workflow.workflow != start.workflow => {
            Err(format!("start {} has another id", start.number))
        }
        None if !failed && !untold => Err(format!("start {} never ran", start.number)),
        Some(_) | None => Ok(()),
    }
}

/// An open schedule knows which of the runs that it started are open.
fn knows_what_is_open(
    ledger: &Ledger,
    schedule: &[&Story],
    starts: &[&ScheduledRun],
) -> Result<(), String> {
    let current = schedule.iter().find(|story| story.run.open() && !story.deleted);
    let Some(state) = current.and_then(|story| story.run.schedule.as_ref()) else { return Ok(()) };
    for start in starts {
        let known = state.running.iter().any(|run| run.number == start.number);
        let chain: Vec<_> = chains::from(ledger, start.run).collect();
        if chain.iter().any(|story| story.deleted || story.run.copied > 0) {
            continue;
        }
        let open = chain.last().is_some_and(|story| story.run.open());
        if known != open {
            return Err(format!("start {} is open: {open}; it knows: {known}", start.number));
        }
    }
    Ok(())
}

/// A schedule that has ended by itself, and was never changed, has dealt with all its times.
fn all_times_came(schedule: &[&Story], starts: usize) -> Result<(), String> {
    let (Some(first), Some(last)) = (schedule.first(), schedule.last()) else { return Ok(()) };
    let over = matches!(last.run.status, Status::Closed { how: Close::Completed, .. });
    let Some(begun) = course::started(first).and_then(|started| started.schedule.as_ref()) else {
        return Err("it begins without a schedule".into());
    };
    let Some(end) = last.run.schedule.as_ref().filter(|_| over) else { return Ok(()) };
    if begun.schedule.remaining.is_some() {
        return Ok(());
    }
    let mut times = begun.schedule.spec.times().map_err(|invalid| invalid.to_string())?;
    let times = times.some_after(begun.created_at, MANY).len();
    let left_out = usize::try_from(end.skipped + end.missed).unwrap_or(usize::MAX);
    if starts + left_out == times {
        return Ok(());
    }
    Err(format!("it had {times} times, started {starts} and left out {left_out}"))
}

/// A run with a schedule as its parent was started by it.
fn was_started(story: &Story, started: &BTreeMap<RunId, u64>) -> Checked {
    let Some(parent) = &story.run.parent else { return Ok(()) };
    if !is_schedule(&parent.run.workflow) {
        return Ok(());
    }
    if started.get(&story.run.first_run) == Some(&parent.initiated) {
        return Ok(());
    }
    let what = "its schedule has not started it";
    Err(Violation::of(Check::Schedules, story.run.id, what))
}
