//! Tasks for workers, in the order in which a shard offers them.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::{TaskKey, TaskPhase, TaskRow, WorkKind};
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::Call,
    tables::{call, column},
    values::{Columns, Undecodable, limit, number, run_id, shard_number, text},
};

pub(crate) const PUT: &str = "INSERT INTO tasks \
    (shard, namespace, queue, kind, run, scheduled, workflow, phase) SELECT * FROM unnest( \
    $1::smallint[], $2::text[], $3::text[], $4::smallint[], $5::uuid[], $6::bigint[], $7::text[], \
    $8::smallint[]) ON CONFLICT (shard, namespace, queue, kind, run, scheduled) \
    DO UPDATE SET workflow = excluded.workflow, phase = excluded.phase";

pub(crate) const DELETE: &str = "DELETE FROM tasks USING unnest($1::smallint[], $2::text[], \
    $3::text[], $4::smallint[], $5::uuid[], $6::bigint[]) \
    AS key (shard, namespace, queue, kind, run, scheduled) \
    WHERE tasks.shard = key.shard AND tasks.namespace = key.namespace AND tasks.queue = key.queue \
    AND tasks.kind = key.kind AND tasks.run = key.run AND tasks.scheduled = key.scheduled";

pub(crate) const PAGE: &str = "SELECT namespace, queue, kind, run, scheduled, workflow, phase \
    FROM tasks WHERE shard = $1 AND (namespace, queue, kind, run, scheduled) > ($2, $3, $4, $5, $6) \
    ORDER BY namespace, queue, kind, run, scheduled LIMIT $7";

pub(crate) fn put<'a>(rows: &[(ShardId, &'a TaskRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| text(row.key.namespace.as_str())),
        column(rows, |(_, row)| text(&row.key.queue)),
        column(rows, |(_, row)| i16::from(row.key.kind.number())),
        column(rows, |(_, row)| run_id(row.key.run)),
        column(rows, |(_, row)| number(row.key.scheduled)),
        column(rows, |(_, row)| text(row.workflow.as_str())),
        column(rows, |(_, row)| i16::from(row.phase.number())),
    ];
    call(PUT, params)
}

pub(crate) fn delete<'a>(keys: &[(ShardId, &'a TaskKey)]) -> Call<'a> {
    let params = vec![
        column(keys, |(shard, _)| shard_number(*shard)),
        column(keys, |(_, key)| text(key.namespace.as_str())),
        column(keys, |(_, key)| text(&key.queue)),
        column(keys, |(_, key)| i16::from(key.kind.number())),
        column(keys, |(_, key)| run_id(key.run)),
        column(keys, |(_, key)| number(key.scheduled)),
    ];
    call(DELETE, params)
}

pub(crate) fn page(shard: ShardId, after: Option<&TaskKey>, page: usize) -> Query {
    let place: (String, String, i16, RunId, i64) = match after {
        Some(key) => (
            text(key.namespace.as_str()).into_owned(),
            text(&key.queue).into_owned(),
            i16::from(key.kind.number()),
            key.run,
            number(key.scheduled),
        ),
        // Sorts before every task: no kind has a negative number.
        None => (String::new(), String::new(), -1, RunId::MIN, 0),
    };
    let (namespace, queue, kind, run, scheduled) = place;
    Query::ByKey(call(
        PAGE,
        vec![
            Box::new(shard_number(shard)),
            Box::new(namespace),
            Box::new(queue),
            Box::new(kind),
            Box::new(run_id(run)),
            Box::new(scheduled),
            Box::new(limit(page)),
        ],
    ))
}

pub(crate) fn decode(row: &Row) -> Result<TaskRow, Undecodable> {
    let key = TaskKey {
        namespace: row.text(0)?,
        queue: row.text(1)?,
        kind: row.choice(2, WorkKind::from_number)?,
        run: row.run(3)?,
        scheduled: row.number(4)?,
    };
    Ok(TaskRow { key, workflow: row.text(5)?, phase: row.choice(6, TaskPhase::from_number)? })
}
