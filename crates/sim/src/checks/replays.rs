//! Every history replays with the right code: whole, and cut at every task that was completed. At each
//! cut a machine runs the task as a worker would; what it asks for must be what history has.

use abide_core::event::{Event, Fact, MarkerKind, UpdateAdmitted};

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
    races, signals,
};
use crate::{
    code::{Machine, Trouble},
    programs::{Build, Catalog},
};

/// All histories, at every cut.
pub fn every_history_replays(ledger: &Ledger, catalog: &Catalog) -> Checked {
    ledger.stories.values().try_for_each(|story| history_replays(story, catalog))
}

fn history_replays(story: &Story, catalog: &Catalog) -> Checked {
    let Some(mut whole) = unused_machine(story, catalog, Build::Right) else { return Ok(()) };
    for (index, event) in story.events.iter().enumerate() {
        whole.feed([event.clone()]).map_err(|error| mismatch(story, event, &error))?;
        let next = story.events.get(index + 1).map(|event| &event.body.fact);
        let completed = matches!(next, Some(Fact::TaskCompleted(_)));
        if completed && matches!(event.body.fact, Fact::TaskStarted(_)) {
            cut_replays(story, catalog, index + 1)?;
        }
    }
    let Some(last) = story.events.last() else { return Ok(()) };
    whole.settle().map_err(|error| mismatch(story, last, &error))?;
    let steps = whole.steps();
    signals::signals_are_read_once(story, &steps)?;
    races::first_in_history_wins(story, &steps)?;
    values_are_the_recorded_ones(story, &steps)
}

/// Runs the task whose TaskCompleted is at `index`, then shows it what history has of it. The code
/// before the changes may have run it; it takes their old parts, which the right code does on replay only.
fn cut_replays(story: &Story, catalog: &Catalog, index: usize) -> Checked {
    let by = |build| {
        let Some(machine) = unused_machine(story, catalog, build) else { return Ok(()) };
        task_fits(story, machine, index)
    };
    by(Build::Right)
        .or_else(|error| by(Build::Before).map_err(|_| error))
        .map_err(|error| mismatch(story, &story.events[index], &error))
}

fn task_fits(story: &Story, mut machine: Machine, index: usize) -> Result<(), Trouble> {
    let (before, rest) = story.events.split_at(index);
    let end = rest.iter().position(|event| matches!(event.body.fact, Fact::TaskScheduled(_)));
    let task = &rest[..end.unwrap_or(rest.len())];
    let updates: Vec<_> = task.iter().filter_map(accepted).collect();
    machine.feed(before.iter().cloned())?;
    machine.turn(&updates)?;
    machine.feed(task.iter().cloned())?;
    machine.settle()
}

/// Code that replays has the values that were recorded, in the same order, and makes no new ones.
fn values_are_the_recorded_ones(story: &Story, steps: &[String]) -> Checked {
    let recorded = story.events.iter().filter_map(recorded_value);
    let seen = steps.iter().filter_map(|step| step.strip_prefix("value="));
    if recorded.eq(seen) {
        return Ok(());
    }
    Err(Violation::of(Check::Replays, story.run.id, "code has other values than were recorded"))
}

fn recorded_value(event: &Event) -> Option<&str> {
    match &event.body.fact {
        Fact::MarkerRecorded(recorded) if recorded.marker.kind == MarkerKind::SideEffect => {
            let value = recorded.marker.details.get("value").and_then(|value| value.first())?;
            std::str::from_utf8(&value.data).ok()
        }
        _ => None,
    }
}

fn unused_machine(story: &Story, catalog: &Catalog, build: Build) -> Option<Machine> {
    let run = &story.run;
    catalog.machine(build, &run.spec.workflow_type, &run.workflow, run.id)
}

fn accepted(event: &Event) -> Option<UpdateAdmitted> {
    let Fact::UpdateAccepted(accepted) = &event.body.fact else { return None };
    let accepted = accepted.clone();
    Some(UpdateAdmitted { update: accepted.update, request: accepted.request })
}

fn mismatch(story: &Story, event: &Event, error: &impl std::fmt::Display) -> Violation {
    let what = format!("at event {}: {error}", event.number);
    Violation::of(Check::Replays, story.run.id, what)
}
