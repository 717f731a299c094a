//! One row per wait, and the list of waits over all shards, ordered by deadline.

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, TimerId},
    tally::{TallyWaits, WaitGroup, WaitTally},
    time::Timestamp,
};
use abide_store::{
    WaitFilter,
    rows::{WaitKind, WaitRow},
};
use tokio_postgres::{Row, types::Type};

use crate::{
    readers::Query,
    session::Call,
    tables::{
        call, column,
        conditions::{self, Conditions, value},
    },
    values::{Columns, Time, Undecodable, limit, run_id, shard_number, text},
};

pub(crate) const PUT: &str = "INSERT INTO waits (shard, run, wait, namespace, workflow, \
    workflow_type, kind, name, since, until, timer, details) SELECT * FROM unnest($1::smallint[], \
    $2::uuid[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::text[], \
    $9::bytea[], $10::bytea[], $11::text[], $12::bytea[]) ON CONFLICT (shard, run, wait) \
    DO UPDATE SET namespace = excluded.namespace, workflow = excluded.workflow, \
    workflow_type = excluded.workflow_type, kind = excluded.kind, name = excluded.name, \
    since = excluded.since, until = excluded.until, timer = excluded.timer, \
    details = excluded.details";

pub(crate) const DELETE: &str = "DELETE FROM waits \
    USING unnest($1::smallint[], $2::uuid[], $3::bytea[]) AS key (shard, run, wait) \
    WHERE waits.shard = key.shard AND waits.run = key.run AND waits.wait = key.wait";

/// Primary key of a wait.
pub(crate) type WaitKey<'a> = (ShardId, RunId, &'a [u8]);

pub(crate) fn put<'a>(rows: &[(ShardId, &'a WaitRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| &row.wait[..]),
        column(rows, |(_, row)| text(row.namespace.as_str())),
        column(rows, |(_, row)| text(row.workflow.as_str())),
        column(rows, |(_, row)| text(&row.workflow_type)),
        column(rows, |(_, row)| i16::from(row.kind.number())),
        column(rows, |(_, row)| text(&row.name)),
        column(rows, |(_, row)| Time::from(row.since)),
        column(rows, |(_, row)| Time::from(row.until)),
        column(rows, |(_, row)| row.timer.as_ref().map(TimerId::as_str).map(text)),
        column(rows, |(_, row)| &row.details[..]),
    ];
    call(PUT, params)
}

pub(crate) fn delete<'a>(places: &[WaitKey<'a>]) -> Call<'a> {
    let params = vec![
        column(places, |(shard, _, _)| shard_number(*shard)),
        column(places, |(_, run, _)| run_id(*run)),
        column(places, |(_, _, wait)| *wait),
    ];
    call(DELETE, params)
}

/// Waits of all shards, ordered by deadline. Waits of one run or workflow are found by key, and
/// approvals and waits of one name by kind and name; other conditions filter a scan in order of
/// deadline.
pub(crate) fn list(filter: &WaitFilter, page: usize) -> Query {
    const HEAD: &str = "SELECT shard, run, wait, namespace, workflow, workflow_type, kind, name, \
        since, until, timer, details FROM waits";
    const TAIL: &str = "ORDER BY until, run, shard, wait";
    Query::Filtered(conditions(filter).made(HEAD, TAIL, Some(limit(page))))
}

/// Counts waits by interval and kind among the `most` that end first and one more. The inner limit
/// bounds the work, however few waits pass the filter.
pub(crate) fn tally(asked: &TallyWaits, most: usize) -> Query {
    const SEEN: &str = "SELECT until, kind, namespace, workflow_type FROM waits";
    let TallyWaits { namespace, known, workflow_type, kinds, .. } = asked.clone();
    let filter = WaitFilter { namespace, known, workflow_type, ..WaitFilter::default() };
    let mut conditions = conditions(&filter);
    if !kinds.is_empty() {
        let numbers: Vec<_> = kinds.iter().map(|kind| i16::from(kind.number())).collect();
        conditions.require("kind = ANY (?)", [value(numbers, Type::INT2_ARRAY)]);
    }
    let chosen = conditions.end_clause();
    let starts: Vec<_> = asked.starts().map(Time::from).collect();
    let starts = conditions.place(value(starts, Type::BYTEA_ARRAY));
    let span = [asked.from, asked.end()].map(|at| value(Time::from(at), Type::BYTEA));
    conditions.require("until >= ? AND until < ?", span);
    let page = limit(most.saturating_add(1));
    let seen = conditions.made(SEEN, "ORDER BY until", Some(page));
    let groups = format!("(width_bucket(until, {starts}) - 1)::bigint, kind");
    Query::Filtered(conditions::tally(seen, &groups, &chosen))
}

