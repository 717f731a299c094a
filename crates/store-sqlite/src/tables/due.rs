//! The due index. Rows are in buckets of an hour, within an hour by shard, and within a shard in
//! the order of the key, so that a page is read bucket by bucket and needs no sorting.

use std::collections::BTreeSet;

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::rows::{DueKey, DueRow};
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, row, rows},
    values::{Columns, limit, time},
};

fn hour(due: Timestamp) -> i64 {
    due.seconds().div_euclid(3600)
}

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &DueRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO due \
        (hour, shard, due, run, timer, workflow, namespace) VALUES (?, ?, ?, ?, ?, ?, ?)";
    let params = params![
        hour(row.due),
        shard.number(),
        time(row.due),
        row.run.as_bytes(),
        &row.timer[..],
        row.workflow.as_str(),
        row.namespace.as_str(),
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(connection: &Connection, shard: ShardId, key: &DueKey) -> Result<()> {
    const SQL: &str =
        "DELETE FROM due WHERE hour = ? AND shard = ? AND due = ? AND run = ? AND timer = ?";
    let (due, run, timer) = (time(key.due), key.run.as_bytes(), &key.timer[..]);
    execute(connection, SQL, params![hour(key.due), shard.number(), due, run, timer]).map(drop)
}

pub(crate) fn page(
    connection: &Connection,
    shard: ShardId,
    after: Option<&DueKey>,
    until: Timestamp,
    page: usize,
) -> Result<Vec<DueRow>> {
    let mut found = Vec::new();
    let mut next = after.map_or(i64::MIN, |key| hour(key.due));
    while found.len() < page {
        let Some(bucket) = first_bucket(connection, next, hour(until))? else { break };
        let after = after.filter(|key| hour(key.due) == bucket);
        found.extend(of_bucket(connection, (bucket, shard), after, until, page - found.len())?);
        next = bucket + 1;
    }
    Ok(found)
}

/// Whether the run has an entry at this time.
pub(crate) fn contains(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    at: Timestamp,
) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM due WHERE hour = ? AND shard = ? AND due = ? AND run = ?";
    let params = params![hour(at), shard.number(), time(at), run.as_bytes()];
    Ok(row(connection, SQL, params, |_| Ok(()))?.is_some())
}

/// Removes from these runs those that have an entry in the shard. Scans the shard's part of each
/// hour, until no run is left.
pub(crate) fn remove_due(
    connection: &Connection,
    shard: ShardId,
    runs: &mut BTreeSet<RunId>,
) -> Result<()> {
    const SQL: &str = "SELECT run FROM due WHERE hour = ? AND shard = ?";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut next = i64::MIN;
    while !runs.is_empty()
        && let Some(bucket) = first_bucket(connection, next, i64::MAX)?
    {
        let mut entries = statement.query(params![bucket, shard.number()])?;
        while let Some(entry) = entries.next()? {
            runs.remove(&entry.run(0)?);
        }
        next = bucket + 1;
    }
    Ok(())
}

/// The first bucket in this range with a row of any shard.
fn first_bucket(connection: &Connection, from: i64, to: i64) -> Result<Option<i64>> {
    const SQL: &str = "SELECT hour FROM due WHERE hour BETWEEN ? AND ? ORDER BY hour LIMIT 1";
    row(connection, SQL, [from, to], |row| row.get(0))
}

fn of_bucket(
    connection: &Connection,
    (bucket, shard): (i64, ShardId),
    after: Option<&DueKey>,
    until: Timestamp,
    page: usize,
) -> Result<Vec<DueRow>> {
    const SQL: &str = "SELECT due, run, timer, workflow, namespace FROM due \
        WHERE hour = ? AND shard = ? AND (due, run, timer) > (?, ?, ?) AND due <= ? \
        ORDER BY due, run, timer LIMIT ?";
    // Empty bytes sort before every due time and every run.
    let (due, run, timer) = match after {
        Some(key) => (time(key.due).to_vec(), key.run.as_bytes().to_vec(), &key.timer[..]),
        None => (Vec::new(), Vec::new(), &[][..]),
    };
    let params = params![bucket, shard.number(), due, run, timer, time(until), limit(page)];
    rows(connection, SQL, params, |row| {
        Ok(DueRow {
            due: row.time(0)?,
            run: row.run(1)?,
            timer: row.bytes(2)?,
            workflow: row.text(3)?,
            namespace: row.text(4)?,
        })
    })
}
