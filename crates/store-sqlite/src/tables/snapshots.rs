//! Folded logs, one per run. A rowid table, because states are long and keys are short.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::SnapshotRow;
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, row},
    values::{Columns, number},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &SnapshotRow) -> Result<()> {
    const SQL: &str = "INSERT INTO snapshots (run, shard, sequence, state) VALUES (?, ?, ?, ?) \
        ON CONFLICT DO UPDATE SET sequence = excluded.sequence, state = excluded.state";
    let sequence = number(row.sequence)?;
    let params = params![row.run.as_bytes(), shard.number(), sequence, &row.state[..]];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(connection: &Connection, shard: ShardId, run: RunId) -> Result<()> {
    const SQL: &str = "DELETE FROM snapshots WHERE run = ? AND shard = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number()]).map(drop)
}

pub(crate) fn read(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
) -> Result<Option<SnapshotRow>> {
    const SQL: &str = "SELECT sequence, state FROM snapshots WHERE run = ? AND shard = ?";
    row(connection, SQL, params![run.as_bytes(), shard.number()], |row| {
        Ok(SnapshotRow { run, sequence: row.number(0)?, state: row.bytes(1)? })
    })
}