/// Interval and kind, how many waits pass the filter, and how many were examined.
pub(crate) fn decode_tally(row: &Row) -> Result<(u64, WaitKind, u64, u64), Undecodable> {
    let kind = row.choice(1, WaitKind::from_number)?;
    Ok((row.number(0)?, kind, row.number(2)?, row.number(3)?))
}

/// Adds up the groups. The last interval that was examined may have been cut by the limit.
pub(crate) fn tallied(
    asked: &TallyWaits,
    groups: Vec<(u64, WaitKind, u64, u64)>,
    most: usize,
) -> WaitTally {
    let mut tally = WaitTally { whole: asked.intervals, ..WaitTally::default() };
    let (mut examined, mut last) = (0, 0);
    for (interval, kind, counted, seen) in groups {
        let interval = u32::try_from(interval).unwrap_or(u32::MAX);
        tally.add(WaitGroup { interval, kind }, counted);
        examined += seen;
        last = interval.max(last);
    }
    if usize::try_from(examined).is_ok_and(|examined| examined > most) {
        (tally.more, tally.whole) = (true, last);
    }
    tally
}

fn conditions(filter: &WaitFilter) -> Conditions {
    let mut conditions = Conditions::none();
    let time = |at: Timestamp| value(Time::from(at), Type::BYTEA);
    let number = |number: i16| value(number, Type::INT2);
    if let Some(namespace) = &filter.namespace {
        conditions.require("namespace = ?", [conditions::text(namespace.as_str())]);
    }
    if !filter.known.is_empty() {
        let known = filter.known.iter().map(NamespaceId::as_str);
        conditions.require("namespace = ANY (?)", [conditions::texts(known)]);
    }
    if let Some((shard, run)) = filter.run {
        let key = [number(shard_number(shard)), value(run_id(run), Type::UUID)];
        conditions.require("shard = ? AND run = ?", key);
    }
    if let Some(kind) = filter.kind {
        conditions.require("kind = ?", [number(i16::from(kind.number()))]);
        if matches!(kind, WaitKind::Signal | WaitKind::Condition | WaitKind::Approval) {
            // Repeats the predicate of the partial index, so that the planner can use it.
            conditions.require("kind IN (2, 3, 6)", []);
        }
    }
    if let Some(name) = &filter.name {
        conditions.require("name = ?", [conditions::text(name)]);
    }
    if let Some(workflow) = &filter.workflow {
        conditions.require("workflow = ?", [conditions::text(workflow.as_str())]);
    }
    if let (Some(namespace), Some(workflow)) = (&filter.namespace, &filter.workflow) {
        const OF_WORKFLOW: &str = "(shard, run) IN (SELECT runs.shard, runs.run FROM runs \
            WHERE runs.namespace = ? AND runs.workflow = ?)";
        let key = [conditions::text(namespace.as_str()), conditions::text(workflow.as_str())];
        conditions.require(OF_WORKFLOW, key);
    }
    if let Some(workflow_type) = &filter.workflow_type {
        conditions.require("workflow_type = ?", [conditions::text(workflow_type)]);
    }
    if let Some(before) = filter.since_before {
        conditions.require("since < ?", [time(before)]);
    }
    if let Some(until) = filter.until {
        conditions.require("until <= ?", [time(until)]);
    }
    if let Some(after) = &filter.after {
        let place = [
            time(after.until),
            value(run_id(after.run), Type::UUID),
            number(shard_number(after.shard)),
            value(after.wait.to_vec(), Type::BYTEA),
        ];
        conditions.require("(until, run, shard, wait) > (?, ?, ?, ?)", place);
    }
    conditions
}

pub(crate) fn decode(row: &Row) -> Result<(ShardId, WaitRow), Undecodable> {
    let wait = WaitRow {
        run: row.run(1)?,
        wait: row.bytes(2)?,
        namespace: row.text(3)?,
        workflow: row.text(4)?,
        workflow_type: row.text(5)?,
        kind: row.choice(6, WaitKind::from_number)?,
        name: row.text(7)?,
        since: row.time(8)?,
        until: row.time(9)?,
        timer: row.text_or_null(10)?,
        details: row.bytes(11)?,
    };
    Ok((row.shard(0)?, wait))
}
