//! Results of effects, kept until the source has recorded them.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::rows::InboxRow;
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, row},
    values::{Columns, number, time},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &InboxRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO inbox (source, shard, number, at, outcome) \
        VALUES (?, ?, ?, ?, ?)";
    let (source, at) = (row.source.as_bytes(), time(row.at));
    let params = params![source, shard.number(), number(row.number)?, at, &row.outcome[..]];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(
    connection: &Connection,
    shard: ShardId,
    source: RunId,
    effect: u64,
) -> Result<()> {
    const SQL: &str = "DELETE FROM inbox WHERE source = ? AND shard = ? AND number = ?";
    let params = params![source.as_bytes(), shard.number(), number(effect)?];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete_before(connection: &Connection, shard: ShardId, at: Timestamp) -> Result<()> {
    const SQL: &str = "DELETE FROM inbox INDEXED BY inbox_by_time WHERE shard = ? AND at < ?";
    execute(connection, SQL, params![shard.number(), time(at)]).map(drop)
}

pub(crate) fn read(
    connection: &Connection,
    shard: ShardId,
    source: RunId,
    number: u64,
) -> Result<Option<InboxRow>> {
    const SQL: &str =
        "SELECT number, at, outcome FROM inbox WHERE source = ? AND shard = ? AND number = ?";
    // No row can have a number that is too large for a column.
    let Ok(column) = i64::try_from(number) else { return Ok(None) };
    row(connection, SQL, params![source.as_bytes(), shard.number(), column], |row| {
        Ok(InboxRow { source, number: row.number(0)?, at: row.time(1)?, outcome: row.bytes(2)? })
    })
}
