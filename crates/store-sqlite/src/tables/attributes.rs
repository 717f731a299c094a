//! One row per value of a run's search attributes.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::AttributeRow;
use rusqlite::{Connection, Result, params};

use crate::{tables::execute, values::time};

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &AttributeRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO attributes \
        (run, shard, name, value, namespace, started_at) VALUES (?, ?, ?, ?, ?, ?)";
    let params = params![
        row.run.as_bytes(),
        shard.number(),
        row.name,
        &row.value[..],
        row.namespace.as_str(),
        time(row.started_at),
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    (name, value): (&str, &[u8]),
) -> Result<()> {
    const SQL: &str =
        "DELETE FROM attributes WHERE run = ? AND shard = ? AND name = ? AND value = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number(), name, value]).map(drop)
}

/// Deletes all values of a run.
pub(crate) fn delete_all(connection: &Connection, shard: ShardId, run: RunId) -> Result<()> {
    const SQL: &str = "DELETE FROM attributes WHERE run = ? AND shard = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number()]).map(drop)
}
