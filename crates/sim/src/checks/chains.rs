//! Runs of one workflow are chains: at most one run is open, each closes once, and a run that names
//! its successor has it in the same batch.

use std::collections::BTreeSet;

use abide_core::{ids::RunId, run::Status};

use super::{
    Check, Checked, Violation, course,
    ledger::{Ledger, Story},
};

/// The chain of runs that starts with `run`.
pub fn from(ledger: &Ledger, run: RunId) -> impl Iterator<Item = &Story> {
    let next = |story: &&Story| match story.run.status {
        Status::Closed { next_run, .. } => next_run.and_then(|next| ledger.stories.get(&next)),
        Status::Open => None,
    };
    std::iter::successors(ledger.stories.get(&run), next)
}

/// Checked after every commit, for the runs in it.
pub fn hold_together(ledger: &Ledger, runs: &BTreeSet<RunId>) -> Checked {
    for story in runs.iter().filter_map(|run| ledger.stories.get(run)) {
        let wrong = |what: String| Err(Violation::of(Check::Chains, story.run.id, what));
        if let Status::Closed { next_run: Some(next), .. } = story.run.status
            && !ledger.stories.contains_key(&next)
        {
            return wrong(format!("it is closed, and {next} does not follow it"));
        }
        let other =
            |other: &&Story| other.run.id != story.run.id && other.run.open() && story.run.open();
        if let Some(other) = ledger.of_workflow(&story.run.workflow).find(other) {
            return wrong(format!("it is open, and so is {}", other.run.id));
        }
    }
    Ok(())
}

/// Ordinals rise, and are dense unless runs are deleted; only the last run may be open, and links agree in
/// both directions.
pub fn runs_are_chains(ledger: &Ledger) -> Checked {
    for workflow in ledger.workflows.keys() {
        let all: Vec<_> = ledger.of_workflow(workflow).collect();
        let dense = !all.iter().any(|story| story.deleted);
        let mut stories: Vec<_> = all.into_iter().filter(|story| !story.deleted).collect();
        stories.sort_by_key(|story| story.run.ordinal);
        for (index, story) in stories.iter().enumerate() {
            let wrong = |what: String| Err(Violation::of(Check::Chains, story.run.id, what));
            let before = index.checked_sub(1).and_then(|before| stories.get(before)).copied();
            let ordinal = before.map_or(0, |before| before.run.ordinal) + 1;
            if story.run.ordinal < ordinal || (dense && story.run.ordinal != ordinal) {
                return wrong(format!("ordinal {} instead of {ordinal}", story.run.ordinal));
            }
            let next = stories.get(index + 1);
            if story.run.open() && next.is_some() {
                return wrong("open, but not the current run".into());
            }
            link_holds(ledger, story, next.copied())?;
            link_back(ledger, story)?;
        }
    }
    Ok(())
}

/// The run that a closed run names follows it, at once unless it was made by a reset.
fn link_holds(ledger: &Ledger, story: &Story, next: Option<&Story>) -> Checked {
    let Status::Closed { next_run: Some(link), .. } = story.run.status else { return Ok(()) };
    let named = ledger.stories.get(&link);
    let by_reset = named.is_some_and(|named| named.run.reset_from == Some(story.run.id));
    let deleted = named.is_some_and(|named| named.deleted);
    if by_reset || deleted || next.is_some_and(|next| next.run.id == link) {
        return Ok(());
    }
    let next = next.map(|next| next.run.id);
    let what = format!("followed by {next:?} instead of {link}");
    Err(Violation::of(Check::Chains, story.run.id, what))
}

/// The run before leads to this one. It may lead to a later one too, if it was reset since.
fn link_back(ledger: &Ledger, story: &Story) -> Checked {
    let wrong = |what: &str| Err(Violation::of(Check::Chains, story.run.id, what));
    let Some(started) = course::started(story) else { return wrong("no RunStarted") };
    if started.previous.is_none() && started.reset.is_none() {
        return Ok(());
    }
    let Some(before) = course::before(ledger, story) else {
        return wrong("the run before was never written");
    };
    let linked = match before.run.status {
        Status::Closed { next_run: Some(next), .. } => {
            let later = ledger.stories.get(&next).map(|next| next.run.reset_from);
            next == story.run.id || later == Some(Some(before.run.id))
        }
        Status::Closed { next_run: None, .. } | Status::Open => false,
    };
    if linked { Ok(()) } else { wrong("the run before does not lead to it") }
}
