//! One row per value of a run's search attributes.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::AttributeRow;

use crate::{
    session::Call,
    tables::{call, column},
    values::{Time, run_id, shard_number, text},
};

pub(crate) const PUT: &str = "INSERT INTO attributes (shard, run, name, value, namespace, \
    started_at) SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::text[], $4::bytea[], \
    $5::text[], $6::bytea[]) ON CONFLICT (shard, run, name, value) DO UPDATE SET \
    namespace = excluded.namespace, started_at = excluded.started_at";

pub(crate) const DELETE: &str = "DELETE FROM attributes \
    USING unnest($1::smallint[], $2::uuid[], $3::text[], $4::bytea[]) \
    AS key (shard, run, name, value) WHERE attributes.shard = key.shard \
    AND attributes.run = key.run AND attributes.name = key.name AND attributes.value = key.value";

pub(crate) const DELETE_ALL: &str = "DELETE FROM attributes \
    USING unnest($1::smallint[], $2::uuid[]) AS key (shard, run) \
    WHERE attributes.shard = key.shard AND attributes.run = key.run";

/// Primary key of a value.
pub(crate) type AttributeKey<'a> = (ShardId, RunId, &'a str, &'a [u8]);

pub(crate) fn put<'a>(rows: &[(ShardId, &'a AttributeRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| text(&row.name)),
        column(rows, |(_, row)| &row.value[..]),
        column(rows, |(_, row)| text(row.namespace.as_str())),
        column(rows, |(_, row)| Time::from(row.started_at)),
    ];
    call(PUT, params)
}

pub(crate) fn delete<'a>(keys: &[AttributeKey<'a>]) -> Call<'a> {
    let params = vec![
        column(keys, |(shard, ..)| shard_number(*shard)),
        column(keys, |(_, run, ..)| run_id(*run)),
        column(keys, |(_, _, name, _)| text(name)),
        column(keys, |(.., value)| *value),
    ];
    call(DELETE, params)
}

/// Deletes all values of these runs.
pub(crate) fn delete_all(runs: &[(ShardId, RunId)]) -> Call<'static> {
    let params = vec![
        column(runs, |(shard, _)| shard_number(*shard)),
        column(runs, |(_, run)| run_id(*run)),
    ];
    call(DELETE_ALL, params)
}
