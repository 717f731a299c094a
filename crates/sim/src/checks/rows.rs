//! Rows are the projection of the folded runs: no wait without a row, no row without a wait, and
//! the same for tasks, due times, effects and runs. And a shard reads back what it had.

use std::collections::BTreeMap;

use abide_core::{
    codec,
    ids::{RunId, ShardId},
    run::Run,
    time::Timestamp,
};
use abide_shard::{
    rows::{Row, project},
    shard::Shard,
};
use abide_store::{
    RunFilter, WaitFilter,
    memory::Tables,
    rows::{DueKey, Loaded, LogLimit, TaskKey},
};
use bytes::Bytes;

use super::{
    Check, Checked, Violation, course,
    ledger::{Ledger, Story},
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowKey {
    Task(TaskKey),
    Due(DueKey),
    Wait(RunId, Bytes),
    Outbox(RunId, u64),
    Run(RunId),
    Attribute(RunId, String, Bytes),
}

/// All rows of all shards are those that the log requires.
pub fn rows_are_the_projection(
    ledger: &Ledger,
    tables: &Tables,
    shards: impl Iterator<Item = ShardId>,
) -> Checked {
    let mut wanted = BTreeMap::new();
    for story in ledger.stories.values().filter(|story| !story.deleted) {
        for part in story.run.parts() {
            for row in project(&story.run, &part) {
                wanted.insert(place(&row), row);
            }
        }
    }
    let stored = stored_rows(tables, shards);
    for (place, row) in &wanted {
        match stored.get(place) {
            None => return Err(wrong(format!("missing: {row:?}"), place)),
            Some(found) if found != row => {
                return Err(wrong(format!("stored {found:?} instead of {row:?}"), place));
            }
            Some(_) => {}
        }
    }
    match stored.iter().find(|(place, _)| !wanted.contains_key(place)) {
        Some((place, row)) => Err(wrong(format!("left over: {row:?}"), place)),
        None => Ok(()),
    }
}

fn wrong(what: String, place: &RowKey) -> Violation {
    let run = match place {
        RowKey::Task(key) => key.run,
        RowKey::Due(key) => key.run,
        RowKey::Wait(run, _)
        | RowKey::Outbox(run, _)
        | RowKey::Run(run)
        | RowKey::Attribute(run, ..) => *run,
    };
    Violation::of(Check::Rows, run, what)
}

fn place(row: &Row) -> RowKey {
    match row {
        Row::Task(row) => RowKey::Task(row.key.clone()),
        Row::Due(row) => RowKey::Due(row.key()),
        Row::Wait(row) => RowKey::Wait(row.run, row.wait.clone()),
        Row::Outbox(row) => RowKey::Outbox(row.run, row.number),
        Row::Run(row) => RowKey::Run(row.run),
        Row::Attribute(row) => RowKey::Attribute(row.run, row.name.clone(), row.value.clone()),
    }
}

fn stored_rows(tables: &Tables, shards: impl Iterator<Item = ShardId>) -> BTreeMap<RowKey, Row> {
    let mut rows = Vec::new();
    for shard in shards {
        rows.extend(tables.tasks(shard, None, usize::MAX).into_iter().map(Row::Task));
        let due = tables.due(shard, None, Timestamp::NEVER, usize::MAX);
        rows.extend(due.into_iter().map(Row::Due));
        rows.extend(tables.outbox(shard, None, usize::MAX).into_iter().map(Row::Outbox));
    }
    let waits = tables.waits(&WaitFilter::default(), usize::MAX);
    rows.extend(waits.into_iter().map(|(_, row)| Row::Wait(row)));
    rows.extend(tables.runs(&RunFilter::default(), usize::MAX).into_iter().map(Row::Run));
    rows.extend(tables.attributes().map(Row::Attribute));
    rows.into_iter().map(|row| (place(&row), row)).collect()
}

/// A run in memory, at rest, is the fold of its log.
pub fn memory_is_the_fold(ledger: &Ledger, machine: &Shard) -> Checked {
    for story in ledger.stories.values() {
        let held = machine.peek(story.run.id);
        if story.deleted && held.is_some() {
            let what = "it is still in memory";
            return Err(Violation::of(Check::Deletions, story.run.id, what));
        }
        if held.is_some_and(|run| run.to_snapshot() != story.run.to_snapshot()) {
            let what = "the run in memory is not the fold of its log";
            return Err(Violation::of(Check::Recovery, story.run.id, what));
        }
    }
    Ok(())
}

/// A snapshot and the rows after it fold to the same run as all rows.
pub fn snapshots_and_tails_fold_to_the_same(ledger: &Ledger, tables: &Tables) -> Checked {
    ledger.stories.values().try_for_each(|story| match story.deleted {
        true => course::deleted_leaves_nothing(story, tables),
        false => same_from_snapshot(story, tables),
    })
}

fn same_from_snapshot(story: &Story, tables: &Tables) -> Checked {
    let id = story.run.id;
    let broken = |what: String| Violation::of(Check::Snapshots, id, what);
    let Loaded { snapshot, log, .. } = tables.load(story.shard, id, LogLimit::rows(usize::MAX));
    let Some(row) = snapshot else { return Ok(()) };
    let unreadable = || broken("the snapshot cannot be read".into());
    let mut run = Run::from_snapshot(&row.state).ok_or_else(unreadable)?;
    for row in log {
        let encoded = codec::Row { events: row.events.clone(), notes: row.notes.clone() };
        let records = codec::decode_row(&encoded).map_err(|error| broken(error.to_string()))?;
        run.fold_more(&records).map_err(|error| broken(error.to_string()))?;
        run.logged(row.events.len());
    }
    if run.to_snapshot() == story.run.to_snapshot() {
        return Ok(());
    }
    Err(broken("snapshot and tail fold to another run than the whole log".into()))
}
