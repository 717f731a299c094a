//! Effects on other workflows, kept until their result is recorded.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::OutboxRow;
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, rows},
    values::{Columns, bound, limit, number},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &OutboxRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO outbox \
        (shard, run, number, namespace, workflow, effect) VALUES (?, ?, ?, ?, ?, ?)";
    let params = params![
        shard.number(),
        row.run.as_bytes(),
        number(row.number)?,
        row.namespace.as_str(),
        row.workflow.as_str(),
        &row.effect[..],
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    effect: u64,
) -> Result<()> {
    const SQL: &str = "DELETE FROM outbox WHERE shard = ? AND run = ? AND number = ?";
    let params = params![shard.number(), run.as_bytes(), number(effect)?];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn page(
    connection: &Connection,
    shard: ShardId,
    after: Option<(RunId, u64)>,
    page: usize,
) -> Result<Vec<OutboxRow>> {
    const SQL: &str = "SELECT run, number, namespace, workflow, effect FROM outbox \
        WHERE shard = ? AND (run, number) > (?, ?) ORDER BY run, number LIMIT ?";
    // Empty bytes sort before every run.
    let (run, number) =
        after.map_or((Vec::new(), 0), |(run, number)| (run.as_bytes().to_vec(), bound(number)));
    rows(connection, SQL, params![shard.number(), run, number, limit(page)], |row| {
        Ok(OutboxRow {
            run: row.run(0)?,
            number: row.number(1)?,
            namespace: row.text(2)?,
            workflow: row.text(3)?,
            effect: row.bytes(4)?,
        })
    })
}
