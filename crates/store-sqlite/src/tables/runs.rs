//! One row per run: for lists, as the current run of its workflow, and as the start key.

use std::collections::BTreeSet;

use abide_core::{
    ids::{RunId, ShardId, WorkflowId},
    tally::{RunGroup, RunTally},
};
use abide_store::{
    RunFilter, WorkflowRuns,
    rows::{RunKey, RunParent, RunRow, RunStatus, Swept},
};
use rusqlite::{Connection, Result, Row, params, params_from_iter};

use crate::{
    tables::{conditions::Conditions, due, execute, rows, waits},
    values::{Columns, bound, limit, number, time},
};

/// In the order of [`decode`].
pub(crate) const COLUMNS: &str = "run, namespace, workflow, ordinal, workflow_type, status, \
    start_key, started_at, closed_at, details, queue, parent_workflow, parent_run";

/// Replaces the run's row. During the life of a run only its status and end change of what has an index,
/// and then the other indexes are left alone; otherwise the whole row is rewritten.
pub(crate) fn put(connection: &Connection, shard: ShardId, row: &RunRow) -> Result<()> {
    const UPSERT: &str = "INSERT INTO runs (run, shard, namespace, workflow, ordinal, \
        workflow_type, status, start_key, started_at, closed_at, details, queue, \
        parent_workflow, parent_run) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
        ON CONFLICT DO UPDATE SET status = excluded.status, start_key = excluded.start_key, \
        closed_at = excluded.closed_at, details = excluded.details, queue = excluded.queue, \
        parent_run = excluded.parent_run \
        WHERE namespace = excluded.namespace AND workflow = excluded.workflow \
        AND ordinal = excluded.ordinal AND started_at = excluded.started_at \
        AND workflow_type = excluded.workflow_type \
        AND parent_workflow IS excluded.parent_workflow";
    let params = params![
        row.run.as_bytes(),
        shard.number(),
        row.namespace.as_str(),
        row.workflow.as_str(),
        number(row.ordinal)?,
        row.workflow_type,
        row.status.number(),
        row.start_key,
        time(row.started_at),
        row.closed_at.map(time),
        &row.details[..],
        row.queue,
        row.parent.as_ref().map(|parent| parent.workflow.as_str()),
        row.parent.as_ref().map(|parent| parent.run.as_bytes()),
    ];
    if execute(connection, UPSERT, params)? == 0 {
        delete(connection, shard, row.run)?;
        execute(connection, UPSERT, params)?;
    }
    Ok(())
}

pub(crate) fn delete(connection: &Connection, shard: ShardId, run: RunId) -> Result<()> {
    const SQL: &str = "DELETE FROM runs WHERE run = ? AND shard = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number()]).map(drop)
}

/// Runs of one workflow, highest ordinal first.
pub(crate) fn of_workflow(
    connection: &Connection,
    shard: ShardId,
    of: &WorkflowRuns,
    page: usize,
) -> Result<Vec<RunKey>> {
    let before = if of.before.is_some() { "AND ordinal < ?4" } else { "" };
    let sql = format!(
        "SELECT run, ordinal, start_key FROM runs INDEXED BY runs_by_workflow \
         WHERE namespace = ?1 AND workflow = ?2 AND shard = ?3 {before} \
         ORDER BY ordinal DESC, run DESC LIMIT ?5"
    );
    let (namespace, workflow) = (of.namespace.as_str(), of.workflow.as_str());
    let before = bound(of.before.unwrap_or(u64::MAX));
    let params = params![namespace, workflow, shard.number(), before, limit(page)];
    rows(connection, &sql, params, |row| {
        Ok(RunKey { run: row.run(0)?, ordinal: row.number(1)?, start_key: row.get(2)? })
    })
}

/// Counts runs by status and type among so many and one more, the newest first. The inner limit
/// bounds the work, however few runs pass the filter.
pub(crate) fn tally(connection: &Connection, filter: &RunFilter, most: usize) -> Result<RunTally> {
    let (index, span) = (index(filter), conditions(&filter.span()));
    let order = match index {
        BY_WORKFLOW => "ordinal DESC",
        _ => "started_at DESC, run DESC",
    };
    let chosen = conditions(filter);
    let sql = format!(
        "WITH seen AS (SELECT run, namespace, workflow, workflow_type, status, started_at \
         FROM runs INDEXED BY {index} WHERE {} ORDER BY {order} LIMIT ?) \
         SELECT status, workflow_type, count(*) FILTER (WHERE {}), count(*) FROM seen \
         GROUP BY status, workflow_type",
        span.sql, chosen.sql
    );
    let params = span.params.into_iter().chain([limit(most.saturating_add(1)).into()]);
    let params = params_from_iter(params.chain(chosen.params));
    let group = |row: &Row<'_>| {
        let status = row.choice(0, RunStatus::from_number)?;
        let group = RunGroup::Type { status, workflow_type: row.text(1)? };
        Ok((group, row.number(2)?, row.number(3)?))
    };
    let (mut tally, mut examined) = (RunTally::default(), 0_u64);
    for (group, counted, seen) in rows(connection, &sql, params, group)? {
        tally.add(group, counted);
        examined += seen;
    }
    tally.more = usize::try_from(examined).is_ok_and(|examined| examined > most);
    Ok(tally)
}

