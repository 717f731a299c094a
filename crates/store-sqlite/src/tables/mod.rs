//! One file per table, each with its SQL: puts and deletes for the writer, pages for readers.
//! Nothing here begins or ends a transaction.

use abide_core::ids::ShardId;
use abide_store::Write;
use rusqlite::{Connection, Params, Result, Row};

use crate::fault::Fault;

pub(crate) mod attributes;
mod conditions;
pub(crate) mod due;
pub(crate) mod inbox;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod registry;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod shards;
pub(crate) mod snapshots;
pub(crate) mod tasks;
pub(crate) mod waits;

/// Executes one write. The caller has already checked the epoch of the batch.
pub(crate) fn write(connection: &Connection, shard: ShardId, write: &Write) -> Result<(), Fault> {
    match write {
        Write::AppendLog(row) => return log::append(connection, shard, row),
        Write::Claim { epoch, owner } => shards::put(connection, shard, *epoch, owner),
        Write::PutSnapshot(row) => snapshots::put(connection, shard, row),
        Write::PutRun(row) => runs::put(connection, shard, row),
        Write::DeleteRun(run) => runs::delete(connection, shard, *run)
            .and_then(|()| attributes::delete_all(connection, shard, *run))
            .and_then(|()| snapshots::delete(connection, shard, *run))
            .and_then(|()| log::delete(connection, shard, *run)),
        Write::PutTask(row) => tasks::put(connection, shard, row),
        Write::DeleteTask(key) => tasks::delete(connection, shard, key),
        Write::PutDue(row) => due::put(connection, shard, row),
        Write::DeleteDue(key) => due::delete(connection, shard, key),
        Write::PutWait(row) => waits::put(connection, shard, row),
        Write::DeleteWait { run, wait } => waits::delete(connection, shard, *run, wait),
        Write::PutAttribute(row) => attributes::put(connection, shard, row),
        Write::DeleteAttribute { run, name, value } => {
            attributes::delete(connection, shard, *run, (name, value))
        }
        Write::PutOutbox(row) => outbox::put(connection, shard, row),
        Write::DeleteOutbox { run, number } => outbox::delete(connection, shard, *run, *number),
        Write::PutInbox(row) => inbox::put(connection, shard, row),
        Write::DeleteInbox { source, number } => inbox::delete(connection, shard, *source, *number),
        Write::DeleteInboxBefore(at) => inbox::delete_before(connection, shard, *at),
    }
    .map_err(Fault::from)
}

/// Runs a statement that is prepared once per connection, and returns how many rows it changed.
fn execute(connection: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    connection.prepare_cached(sql)?.execute(params)
}

/// All rows of a query.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, decode)?.collect()
}

/// The first row of a query.
fn row<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    connection.prepare_cached(sql)?.query_and_then(params, decode)?.next().transpose()
}
