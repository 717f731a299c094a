//! Updates: an id has one outcome at most in a chain of runs, whoever asks for it and however often; and
//! a run that continues as new takes along what its handlers have not finished.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    event::{Fact, Outcome},
    ids::{RunId, UpdateId},
    run::Update,
};

use super::{
    Check, Checked, Violation, chains,
    ledger::{Ledger, Story},
};

/// The outcomes that callers were told, by the first run of the chain.
#[derive(Debug, Default)]
pub struct Outcomes {
    told: BTreeMap<(RunId, UpdateId), Outcome>,
}

impl Outcomes {
    /// Everybody who asks for an update is told the same.
    pub fn tell(&mut self, story: &Story, update: &UpdateId, outcome: &Outcome) -> Checked {
        let first = self.told.entry((story.run.first_run, update.clone()));
        if first.or_insert_with(|| outcome.clone()) == outcome {
            return Ok(());
        }
        let what = format!("update {update}: callers were told different outcomes");
        Err(Violation::of(Check::Updates, story.run.id, what))
    }
}

/// No update is carried out twice in a chain of runs, and none is left behind.
pub fn updates_are_carried_out_once(ledger: &Ledger) -> Checked {
    let firsts = ledger.stories.values().filter(|story| story.run.first_run == story.run.id);
    firsts.map(|first| chains::from(ledger, first.run.id)).try_for_each(|chain| {
        let mut over = BTreeSet::new();
        for story in chain {
            if let Some(update) = accepted(story).find(|update| over.contains(update)) {
                let what = format!("update {update} is accepted, although it had an outcome");
                return Err(Violation::of(Check::Updates, story.run.id, what));
            }
            let completed = story.run.updates.iter().filter(|(_, stage)| completed(stage));
            over.extend(completed.map(|(update, _)| update));
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
    let unfinished = story.run.updates.iter().filter(|(_, stage)| !completed(stage));
    for (update, _) in unfinished {
        if next.is_none_or(|next| !next.run.updates.contains_key(update)) {
            let what = format!("update {update} has no outcome, and the next run does not have it");
            return Err(Violation::of(Check::Updates, story.run.id, what));
        }
    }
    Ok(())
}

const fn completed(stage: &Update) -> bool {
    matches!(stage, Update::Completed(_))
}

fn accepted(story: &Story) -> impl Iterator<Item = &UpdateId> {
    story.events.iter().filter_map(|event| match &event.body.fact {
        Fact::UpdateAccepted(accepted) => Some(&accepted.update),
        _ => None,
    })
}
