//! One row per run: serves lists, finds the current run of a workflow, and deduplicates starts by
//! start key.

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, WorkflowId},
    tally::{RunGroup, RunTally},
    time::Timestamp,
};
use abide_store::{
    RunFilter, WorkflowRuns,
    rows::{RunKey, RunParent, RunPosition, RunRow, RunStatus, Swept},
};
use tokio_postgres::{Row, types::Type};

use crate::{
    readers::Query,
    session::{Call, Param},
    tables::{
        call, column,
        conditions::{self, Conditions, value},
    },
    values::{Columns, Time, Undecodable, limit, number, run_id, shard_number, text},
};

/// In the order of [`decode`].
pub(crate) const COLUMNS: &str = "run, namespace, workflow, ordinal, workflow_type, status, \
    start_key, started_at, closed_at, details, queue, parent_workflow, parent_run";

pub(crate) const PUT: &str = "INSERT INTO runs (shard, run, namespace, workflow, ordinal, \
    workflow_type, status, start_key, started_at, closed_at, details, queue, parent_workflow, \
    parent_run) SELECT * FROM unnest( \
    $1::smallint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::smallint[], \
    $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::text[], $13::text[], $14::uuid[]) \
    ON CONFLICT (shard, run) DO UPDATE SET \
    namespace = excluded.namespace, workflow = excluded.workflow, ordinal = excluded.ordinal, \
    workflow_type = excluded.workflow_type, status = excluded.status, \
    start_key = excluded.start_key, started_at = excluded.started_at, \
    closed_at = excluded.closed_at, details = excluded.details, queue = excluded.queue, \
    parent_workflow = excluded.parent_workflow, parent_run = excluded.parent_run";

pub(crate) const DELETE: &str = "DELETE FROM runs \
    USING unnest($1::smallint[], $2::uuid[]) AS key (shard, run) \
    WHERE runs.shard = key.shard AND runs.run = key.run";

pub(crate) const OF_WORKFLOW: &str = "SELECT run, ordinal, start_key FROM runs \
     WHERE namespace = $1 AND workflow = $2 AND shard = $3 AND ordinal <= $4 \
     ORDER BY ordinal DESC, run DESC LIMIT $5";

/// The next open runs, and for each whether nothing would resume it. A wait points to its entry in
/// the due index. Tasks, and the due entries of a run without waits, have no index by run, so the
/// query scans the shard's part of each table once for all such runs. `IS TRUE` keeps the planner
/// from turning this into a join: however large the tables are, it looks up each row among the
/// few runs, and not each run among all rows.
pub(crate) const STRANDED: &str = "WITH seen AS MATERIALIZED (SELECT run FROM runs WHERE shard = $1 AND status <= 3 \
     AND run >= $2 AND (run > $2 OR $3) ORDER BY run LIMIT $4), \
     queued AS MATERIALIZED (SELECT DISTINCT tasks.run FROM tasks WHERE tasks.shard = $1 \
     AND (tasks.run IN (SELECT seen.run FROM seen)) IS TRUE), \
     timed AS MATERIALIZED (SELECT DISTINCT due.run FROM due WHERE due.shard = $1 \
     AND (due.run IN (SELECT seen.run FROM seen)) IS TRUE) SELECT seen.run, \
     NOT EXISTS (SELECT FROM outbox WHERE outbox.shard = $1 AND outbox.run = seen.run) \
     AND seen.run NOT IN (SELECT queued.run FROM queued), \
     CASE WHEN EXISTS (SELECT FROM waits WHERE waits.shard = $1 AND waits.run = seen.run) \
     THEN EXISTS (SELECT FROM waits WHERE waits.shard = $1 AND waits.run = seen.run \
     AND waits.until <> $5 AND NOT EXISTS (SELECT FROM due WHERE due.shard = $1 \
     AND due.due = waits.until AND due.run = seen.run)) \
     ELSE seen.run NOT IN (SELECT timed.run FROM timed) END \
     FROM seen ORDER BY seen.run";

