//! Sagas: what was undone had been done, once, the last step first unless undone concurrently; and
//! a saga that reports that it was undone has left nothing except what it names.

use std::collections::BTreeMap;

use abide_core::{
    event::{Event, Fact},
    ids::EventNumber,
};

use super::{Check, Checked, Violation, ledger::Story, records::activity_end};
use crate::code::{NOT_UNDONE, STEP, STUBBORN_UNDO, UNDO, UNDONE};

/// An activity of a saga: when it was scheduled, when it ended, and whether it succeeded.
#[derive(Clone, Copy, Debug)]
struct SagaActivity {
    scheduled: EventNumber,
    over: Option<(EventNumber, bool)>,
}

/// One saga according to history, by index of the step.
#[derive(Debug, Default)]
struct SagaReport {
    done: BTreeMap<usize, SagaActivity>,
    undone: BTreeMap<usize, SagaActivity>,
    at_once: bool,
}

/// Checks the sagas of a run against its history and what its code, which has seen all of it,
/// reports.
pub fn sagas_are_undone_once(story: &Story, steps: &[String]) -> Checked {
    let wrong = |what: String| Violation::of(Check::Sagas, story.run.id, what);
    let sagas = sagas_of(story).map_err(wrong)?;
    for (number, saga) in &sagas {
        let said = said_of(steps, *number);
        judge(saga, said.as_deref()).map_err(|what| wrong(format!("saga {number}: {what}")))?;
    }
    Ok(())
}

fn judge(saga: &SagaReport, said: Option<&str>) -> Result<(), String> {
    for (index, undo) in &saga.undone {
        let done = saga.done.get(index).and_then(|done| done.over);
        if !done.is_some_and(|(at, succeeded)| succeeded && at < undo.scheduled) {
            return Err(format!("step {index} is undone, but was not done"));
        }
        let next = saga.undone.range(index + 1..).next();
        let in_turn = |(_, next): (&usize, &SagaActivity)| {
            next.over.is_some_and(|(over, _)| over < undo.scheduled)
        };
        if !saga.at_once && !next.is_none_or(in_turn) {
            return Err(format!("step {index} is undone before a later one was"));
        }
    }
    let Some(said) = said else { return Ok(()) };
    let succeeded = |work: &&SagaActivity| work.over.is_some_and(|(_, succeeded)| succeeded);
    let left = saga.done.iter().filter(|(index, done)| {
        succeeded(done) && !saga.undone.get(index).is_some_and(|undo| succeeded(&undo))
    });
    let left: Vec<_> = left.map(|(index, _)| *index).rev().collect();
    let named = named_steps(said);
    match said == UNDONE || said.starts_with(NOT_UNDONE) {
        true if left == named => Ok(()),
        true => Err(format!("steps {left:?} are left, and it names {named:?}")),
        false if saga.undone.is_empty() => Ok(()),
        false => Err("it is done, and was undone".into()),
    }
}

/// Steps that a saga reports it could not undo.
fn named_steps(said: &str) -> Vec<usize> {
    let named = said.strip_prefix(NOT_UNDONE).unwrap_or_default().trim();
    named.split(',').filter_map(|named| Some(name_of(named)?.1)).collect()
}

/// The first entry of the trace about a saga: how it ended.
fn said_of(steps: &[String], number: usize) -> Option<String> {
    let name = format!("saga {number}=");
    steps.iter().find_map(|step| step.strip_prefix(&name).map(str::to_owned))
}

/// Number of the saga and index of the step.
fn name_of(named: &str) -> Option<(usize, usize, bool)> {
    let mut parts = named.splitn(3, '.');
    let number = parts.next()?.parse().ok()?;
    let index = parts.next()?.parse().ok()?;
    Some((number, index, parts.next()? == "at once"))
}

fn sagas_of(story: &Story) -> Result<BTreeMap<usize, SagaReport>, String> {
    let mut sagas: BTreeMap<usize, SagaReport> = BTreeMap::new();
    for event in &story.events {
        let Some((activity_type, (number, index, at_once))) = work_of(event) else { continue };
        let saga = sagas.entry(number).or_default();
        saga.at_once = at_once;
        let works = match activity_type {
            STEP => &mut saga.done,
            _ => &mut saga.undone,
        };
        let work = SagaActivity { scheduled: event.number, over: end_of(story, event.number) };
        if works.insert(index, work).is_some() {
            return Err(format!("{activity_type} {index} of saga {number} is asked for twice"));
        }
    }
    Ok(sagas)
}

fn work_of(event: &Event) -> Option<(&str, (usize, usize, bool))> {
    let Fact::ActivityScheduled(scheduled) = &event.body.fact else { return None };
    let activity_type = scheduled.spec.activity_type.as_str();
    if ![STEP, UNDO, STUBBORN_UNDO].contains(&activity_type) {
        return None;
    }
    let text = scheduled.spec.input.first()?;
    Some((activity_type, name_of(std::str::from_utf8(&text.data).ok()?)?))
}

/// When an activity ended, and whether it succeeded.
fn end_of(story: &Story, scheduled: EventNumber) -> Option<(EventNumber, bool)> {
    story.events.iter().find_map(|event| {
        let (of, succeeded) = activity_end(&event.body.fact)?;
        (of == scheduled).then_some((event.number, succeeded))
    })
}
