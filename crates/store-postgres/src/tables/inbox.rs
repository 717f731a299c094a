//! Results of effects, kept until the source has recorded them.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::rows::InboxRow;
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::Call,
    tables::{call, column},
    values::{Columns, Time, Undecodable, run_id, shard_number},
};

pub(crate) const PUT: &str = "INSERT INTO inbox (shard, source, number, at, outcome) \
    SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bytea[]) \
    ON CONFLICT (shard, source, number) DO UPDATE SET at = excluded.at, outcome = excluded.outcome";

pub(crate) const DELETE: &str = "DELETE FROM inbox \
    USING unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS key (shard, source, number) \
    WHERE inbox.shard = key.shard AND inbox.source = key.source AND inbox.number = key.number";

pub(crate) const DELETE_BEFORE: &str = "DELETE FROM inbox \
    USING unnest($1::smallint[], $2::bytea[]) AS old (shard, at) \
    WHERE inbox.shard = old.shard AND inbox.at < old.at";

pub(crate) const READ: &str = "SELECT source, number, at, outcome FROM inbox \
    WHERE shard = $1 AND source = $2 AND number = $3";

pub(crate) fn put<'a>(rows: &[(ShardId, &'a InboxRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.source)),
        column(rows, |(_, row)| crate::values::number(row.number)),
        column(rows, |(_, row)| Time::from(row.at)),
        column(rows, |(_, row)| &row.outcome[..]),
    ];
    call(PUT, params)
}

pub(crate) fn delete(keys: &[(ShardId, RunId, u64)]) -> Call<'static> {
    let params = vec![
        column(keys, |(shard, _, _)| shard_number(*shard)),
        column(keys, |(_, source, _)| run_id(*source)),
        column(keys, |(_, _, number)| crate::values::number(*number)),
    ];
    call(DELETE, params)
}

pub(crate) fn delete_before(times: &[(ShardId, Timestamp)]) -> Call<'static> {
    call(
        DELETE_BEFORE,
        vec![
            column(times, |(shard, _)| shard_number(*shard)),
            column(times, |(_, at)| Time::from(*at)),
        ],
    )
}

/// Result of an effect; `None` if the number exceeds what any row can hold.
pub(crate) fn read(shard: ShardId, source: RunId, number: u64) -> Option<Query> {
    let number = i64::try_from(number).ok()?;
    let params: Vec<crate::session::Param<'static>> =
        vec![Box::new(shard_number(shard)), Box::new(run_id(source)), Box::new(number)];
    Some(Query::ByKey(call(READ, params)))
}

pub(crate) fn decode(row: &Row) -> Result<InboxRow, Undecodable> {
    Ok(InboxRow {
        source: row.run(0)?,
        number: row.number(1)?,
        at: row.time(2)?,
        outcome: row.bytes(3)?,
    })
}
