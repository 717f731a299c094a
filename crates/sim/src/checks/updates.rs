//! Updates: an id has at most one outcome in a chain of runs, for all callers and repeats; and a
//! run that continues as new carries over what its handlers have not finished.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Fact, UpdateOutcome},
    ids::{RunId, UpdateId},
    operation::CallError,
    run::{KnownUpdate, Status},
};

use super::{
    Check, Checked, Violation, chains,
    ledger::{Ledger, Story},
};
use crate::code;

/// Outcomes that callers were told, by the first run of the chain.
#[derive(Debug, Default)]
pub struct Outcomes {
    told: BTreeMap<(RunId, UpdateId), UpdateOutcome>,
}

impl Outcomes {
    /// All callers of an update get the same outcome.
    pub fn tell(
        &mut self,
        ledger: &Ledger,
        story: &Story,
        update: &UpdateId,
        outcome: &UpdateOutcome,
    ) -> Checked {
        // Code that runs again after a reset may come to another one.
        let mut runs = ledger.of_workflow(&story.run.workflow);
        if runs.any(|story| story.run.copied > 0) {
            return Ok(());
        }
        let first = self.told.entry((story.run.first_run, update.clone()));
        if first.or_insert_with(|| outcome.clone()) == outcome {
            return Ok(());
        }
        let what = format!("update {update}: callers got different outcomes");
        Err(Violation::of(Check::Updates, story.run.id, what))
    }
}

/// A caller who is told that an update was aborted is told how the run ended without it.
pub fn aborted(ledger: &Ledger, update: &UpdateId, error: &CallError) -> Checked {
    let CallError::UpdateAborted { run, how, accepted } = error else { return Ok(()) };
    let wrong = |what: &str| {
        let what = format!("update {update} was reported as aborted: {what}");
        Err(Violation::of(Check::Updates, *run, what))
    };
    let Some(story) = ledger.stories.get(run) else { return wrong("the run is not committed") };
    let stage = story.run.updates.get(update);
    match story.run.status {
        Status::Closed { how: closed, .. } if closed == *how => {}
        Status::Closed { .. } | Status::Open => return wrong("the run did not end so"),
    }
    if stage.is_some_and(KnownUpdate::over) {
        return wrong("it has an outcome");
    }
    if *accepted != matches!(stage, Some(KnownUpdate::Accepted { .. })) {
        return wrong("whether it was accepted is not true");
    }
    Ok(())
}

/// No update is carried out twice in a chain of runs, and none is left behind.
pub fn updates_are_carried_out_once(ledger: &Ledger) -> Checked {
    let firsts = ledger.stories.values().filter(|story| story.run.first_run == story.run.id);
    firsts.map(|first| chains::from(ledger, first.run.id)).try_for_each(|chain| {
        let mut over = BTreeSet::new();
        for story in chain {
            if story.run.copied > 0 {
                over.clear();
            }
            if let Some(update) = accepted(story).find(|update| over.contains(update)) {
                let what = format!("update {update} is accepted, although it had an outcome");
                return Err(Violation::of(Check::Updates, story.run.id, what));
            }
            let ended = story.run.updates.iter().filter(|(_, stage)| stage.over());
            over.extend(ended.map(|(update, _)| update));
            handlers_have_finished(story)?;
            nothing_is_left_behind(ledger, story)?;
        }
        Ok(())
    })
}

fn nothing_is_left_behind(ledger: &Ledger, story: &Story) -> Checked {
    let Some(Fact::RunContinuedAsNew(close)) = story.events.last().map(|event| &event.body.fact)
    else {
        return Ok(());
    };
    let next = ledger.stories.get(&close.next_run);
    for update in unfinished(story) {
        if next.is_none_or(|next| !next.run.updates.contains_key(update)) {
            let what = format!("update {update} has no outcome, and the next run does not have it");
            return Err(Violation::of(Check::Updates, story.run.id, what));
        }
    }
    Ok(())
}

/// A run that waits for its handlers completes after them.
fn handlers_have_finished(story: &Story) -> Checked {
    let closed = story.events.last().map(|event| &event.body.fact);
    let waits = code::waits_for_handlers(&story.run.spec.workflow_type);
    match unfinished(story).next() {
        Some(update) if waits && matches!(closed, Some(Fact::RunCompleted(_))) => {
            let what = format!("it is completed, and update {update} has no outcome");
            Err(Violation::of(Check::Updates, story.run.id, what))
        }
        _ => Ok(()),
    }
}

fn unfinished(story: &Story) -> impl Iterator<Item = &UpdateId> {
    let unfinished = story.run.updates.iter().filter(|(_, stage)| !stage.over());
    unfinished.map(|(update, _)| update)
}

fn accepted(story: &Story) -> impl Iterator<Item = &UpdateId> {
    story.events.iter().filter_map(|event| match &event.body.fact {
        Fact::UpdateAccepted(accepted) => Some(&accepted.update),
        _ => None,
    })
}
