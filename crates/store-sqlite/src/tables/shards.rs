//! The owner of each shard. The writer also keeps the epochs in memory, since it alone writes them.

use abide_core::ids::ShardId;
use abide_store::rows::ShardRow;
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, row, rows},
    values::{Columns, number},
};

pub(crate) fn put(connection: &Connection, shard: ShardId, epoch: u64, owner: &str) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO shards (shard, epoch, owner) VALUES (?, ?, ?)";
    execute(connection, SQL, params![shard.number(), number(epoch)?, owner]).map(drop)
}

/// The shard's row. A shard that was never claimed has epoch zero and no owner.
pub(crate) fn read(connection: &Connection, shard: ShardId) -> Result<ShardRow> {
    const SQL: &str = "SELECT epoch, owner FROM shards WHERE shard = ?";
    let stored = row(connection, SQL, [shard.number()], |row| {
        Ok(ShardRow { shard, epoch: row.number(0)?, owner: row.text(1)? })
    })?;
    Ok(stored.unwrap_or_else(|| ShardRow { shard, epoch: 0, owner: String::new() }))
}

/// The epochs of all shards that were ever claimed.
pub(crate) fn epochs(connection: &Connection) -> Result<Vec<(ShardId, u64)>> {
    const SQL: &str = "SELECT shard, epoch FROM shards";
    rows(connection, SQL, [], |row| Ok((row.shard(0)?, row.number(1)?)))
}
