//! Snapshots of folded logs, one per run. They are read together with the log.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::SnapshotRow;

use crate::{
    session::Call,
    tables::{call, column},
    values::{number, run_id, shard_number},
};

pub(crate) const PUT: &str = "INSERT INTO snapshots (shard, run, sequence, state) \
    SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::bytea[]) \
    ON CONFLICT (shard, run) DO UPDATE SET sequence = excluded.sequence, state = excluded.state";

pub(crate) const DELETE: &str = "DELETE FROM snapshots \
    USING unnest($1::smallint[], $2::uuid[]) AS key (shard, run) \
    WHERE snapshots.shard = key.shard AND snapshots.run = key.run";

pub(crate) fn put<'a>(rows: &[(ShardId, &'a SnapshotRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| number(row.sequence)),
        column(rows, |(_, row)| &row.state[..]),
    ];
    call(PUT, params)
}

pub(crate) fn delete(runs: &[(ShardId, RunId)]) -> Call<'static> {
    call(
        DELETE,
        vec![
            column(runs, |(shard, _)| shard_number(*shard)),
            column(runs, |(_, run)| run_id(*run)),
        ],
    )
}
