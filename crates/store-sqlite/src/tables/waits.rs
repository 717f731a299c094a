//! One row per wait, and the list of them over all shards.

use abide_core::ids::{RunId, ShardId};
use abide_store::{
    WaitFilter,
    rows::{WaitKind, WaitRow},
};
use rusqlite::{Connection, Result, Row, params, params_from_iter, types::Value};

use crate::{
    tables::{execute, rows},
    values::{Columns, limit, time},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &WaitRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO waits \
        (run, shard, wait, namespace, workflow, kind, name, since, until, details) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let params = params![
        row.run.as_bytes(),
        shard.number(),
        &row.wait[..],
        row.namespace.as_str(),
        row.workflow.as_str(),
        row.kind.number(),
        row.name,
        time(row.since),
        time(row.until),
        &row.details[..],
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    wait: &[u8],
) -> Result<()> {
    const SQL: &str = "DELETE FROM waits WHERE run = ? AND shard = ? AND wait = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number(), wait]).map(drop)
}

/// Waits of all shards by the end of the wait. Those of one run, and signals and conditions of one
/// name, are found by their keys; all else is filtered on the way through the index on the end.
pub(crate) fn list(
    connection: &Connection,
    filter: &WaitFilter,
    page: usize,
) -> Result<Vec<(ShardId, WaitRow)>> {
    let (conditions, mut params) = conditions(filter);
    let sql = format!(
        "SELECT shard, run, wait, namespace, workflow, kind, name, since, until, details \
         FROM waits {} WHERE {conditions} ORDER BY until, run, shard, wait LIMIT ?",
        access(filter)
    );
    params.push(limit(page).into());
    rows(connection, &sql, params_from_iter(params), decode)
}

fn access(filter: &WaitFilter) -> &'static str {
    if filter.run.is_some() {
        "NOT INDEXED"
    } else if by_name(filter) {
        "INDEXED BY waits_by_name"
    } else {
        "INDEXED BY waits_by_until"
    }
}

/// Whether the filter asks for rows that the index on kind and name holds.
fn by_name(filter: &WaitFilter) -> bool {
    let indexed = matches!(filter.kind, Some(WaitKind::Signal | WaitKind::Condition));
    indexed && filter.name.is_some() && filter.run.is_none()
}

fn conditions(filter: &WaitFilter) -> (String, Vec<Value>) {
    let mut sql = "TRUE".to_owned();
    let mut params: Vec<Value> = Vec::new();
    let mut require = |condition: &str, values: Vec<Value>| {
        sql.push_str(" AND ");
        sql.push_str(condition);
        params.extend(values);
    };
    if let Some(namespace) = &filter.namespace {
        require("namespace = ?", vec![namespace.to_string().into()]);
    }
    if let Some((shard, run)) = filter.run {
        let key = vec![run.as_bytes().to_vec().into(), shard.number().into()];
        require("run = ? AND shard = ?", key);
    }
    if let Some(kind) = filter.kind {
        require("kind = ?", vec![kind.number().into()]);
    }
    if by_name(filter) {
        // In the words of the index, since that is how SQLite knows that it may be used.
        require("kind IN (2, 3)", Vec::new());
    }
    if let Some(name) = &filter.name {
        require("name = ?", vec![name.clone().into()]);
    }
    if let Some(until) = filter.until {
        require("until <= ?", vec![time(until).to_vec().into()]);
    }
    if let Some(after) = &filter.after {
        let position = vec![
            time(after.until).to_vec().into(),
            after.run.as_bytes().to_vec().into(),
            after.shard.number().into(),
            after.wait.to_vec().into(),
        ];
        require("(until, run, shard, wait) > (?, ?, ?, ?)", position);
    }
    (sql, params)
}

fn decode(row: &Row<'_>) -> Result<(ShardId, WaitRow)> {
    let wait = WaitRow {
        run: row.run(1)?,
        wait: row.bytes(2)?,
        namespace: row.text(3)?,
        workflow: row.text(4)?,
        kind: row.choice(5, WaitKind::from_number)?,
        name: row.text(6)?,
        since: row.time(7)?,
        until: row.time(8)?,
        details: row.bytes(9)?,
    };
    Ok((row.shard(0)?, wait))
}
