//! The due index, by shard and due time.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::rows::{DueKey, DueRow};
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::{Call, Param},
    tables::{call, column},
    values::{Columns, Time, Undecodable, limit, run_id, shard_number, text},
};

pub(crate) const PUT: &str = "INSERT INTO due (shard, due, run, timer, workflow, namespace) \
    SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::bytea[], $5::text[], \
    $6::text[]) ON CONFLICT (shard, due, run, timer) \
    DO UPDATE SET workflow = excluded.workflow, namespace = excluded.namespace";

pub(crate) const DELETE: &str = "DELETE FROM due \
    USING unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::bytea[]) AS key (shard, due, run, timer) \
    WHERE due.shard = key.shard AND due.due = key.due AND due.run = key.run \
    AND due.timer = key.timer";

pub(crate) const PAGE: &str = "SELECT due, run, timer, workflow, namespace FROM due \
    WHERE shard = $1 AND (due, run, timer) > ($2, $3, $4) AND due <= $5 \
    ORDER BY due, run, timer LIMIT $6";

/// Primary key of an entry.
pub(crate) type DueEntryKey<'a> = (ShardId, Timestamp, RunId, &'a [u8]);

pub(crate) fn put<'a>(rows: &[(ShardId, &'a DueRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| Time::from(row.due)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| &row.timer[..]),
        column(rows, |(_, row)| text(row.workflow.as_str())),
        column(rows, |(_, row)| text(row.namespace.as_str())),
    ];
    call(PUT, params)
}

pub(crate) fn delete<'a>(places: &[DueEntryKey<'a>]) -> Call<'a> {
    let params = vec![
        column(places, |(shard, _, _, _)| shard_number(*shard)),
        column(places, |(_, due, _, _)| Time::from(*due)),
        column(places, |(_, _, run, _)| run_id(*run)),
        column(places, |(_, _, _, timer)| *timer),
    ];
    call(DELETE, params)
}

pub(crate) fn page(shard: ShardId, after: Option<&DueKey>, until: Timestamp, page: usize) -> Query {
    let place: [Param<'static>; 3] = match after {
        Some(key) => {
            [Box::new(Time::from(key.due)), Box::new(run_id(key.run)), Box::new(key.timer.to_vec())]
        }
        // Empty bytes sort before every due time.
        None => {
            [Box::new(Vec::<u8>::new()), Box::new(run_id(RunId::MIN)), Box::new(Vec::<u8>::new())]
        }
    };
    let mut params: Vec<Param<'static>> = vec![Box::new(shard_number(shard))];
    params.extend(place);
    params.push(Box::new(Time::from(until)));
    params.push(Box::new(limit(page)));
    Query::ByKey(call(PAGE, params))
}

pub(crate) fn decode(row: &Row) -> Result<DueRow, Undecodable> {
    Ok(DueRow {
        due: row.time(0)?,
        run: row.run(1)?,
        timer: row.bytes(2)?,
        workflow: row.text(3)?,
        namespace: row.text(4)?,
    })
}
