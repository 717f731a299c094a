//! The runs' logs. Rows are only appended, and deleted together with their run.

use abide_core::ids::{RunId, ShardId};
use abide_store::rows::{Loaded, LogLimit, LogRow, SnapshotRow};
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::Call,
    tables::{call, column},
    values::{Columns, Undecodable, limit, number, run_id, shard_number},
};

/// Fails if a row already exists.
pub(crate) const APPEND: &str = "INSERT INTO log \
    (shard, run, sequence, first_event, events, notes) SELECT * FROM unnest($1::smallint[], \
    $2::uuid[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[])";

/// Finds which of the given rows exist, for the error message of a duplicate append.
pub(crate) const EXISTING: &str = "SELECT log.run, log.sequence \
    FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS key (shard, run, sequence) \
    JOIN log ON log.shard = key.shard AND log.run = key.run AND log.sequence = key.sequence LIMIT 1";

pub(crate) const DELETE: &str = "DELETE FROM log \
    USING unnest($1::smallint[], $2::uuid[]) AS key (shard, run) \
    WHERE log.shard = key.shard AND log.run = key.run";

/// A page of a log after a sequence, in the order of [`decode`]. Lengths are known without a look
/// at what has them, so what is behind the page is not read.
macro_rules! page_after {
    ($after:literal) => {
        concat!(
            "SELECT run, sequence, first_event, events, notes FROM \
             (SELECT *, sum(octet_length(events) + octet_length(notes)) OVER (ORDER BY sequence \
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
             FROM log WHERE shard = $1 AND run = $2 AND sequence > ",
            $after,
            " ORDER BY sequence LIMIT $3) AS page \
             WHERE coalesce(before, 0) < $4 ORDER BY sequence"
        )
    };
}

pub(crate) const PAGE: &str = page_after!("$5");

/// The snapshot, if there is one, and then the log after it. One statement sees one state of both.
pub(crate) const LOAD: &str = concat!(
    "WITH snapshot AS MATERIALIZED \
     (SELECT run, sequence, state FROM snapshots WHERE shard = $1 AND run = $2) \
     SELECT parts.*, EXISTS (SELECT FROM runs WHERE runs.shard = $1 AND runs.run = $2 \
     AND runs.queue = '') AS row_outdated FROM (\
     SELECT run, sequence, 0::bigint AS first_event, state AS events, ''::bytea AS notes, \
     false AS logged FROM snapshot \
     UNION ALL SELECT tail.*, true FROM (",
    page_after!("coalesce((SELECT snapshot.sequence FROM snapshot), 0)"),
    ") AS tail) AS parts ORDER BY logged, sequence"
);

pub(crate) fn append<'a>(rows: &[(ShardId, &'a LogRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| number(row.sequence)),
        column(rows, |(_, row)| number(row.first_event)),
        column(rows, |(_, row)| &row.events[..]),
        column(rows, |(_, row)| &row.notes[..]),
    ];
    call(APPEND, params)
}

pub(crate) fn existing(rows: &[(ShardId, &LogRow)]) -> Call<'static> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| number(row.sequence)),
    ];
    call(EXISTING, params)
}

/// Run and sequence of an existing row.
pub(crate) fn decode_existing(row: &Row) -> Result<(RunId, u64), Undecodable> {
    Ok((row.run(0)?, row.number(1)?))
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

pub(crate) fn page(shard: ShardId, run: RunId, after: u64, page: LogLimit) -> Query {
    Query::ByKey(call(
        PAGE,
        vec![
            Box::new(shard_number(shard)),
            Box::new(run_id(run)),
            Box::new(limit(page.rows)),
            Box::new(limit(page.bytes.max(1))),
            Box::new(number(after)),
        ],
    ))
}

pub(crate) fn load(shard: ShardId, run: RunId, page: LogLimit) -> Query {
    Query::ByKey(call(
        LOAD,
        vec![
            Box::new(shard_number(shard)),
            Box::new(run_id(run)),
            Box::new(limit(page.rows)),
            Box::new(limit(page.bytes.max(1))),
        ],
    ))
}

pub(crate) fn decode(row: &Row) -> Result<LogRow, Undecodable> {
    Ok(LogRow {
        run: row.run(0)?,
        sequence: row.number(1)?,
        first_event: row.number(2)?,
        events: row.bytes(3)?,
        notes: row.bytes(4)?,
    })
}

/// A row of [`LOAD`].
pub(crate) enum LogPart {
    Snapshot(SnapshotRow),
    Log(LogRow),
}

/// A part, and whether the run's row is outdated, which all parts say.
pub(crate) fn decode_part(row: &Row) -> Result<(LogPart, bool), Undecodable> {
    let part = if row.flag(5)? {
        LogPart::Log(decode(row)?)
    } else {
        let (run, sequence, state) = (row.run(0)?, row.number(1)?, row.bytes(3)?);
        LogPart::Snapshot(SnapshotRow { run, sequence, state })
    };
    Ok((part, row.flag(6)?))
}

/// Puts the rows of [`LOAD`] together.
pub(crate) fn loaded(parts: Vec<(LogPart, bool)>) -> Loaded {
    let mut loaded = Loaded::default();
    for (part, row_outdated) in parts {
        loaded.row_outdated = row_outdated;
        match part {
            LogPart::Snapshot(row) => loaded.snapshot = Some(row),
            LogPart::Log(row) => loaded.log.push(row),
        }
    }
    loaded
}
