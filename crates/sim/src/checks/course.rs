//! Resets and deletions: a reset copies a history as it is and carries over what it should, once; a
//! deleted run was over, and leaves nothing.

use std::collections::BTreeSet;

use abide_core::{
    event::{Event, Fact, RunStarted, SignalReceived, TaskFailureCause},
    ids::{Key, RunId},
    run::Status,
};
use abide_store::{
    memory::Tables,
    rows::{Loaded, LogLimit},
};

use super::{
    Check, Checked, Violation,
    ledger::{Ledger, Story},
};

/// The reason of a reset after which later signals follow.
pub const KEEP_SIGNALS: &str = "keep signals";

/// A caller is told that this run goes on after a reset with its key.
pub fn reset_is_durable(ledger: &Ledger, key: Option<&Key>, run: RunId) -> Checked {
    let story = ledger.stories.get(&run);
    if story.is_some_and(|story| story.run.was_reset_by(key)) {
        return Ok(());
    }
    Err(Violation::of(Check::AckedIsDurable, run, "the reset is not committed"))
}

/// A caller is told that this run is deleted.
pub fn deletion_is_durable(ledger: &Ledger, run: RunId) -> Checked {
    if ledger.stories.get(&run).is_some_and(|story| story.deleted) {
        return Ok(());
    }
    Err(Violation::of(Check::AckedIsDurable, run, "the deletion is not committed"))
}

/// A run is deleted.
pub fn delete(ledger: &mut Ledger, run: RunId) -> Checked {
    let wrong = |what: &str| Err(Violation::of(Check::Deletions, run, what));
    let Some(story) = ledger.stories.get_mut(&run) else { return wrong("it was never written") };
    if story.deleted {
        return wrong("it is deleted twice");
    }
    if story.run.open() {
        return wrong("it was open");
    }
    if !story.run.outbox.is_empty() {
        return wrong("it had effects that were not delivered");
    }
    story.deleted = true;
    Ok(())
}

/// The store has nothing of a deleted run.
pub fn deleted_leaves_nothing(story: &Story, tables: &Tables) -> Checked {
    let Loaded { snapshot, log, .. } = tables.load(story.shard, story.run.id, LogLimit::rows(1));
    if snapshot.is_none() && log.is_empty() {
        return Ok(());
    }
    Err(Violation::of(Check::Deletions, story.run.id, "a part of it is left"))
}

/// Checked after every commit, for the runs in it that a reset has just made.
pub fn resets_copy(ledger: &Ledger, runs: &BTreeSet<RunId>) -> Checked {
    let made = runs.iter().filter_map(|run| ledger.stories.get(run));
    made.filter(|story| story.run.copied > 0 && story.inherited == story.run.last_event)
        .try_for_each(|story| {
            copy_of(ledger, story).map_err(|what| Violation::of(Check::Resets, story.run.id, what))
        })
}

fn copy_of(ledger: &Ledger, story: &Story) -> Result<(), String> {
    let reset = started(story).and_then(|started| started.reset.as_ref());
    let reset = reset.ok_or("it does not say where it comes from")?;
    let base = ledger.stories.get(&reset.base.run).ok_or("its base is not written")?;
    match base.run.status {
        Status::Closed { next_run: Some(next), .. } if next == story.run.id => {}
        Status::Closed { .. } | Status::Open => return Err("its base leads elsewhere".into()),
    }
    let copied = usize::try_from(reset.copied).unwrap_or(usize::MAX);
    if let Some(number) = (1..copied).find(|index| !same(base, story, *index)) {
        return Err(format!("event {} is not as it was", number + 1));
    }
    match story.events.get(copied).map(|event| &event.body.fact) {
        Some(Fact::TaskFailed(failed)) if failed.cause == TaskFailureCause::Reset => {}
        _ => return Err("its task does not end with the reset".into()),
    }
    let later = |story: &Story| -> Vec<SignalReceived> {
        let later = story.events.iter().skip(copied);
        later.filter_map(|event| signal(event).cloned()).collect()
    };
    let kept = if reset.reason.ends_with(KEEP_SIGNALS) { later(base) } else { Vec::new() };
    if kept != later(story) {
        return Err("later signals do not follow as they came".into());
    }
    Ok(())
}

fn same(base: &Story, story: &Story, index: usize) -> bool {
    let (Some(old), Some(new)) = (base.events.get(index), story.events.get(index)) else {
        return false;
    };
    (old.number, old.time, old.body.stored()) == (new.number, new.time, new.body.stored())
}

fn signal(event: &Event) -> Option<&SignalReceived> {
    match &event.body.fact {
        Fact::SignalReceived(signal) => Some(signal),
        _ => None,
    }
}

/// The first event of a run.
pub fn started(story: &Story) -> Option<&RunStarted> {
    match story.events.first().map(|event| &event.body.fact) {
        Some(Fact::RunStarted(started)) => Some(started),
        _ => None,
    }
}

/// The run whose history, or whose unread signals, this one has taken over.
pub fn before<'a>(ledger: &'a Ledger, story: &Story) -> Option<&'a Story> {
    let started = started(story)?;
    let reset = started.reset.as_ref().map(|reset| reset.base.run);
    let before = reset.or_else(|| started.previous.as_ref().map(|previous| previous.run));
    ledger.stories.get(&before?)
}
