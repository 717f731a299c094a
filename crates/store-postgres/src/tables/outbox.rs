//! Effects on other workflows, until their result is recorded.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::OutboxRow;
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::Call,
    tables::{call, column},
    values::{Columns, Undecodable, limit, number, run_id, shard_number, text},
};

pub(crate) const PUT: &str = "INSERT INTO outbox (shard, run, number, namespace, workflow, effect) \
    SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], \
    $6::bytea[]) ON CONFLICT (shard, run, number) DO UPDATE \
    SET namespace = excluded.namespace, workflow = excluded.workflow, effect = excluded.effect";

pub(crate) const DELETE: &str = "DELETE FROM outbox \
    USING unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS key (shard, run, number) \
    WHERE outbox.shard = key.shard AND outbox.run = key.run AND outbox.number = key.number";

pub(crate) const PAGE: &str = "SELECT run, number, namespace, workflow, effect FROM outbox \
    WHERE shard = $1 AND (run, number) > ($2, $3) ORDER BY run, number LIMIT $4";

pub(crate) fn put<'a>(rows: &[(ShardId, &'a OutboxRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| number(row.number)),
        column(rows, |(_, row)| text(row.namespace.as_str())),
        column(rows, |(_, row)| text(row.workflow.as_str())),
        column(rows, |(_, row)| &row.effect[..]),
    ];
    call(PUT, params)
}

pub(crate) fn delete(keys: &[(ShardId, RunId, u64)]) -> Call<'static> {
    let params = vec![
        column(keys, |(shard, _, _)| shard_number(*shard)),
        column(keys, |(_, run, _)| run_id(*run)),
        column(keys, |(_, _, effect)| number(*effect)),
    ];
    call(DELETE, params)
}

pub(crate) fn page(shard: ShardId, after: Option<(RunId, u64)>, page: usize) -> Query {
    // Effect numbers are never negative.
    let (run, effect) = after.map_or((RunId::MIN, -1), |(run, effect)| (run, number(effect)));
    Query::ByKey(call(
        PAGE,
        vec![
            Box::new(shard_number(shard)),
            Box::new(run_id(run)),
            Box::new(effect),
            Box::new(limit(page)),
        ],
    ))
}

pub(crate) fn decode(row: &Row) -> Result<OutboxRow, Undecodable> {
    Ok(OutboxRow {
        run: row.run(0)?,
        number: row.number(1)?,
        namespace: row.text(2)?,
        workflow: row.text(3)?,
        effect: row.bytes(4)?,
    })
}
