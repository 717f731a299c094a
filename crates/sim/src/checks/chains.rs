//! Runs of one workflow are chains: at most one run is open, each closes once, and a run that names
//! its successor has it in the same batch.

use std::collections::BTreeSet;

use abide_core::{
    event::{Fact, Initiator},
    ids::RunId,
    run::Status,
};

use super::{
    Check, Checked, Violation,
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

/// Ordinals are dense, only the last run may be open, and links agree in both directions.
pub fn runs_are_chains(ledger: &Ledger) -> Checked {
    for (workflow, runs) in &ledger.workflows {
        let mut stories: Vec<_> = ledger.of_workflow(workflow).collect();
        stories.sort_by_key(|story| story.run.ordinal);
        for (index, story) in stories.iter().enumerate() {
            let wrong = |what: String| Err(Violation::of(Check::Chains, story.run.id, what));
            let ordinal = u64::try_from(index + 1).unwrap_or_default();
            if story.run.ordinal != ordinal {
                return wrong(format!("ordinal {} instead of {ordinal}", story.run.ordinal));
            }
            let last = index + 1 == runs.len();
            if story.run.open() && !last {
                return wrong("open, but not the current run".into());
            }
            let next = stories.get(index + 1).map(|next| next.run.id);
            if let Status::Closed { next_run: Some(link), .. } = story.run.status
                && next != Some(link)
            {
                return wrong(format!("followed by {next:?} instead of {link}"));
            }
            link_back(story, index.checked_sub(1).and_then(|before| stories.get(before)))?;
        }
    }
    Ok(())
}

fn link_back(story: &Story, before: Option<&&Story>) -> Checked {
    let Some(Fact::RunStarted(started)) = story.events.first().map(|event| &event.body.fact) else {
        return Err(Violation::of(Check::Chains, story.run.id, "no RunStarted"));
    };
    let Some(previous) = &started.previous else { return Ok(()) };
    let linked = before.is_some_and(|before| {
        let next = matches!(
            before.run.status,
            Status::Closed { next_run: Some(next), .. } if next == story.run.id
        );
        before.run.id == previous.run && (next || previous.initiator == Initiator::Reset)
    });
    if linked {
        return Ok(());
    }
    Err(Violation::of(Check::Chains, story.run.id, "the run before does not lead to it"))
}