pub(crate) fn put<'a>(rows: &[(ShardId, &'a RunRow)]) -> Call<'a> {
    let params = vec![
        column(rows, |(shard, _)| shard_number(*shard)),
        column(rows, |(_, row)| run_id(row.run)),
        column(rows, |(_, row)| text(row.namespace.as_str())),
        column(rows, |(_, row)| text(row.workflow.as_str())),
        column(rows, |(_, row)| number(row.ordinal)),
        column(rows, |(_, row)| text(&row.workflow_type)),
        column(rows, |(_, row)| i16::from(row.status.number())),
        column(rows, |(_, row)| row.start_key.as_deref().map(text)),
        column(rows, |(_, row)| Time::from(row.started_at)),
        column(rows, |(_, row)| row.closed_at.map(Time::from)),
        column(rows, |(_, row)| &row.details[..]),
        column(rows, |(_, row)| text(&row.queue)),
        column(rows, |(_, row)| row.parent.as_ref().map(|parent| text(parent.workflow.as_str()))),
        column(rows, |(_, row)| row.parent.as_ref().map(|parent| run_id(parent.run))),
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

/// Runs of one workflow, highest ordinal first.
pub(crate) fn of_workflow(shard: ShardId, of: &WorkflowRuns, page: usize) -> Query {
    // No stored ordinal is negative, so -1 selects nothing.
    let highest = of.before.map_or(i64::MAX, |before| match before.checked_sub(1) {
        Some(highest) => number(highest),
        None => -1,
    });
    Query::ByKey(call(
        OF_WORKFLOW,
        vec![
            Box::new(text(of.namespace.as_str()).into_owned()),
            Box::new(text(of.workflow.as_str()).into_owned()),
            Box::new(shard_number(shard)),
            Box::new(highest),
            Box::new(limit(page)),
        ],
    ))
}

/// Counts runs by status and type among the newest `most` and one more. The inner limit bounds the
/// work, however few runs pass the filter.
pub(crate) fn tally(filter: &RunFilter, most: usize) -> Query {
    const SEEN: &str =
        "SELECT run, namespace, workflow, workflow_type, status, started_at FROM runs";
    let mut conditions = conditions(filter);
    let chosen = conditions.end_clause();
    let span = filter.span();
    require(&mut conditions, &span);
    let order = match span.workflow {
        Some(_) => "ORDER BY ordinal DESC",
        None => "ORDER BY started_at DESC, run DESC",
    };
    let page = limit(most.saturating_add(1));
    let seen = conditions.made(SEEN, order, Some(page));
    Query::Filtered(conditions::tally(seen, "status, workflow_type", &chosen))
}

/// Status and type, how many runs pass the filter, and how many were examined.
pub(crate) fn decode_tally(row: &Row) -> Result<(RunGroup, u64, u64), Undecodable> {
    let status = row.choice(0, RunStatus::from_number)?;
    let group = RunGroup::Type { status, workflow_type: row.text(1)? };
    Ok((group, row.number(2)?, row.number(3)?))
}

pub(crate) fn tallied(groups: Vec<(RunGroup, u64, u64)>, most: usize) -> RunTally {
    let (mut tally, mut examined) = (RunTally::default(), 0);
    for (group, counted, seen) in groups {
        tally.add(group, counted);
        examined += seen;
    }
    tally.more = usize::try_from(examined).is_ok_and(|examined| examined > most);
    tally
}

pub(crate) fn decode_count(row: &Row) -> Result<u64, Undecodable> {
    row.number(0)
}

fn conditions(filter: &RunFilter) -> Conditions {
    let mut conditions = Conditions::none();
    require(&mut conditions, filter);
    conditions
}

fn position((started_at, run): RunPosition) -> [(Param<'static>, Type); 2] {
    [value(Time::from(started_at), Type::BYTEA), value(run_id(run), Type::UUID)]
}

/// Requires what the filter says.
fn require(conditions: &mut Conditions, filter: &RunFilter) {
    let time = |at: Timestamp| value(Time::from(at), Type::BYTEA);
    if let Some(namespace) = &filter.namespace {
        conditions.require("namespace = ?", [conditions::text(namespace.as_str())]);
    }
    if !filter.known.is_empty() {
        let known = filter.known.iter().map(NamespaceId::as_str);
        conditions.require("namespace = ANY (?)", [conditions::texts(known)]);
    }
    if let Some(workflow) = &filter.workflow {
        conditions.require("workflow = ?", [conditions::text(workflow.as_str())]);
    }
    if let Some(workflow_type) = &filter.workflow_type {
        conditions.require("workflow_type = ?", [conditions::text(workflow_type)]);
    }
    if !filter.statuses.is_empty() {
        let numbers: Vec<_> =
            filter.statuses.iter().map(|status| i16::from(status.number())).collect();
        conditions.require("status = ANY (?)", [value(numbers, Type::INT2_ARRAY)]);
    }
    if let Some(from) = filter.started_from {
        conditions.require("started_at >= ?", [time(from)]);
    }
    if let Some(before) = filter.started_before {
        conditions.require("started_at < ?", [time(before)]);
    }
    if let Some(after) = filter.after {
        conditions.require("(started_at, run) < (?, ?)", position(after));
    }
}

/// Checks a page of open runs for those that nothing in the store would resume.
pub(crate) fn stranded(shard: ShardId, after: Option<RunId>, page: usize) -> Query {
    Query::ByKey(call(
        STRANDED,
        vec![
            Box::new(shard_number(shard)),
            Box::new(run_id(after.unwrap_or(RunId::MIN))),
            Box::new(after.is_none()),
            Box::new(limit(page)),
            Box::new(Time::from(Timestamp::NEVER)),
        ],
    ))
}

/// An open run.
pub(crate) struct Seen {
    run: RunId,
    /// It has no row in tasks and outbox.
    idle: bool,
    /// Neither a wait nor a due time would resume it.
    unresumed: bool,
}

pub(crate) fn decode_seen(row: &Row) -> Result<Seen, Undecodable> {
    Ok(Seen { run: row.run(0)?, idle: row.flag(1)?, unresumed: row.flag(2)? })
}

/// Result of one page.
pub(crate) fn swept(seen: Vec<Seen>, page: usize) -> Swept {
    let next = seen.last().map(|seen| seen.run).filter(|_| seen.len() == page);
    let (stranded, quiet): (Vec<_>, Vec<_>) =
        seen.into_iter().filter(|seen| seen.idle).partition(|seen| seen.unresumed);
    let runs = |seen: Vec<Seen>| seen.into_iter().map(|seen| seen.run).collect();
    Swept { stranded: runs(stranded), quiet: runs(quiet), next }
}

pub(crate) fn decode_key(row: &Row) -> Result<RunKey, Undecodable> {
    Ok(RunKey { run: row.run(0)?, ordinal: row.number(1)?, start_key: row.text_or_null(2)? })
}

pub(crate) fn decode(row: &Row) -> Result<RunRow, Undecodable> {
    let parent: Option<WorkflowId> = row.text_or_null(11)?;
    let parent = match parent {
        Some(workflow) => Some(RunParent { workflow, run: row.run(12)? }),
        None => None,
    };
    Ok(RunRow {
        run: row.run(0)?,
        namespace: row.text(1)?,
        workflow: row.text(2)?,
        ordinal: row.number(3)?,
        workflow_type: row.text(4)?,
        status: row.choice(5, RunStatus::from_number)?,
        start_key: row.text_or_null(6)?,
        started_at: row.time(7)?,
        closed_at: row.time_or_null(8)?,
        details: row.bytes(9)?,
        queue: row.text(10)?,
        parent,
    })
}
