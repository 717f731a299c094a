//! Every history replays with the right code: whole, and cut at every completed task. At each cut a
//! machine runs the task as a worker would, and its commands must match history.

use abide_core::event::{Event, Fact, Marker, MarkerKind, UpdateAdmitted};

use super::{
    Check, Checked, Violation, crowds,
    ledger::{Ledger, Story},
    races, sagas, signals,
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
    sagas::sagas_are_undone_once(story, &steps)?;
    crowds::crowds_keep_their_bounds(story)?;
    values_are_the_recorded_ones(story, &steps)?;
    the_result_is_the_same(story, &steps)
}

/// Runs the task whose TaskCompleted is at `index`, then feeds it the events of that task. The code
/// before the changes may have run it; that takes the old branches, as the right code does only on
/// replay.
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
    let mut ended = task.iter().filter_map(|event| marker(event, &MarkerKind::LocalActivity));
    machine.feed(before.iter().cloned())?;
    machine.turn(&updates, |_| ended.next().cloned())?;
    machine.feed(task.iter().cloned())?;
    machine.settle()
}

/// Replayed code has the recorded values, in the same order, and makes no new ones.
fn values_are_the_recorded_ones(story: &Story, steps: &[String]) -> Checked {
    let kinds = [(MarkerKind::SideEffect, "value="), (MarkerKind::LocalActivity, "local=")];
    for (kind, seen_as) in kinds {
        let recorded = story.events.iter().filter_map(|event| recorded_value(event, &kind));
        let seen = steps.iter().filter_map(|step| step.strip_prefix(seen_as));
        if !recorded.eq(seen) {
            let what = format!("code has other values ({seen_as}) than were recorded");
            return Err(Violation::of(Check::Replays, story.run.id, what));
        }
    }
    Ok(())
}

fn recorded_value<'a>(event: &'a Event, kind: &MarkerKind) -> Option<&'a str> {
    let value = marker(event, kind)?.details.get("value").and_then(|value| value.first())?;
    std::str::from_utf8(&value.data).ok()
}

fn marker<'a>(event: &'a Event, kind: &MarkerKind) -> Option<&'a Marker> {
    match &event.body.fact {
        Fact::MarkerRecorded(recorded) if recorded.marker.kind == *kind => Some(&recorded.marker),
        _ => None,
    }
}

/// A completed run has the same result on replay; handlers may have continued.
fn the_result_is_the_same(story: &Story, steps: &[String]) -> Checked {
    let Some(Fact::RunCompleted(close)) = story.events.last().map(|event| &event.body.fact) else {
        return Ok(());
    };
    let recorded = close.result.first().map(|result| String::from_utf8_lossy(&result.data));
    if recorded.is_some_and(|recorded| steps.join(";").starts_with(&*recorded)) {
        return Ok(());
    }
    Err(Violation::of(Check::Replays, story.run.id, "code has another result on replay"))
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
