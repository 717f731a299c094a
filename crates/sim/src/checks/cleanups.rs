//! Cleanup: a cancelled run has taken each step of its cleanup once, in order and one after the
//! other; no other run has taken any.

use abide_core::{
    event::{Event, Fact},
    ids::EventNumber,
};

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};
use crate::{
    code::CLEANUP_STEPS,
    programs::{Catalog, Cleanup},
};

/// Checks every run at rest against its program.
pub fn cleanup_runs_once(ledger: &Ledger, catalog: &Catalog) -> Checked {
    // Code that has not started has nothing to clean up.
    for story in ledger.stories.values().filter(|story| story.run.completed > 0) {
        let Some(program) = catalog.program(&story.run.spec.workflow_type) else { continue };
        cleaned_up(story, program.cleanup)
            .map_err(|what| Violation::of(Check::Cleanups, story.run.id, what))?;
    }
    Ok(())
}

fn cleaned_up(story: &Story, Cleanup { steps, limit }: Cleanup) -> Result<(), String> {
    let taken: Vec<_> = story.events.iter().filter_map(cleanup_step).collect();
    for (index, (number, step)) in taken.iter().enumerate() {
        if CLEANUP_STEPS.get(index) != Some(step) {
            return Err(format!("event {number} cleans up by {step}, which is not step {index}"));
        }
        let before = index.checked_sub(1).and_then(|before| taken.get(before));
        if before.is_some_and(|(before, _)| !completed_between(story, *before, *number)) {
            return Err(format!("{step} began before the step before it was done"));
        }
    }
    let last = taken.last().map(|(number, _)| *number);
    let unfinished = last.is_some_and(|last| !completed_between(story, last, EventNumber::MAX));
    // A deadline may have cut it short.
    let cut_short =
        limit.is_some() && taken.first().is_none_or(|(first, _)| fired_after(story, *first));
    match story.events.last().map(|event| &event.body.fact) {
        Some(Fact::RunCancelled(_)) if !cut_short && (taken.len() != steps || unfinished) => {
            Err(format!("it is cancelled after {} of {steps} steps of cleanup", taken.len()))
        }
        Some(Fact::RunCompleted(_) | Fact::RunFailed(_) | Fact::RunContinuedAsNew(_))
            if !taken.is_empty() =>
        {
            Err("it cleaned up, and was not cancelled".into())
        }
        _ => Ok(()),
    }
}

fn cleanup_step(event: &Event) -> Option<(EventNumber, &str)> {
    match &event.body.fact {
        Fact::ActivityScheduled(scheduled) => {
            let step = scheduled.spec.activity_type.as_str();
            CLEANUP_STEPS.contains(&step).then_some((event.number, step))
        }
        _ => None,
    }
}

/// Whether the activity scheduled by one event completed before the other event.
fn completed_between(story: &Story, scheduled: EventNumber, before: EventNumber) -> bool {
    let events = story.events.iter().take_while(|event| event.number < before);
    events.into_iter().any(|event| {
        matches!(&event.body.fact, Fact::ActivityCompleted(end) if end.scheduled == scheduled)
    })
}

fn fired_after(story: &Story, number: EventNumber) -> bool {
    let mut later = story.events.iter().skip_while(|event| event.number < number);
    later.any(|event| matches!(event.body.fact, Fact::TimerFired(_)))
}