const BY_WORKFLOW: &str = "runs_by_workflow";

fn index(filter: &RunFilter) -> &'static str {
    let by_workflow = filter.namespace.is_some() && filter.workflow.is_some();
    if by_workflow { BY_WORKFLOW } else { "runs_by_start" }
}

fn conditions(filter: &RunFilter) -> Conditions {
    let mut conditions = Conditions::none();
    if let Some(namespace) = &filter.namespace {
        conditions.require("namespace = ?", [namespace.to_string().into()]);
    }
    let known = filter.known.iter().map(|namespace| namespace.to_string().into());
    conditions.require_one_of("namespace", known);
    if let Some(workflow) = &filter.workflow {
        conditions.require("workflow = ?", [workflow.to_string().into()]);
    }
    if let Some(workflow_type) = &filter.workflow_type {
        conditions.require("workflow_type = ?", [workflow_type.clone().into()]);
    }
    let statuses = filter.statuses.iter().map(|status| status.number().into());
    conditions.require_one_of("status", statuses);
    if let Some(from) = filter.started_from {
        conditions.require("started_at >= ?", [time(from).to_vec().into()]);
    }
    if let Some(before) = filter.started_before {
        conditions.require("started_at < ?", [time(before).to_vec().into()]);
    }
    if let Some((started_at, run)) = filter.after {
        let position = [time(started_at).to_vec().into(), run.as_bytes().to_vec().into()];
        conditions.require("(started_at, run) < (?, ?)", position);
    }
    conditions
}

/// Whether the row was written by a version that stored no queue.
pub(crate) fn outdated(connection: &Connection, shard: ShardId, run: RunId) -> Result<bool> {
    const SQL: &str = "SELECT 1 FROM runs WHERE run = ? AND shard = ? AND queue = ''";
    connection.prepare_cached(SQL)?.exists(params![run.as_bytes(), shard.number()])
}

/// Checks a page of open runs for those that nothing in the store would resume. A wait leads to its
/// entry in the due index. Entries of runs without waits cannot be found by run, so all such runs
/// are looked up together in the shard's part of the index.
pub(crate) fn stranded(
    connection: &Connection,
    shard: ShardId,
    after: Option<RunId>,
    page: usize,
) -> Result<Swept> {
    let open = open_after(connection, shard, after, page)?;
    let next = open.last().map(|(run, _)| *run).filter(|_| open.len() == page);
    let (mut stranded, mut without_wait) = (BTreeSet::new(), BTreeSet::new());
    let idle: Vec<_> = open.into_iter().filter(|(_, idle)| *idle).map(|(run, _)| run).collect();
    for run in idle.iter().copied() {
        match waits::ends_of(connection, shard, run)? {
            ends if ends.is_empty() => {
                without_wait.insert(run);
            }
            ends => {
                for end in ends.into_iter().filter(|end| !end.is_never()) {
                    if !due::contains(connection, shard, run, end)? {
                        stranded.insert(run);
                    }
                }
            }
        }
    }
    due::remove_due(connection, shard, &mut without_wait)?;
    stranded.append(&mut without_wait);
    let (stranded, quiet) = idle.into_iter().partition(|run| stranded.contains(run));
    Ok(Swept { stranded, quiet, next })
}

/// The next open runs, each with whether it has no row in tasks and outbox.
fn open_after(
    connection: &Connection,
    shard: ShardId,
    after: Option<RunId>,
    page: usize,
) -> Result<Vec<(RunId, bool)>> {
    const SQL: &str = "SELECT run, \
        NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.shard = ?1 AND outbox.run = runs.run) \
        AND run NOT IN (SELECT run FROM tasks WHERE shard = ?1) \
        FROM runs INDEXED BY runs_open WHERE status <= 3 AND shard = ?1 AND run > ?2 \
        ORDER BY run LIMIT ?3";
    let after = after.map_or_else(Vec::new, |run| run.as_bytes().to_vec());
    let params = params![shard.number(), after, limit(page)];
    rows(connection, SQL, params, |row| Ok((row.run(0)?, row.get(1)?)))
}

pub(crate) fn decode(row: &Row<'_>) -> Result<RunRow> {
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
        start_key: row.get(6)?,
        started_at: row.time(7)?,
        closed_at: row.time_or_null(8)?,
        details: row.bytes(9)?,
        queue: row.text(10)?,
        parent,
    })
}

#[cfg(test)]
mod tests;
