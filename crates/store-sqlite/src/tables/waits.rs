//! One row per wait, and their list over all shards in the order of their end.

use abide_core::{
    ids::{NamespaceId, RunId, ShardId, TimerId, WorkflowId},
    tally::{TallyWaits, WaitGroup, WaitTally},
    time::Timestamp,
};
use abide_store::{
    WaitFilter,
    rows::{WaitKind, WaitRow},
};
use rusqlite::{Connection, Result, Row, params, params_from_iter, types::Value};

use crate::{
    tables::{conditions::Conditions, execute, row, rows},
    values::{Columns, limit, time},
};

/// The day of waits without an end, later than all others.
const ENDLESS: i64 = 1 << 31;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// The day on which a wait ends.
fn day(until: Timestamp) -> i64 {
    if until.is_never() { ENDLESS } else { until.seconds().div_euclid(DAY) }
}

pub(crate) fn put(connection: &Connection, shard: ShardId, row: &WaitRow) -> Result<()> {
    const SQL: &str = "INSERT OR REPLACE INTO waits \
        (run, shard, wait, day, namespace, workflow, workflow_type, kind, name, since, until, timer, \
        details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let params = params![
        row.run.as_bytes(),
        shard.number(),
        &row.wait[..],
        day(row.until),
        row.namespace.as_str(),
        row.workflow.as_str(),
        row.workflow_type,
        row.kind.number(),
        row.name,
        time(row.since),
        time(row.until),
        row.timer.as_ref().map(TimerId::as_str),
        &row.details[..],
    ];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    wait: &[u8],
) -> Result<()> {
    const SQL: &str = "DELETE FROM waits WHERE run = ? AND shard = ? AND wait = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number(), wait]).map(drop)
}

/// The end times of a run's waits.
pub(crate) fn ends_of(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
) -> Result<Vec<Timestamp>> {
    const SQL: &str = "SELECT until FROM waits WHERE run = ? AND shard = ?";
    rows(connection, SQL, params![run.as_bytes(), shard.number()], |row| row.time(0))
}

/// Waits of all shards by their end. Those of one run or workflow, and signals and conditions of
/// one name, are found by their keys; all other conditions filter a scan of the days. Approvals
/// wait for people, so they are few among many: they are found by their kind, and sorted.
pub(crate) fn list(
    connection: &Connection,
    filter: &WaitFilter,
    page: usize,
) -> Result<Vec<(ShardId, WaitRow)>> {
    let found_by_name = match filter.kind {
        Some(WaitKind::Approval) => true,
        Some(WaitKind::Signal | WaitKind::Condition) => filter.name.is_some(),
        Some(
            WaitKind::Timer | WaitKind::ActivityRetry | WaitKind::ChildRetry | WaitKind::Schedule,
        )
        | None => false,
    };
    if filter.run.is_some() {
        select(connection, filter, Access::Run, page)
    } else if let (Some(namespace), Some(workflow)) = (&filter.namespace, &filter.workflow) {
        select(connection, filter, Access::Workflow(namespace, workflow), page)
    } else if found_by_name {
        select(connection, filter, Access::Name, page)
    } else {
        by_day(connection, filter, page)
    }
}

fn by_day(
    connection: &Connection,
    filter: &WaitFilter,
    page: usize,
) -> Result<Vec<(ShardId, WaitRow)>> {
    let mut found = Vec::new();
    let mut next = filter.after.as_ref().map_or(i64::MIN, |after| day(after.until));
    let last = day(filter.until.unwrap_or(Timestamp::NEVER));
    while found.len() < page {
        let Some(day) = first_day(connection, next, last)? else { break };
        found.extend(select(connection, filter, Access::Day(day), page - found.len())?);
        next = day + 1;
    }
    Ok(found)
}

/// Counts waits day by day, among so many and one more. Within a day they are in no order, so if the
/// limit ends the count there, only the intervals before that day are whole.
pub(crate) fn tally(connection: &Connection, asked: &TallyWaits, most: usize) -> Result<WaitTally> {
    let mut tally = WaitTally { whole: asked.intervals, ..WaitTally::default() };
    let (mut left, mut next, last) = (most, day(asked.from), day(asked.end()));
    while let Some(day) = first_day(connection, next, last)?.filter(|day| *day != ENDLESS) {
        let examined = tally_day(connection, asked, (day, left.saturating_add(1)), &mut tally)?;
        if examined > left {
            let begin = Timestamp::new(day.saturating_mul(DAY), 0);
            tally.whole = begin.map_or(0, |begin| asked.whole_before(begin));
            tally.more = true;
            break;
        }
        (left, next) = (left - examined, day + 1);
    }
    Ok(tally)
}

/// Counts the waits of a day among so many of them, and returns how many were examined. SQLite runs in
/// this process and has no function for intervals of any length, so rows are counted as they are read.
fn tally_day(
    connection: &Connection,
    asked: &TallyWaits,
    (day, most): (i64, usize),
    tally: &mut WaitTally,
) -> Result<usize> {
    let TallyWaits { namespace, known, workflow_type, kinds, .. } = asked.clone();
    let filter = WaitFilter { namespace, known, workflow_type, ..WaitFilter::default() };
    let mut chosen = conditions(&filter);
    chosen.require_one_of("kind", kinds.iter().map(|kind| kind.number().into()));
    let sql = format!(
        "SELECT kind, until, {} FROM waits INDEXED BY waits_by_day WHERE day = ? LIMIT ?",
        chosen.sql
    );
    let params = chosen.params.into_iter().chain([day.into(), limit(most).into()]);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params))?;
    let mut examined = 0;
    while let Some(row) = rows.next()? {
        examined += 1;
        let (kind, until) = (row.choice(0, WaitKind::from_number)?, row.time(1)?);
        if row.get(2)?
            && let Some(interval) = asked.interval_of(until)
        {
            tally.add(WaitGroup { interval, kind }, 1);
        }
    }
    Ok(examined)
}

/// The first day in this range on which a wait ends.
fn first_day(connection: &Connection, from: i64, to: i64) -> Result<Option<i64>> {
    const SQL: &str = "SELECT day FROM waits INDEXED BY waits_by_day \
        WHERE day BETWEEN ? AND ? ORDER BY day LIMIT 1";
    row(connection, SQL, [from, to], |row| row.get(0))
}

/// How the rows are found.
#[derive(Clone, Copy)]
enum Access<'a> {
    Run,
    Workflow(&'a NamespaceId, &'a WorkflowId),
    Name,
    Day(i64),
}

fn select(
    connection: &Connection,
    filter: &WaitFilter,
    access: Access<'_>,
    page: usize,
) -> Result<Vec<(ShardId, WaitRow)>> {
    let mut conditions = conditions(filter);
    let index = match access {
        Access::Run => "NOT INDEXED",
        Access::Workflow(namespace, workflow) => {
            const OF_WORKFLOW: &str = "run IN (SELECT run FROM runs INDEXED BY runs_by_workflow \
                WHERE namespace = ? AND workflow = ?)";
            let key = [namespace.to_string().into(), workflow.to_string().into()];
            conditions.require(OF_WORKFLOW, key);
            "NOT INDEXED"
        }
        Access::Name => {
            // In the words of the index definition, so that SQLite knows that it may use the index.
            conditions.require("kind IN (2, 3, 6)", []);
            "INDEXED BY waits_by_name"
        }
        Access::Day(day) => {
            conditions.require("day = ?", [day.into()]);
            "INDEXED BY waits_by_day"
        }
    };
    let order = order(filter, access, &mut conditions);
    conditions.params.push(limit(page).into());
    let sql = format!(
        "SELECT shard, run, wait, namespace, workflow, workflow_type, kind, name, since, until, timer, \
         details \
         FROM waits {index} WHERE {} ORDER BY {order} LIMIT ?",
        conditions.sql
    );
    rows(connection, &sql, params_from_iter(conditions.params), decode)
}

/// Starts the page after the last one, and returns the order of its rows. Waits without an end are
/// in the order of their index, so that their pages need no sorting.
fn order(filter: &WaitFilter, access: Access<'_>, conditions: &mut Conditions) -> &'static str {
    let endless = matches!(access, Access::Day(ENDLESS));
    if let Some(after) = filter.after.as_ref().filter(|after| !endless || after.until.is_never()) {
        let until = Value::from(time(after.until).to_vec());
        let place = [
            after.run.as_bytes().to_vec().into(),
            after.shard.number().into(),
            after.wait.to_vec().into(),
        ];
        if endless {
            conditions.require("(run, shard, wait) > (?, ?, ?)", place);
        } else {
            let place = std::iter::once(until).chain(place);
            conditions.require("(until, run, shard, wait) > (?, ?, ?, ?)", place);
        }
    }
    if endless { "run, shard, wait" } else { "until, run, shard, wait" }
}

fn conditions(filter: &WaitFilter) -> Conditions {
    let mut conditions = Conditions::none();
    if let Some(namespace) = &filter.namespace {
        conditions.require("namespace = ?", [namespace.to_string().into()]);
    }
    let known = filter.known.iter().map(|namespace| namespace.to_string().into());
    conditions.require_one_of("namespace", known);
    if let Some((shard, run)) = filter.run {
        let key = [run.as_bytes().to_vec().into(), shard.number().into()];
        conditions.require("run = ? AND shard = ?", key);
    }
    if let Some(kind) = filter.kind {
        conditions.require("kind = ?", [kind.number().into()]);
    }
    if let Some(name) = &filter.name {
        conditions.require("name = ?", [name.clone().into()]);
    }
    if let Some(workflow) = &filter.workflow {
        conditions.require("workflow = ?", [workflow.to_string().into()]);
    }
    if let Some(workflow_type) = &filter.workflow_type {
        conditions.require("workflow_type = ?", [workflow_type.clone().into()]);
    }
    if let Some(before) = filter.since_before {
        conditions.require("since < ?", [time(before).to_vec().into()]);
    }
    if let Some(until) = filter.until {
        conditions.require("until <= ?", [time(until).to_vec().into()]);
    }
    conditions
}

fn decode(row: &Row<'_>) -> Result<(ShardId, WaitRow)> {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use bytes::Bytes;

    use super::*;

    fn wait(number: u128, kind: WaitKind) -> WaitRow {
        let at = Timestamp::from_unix_millis(1_800_000_000_000);
        WaitRow {
            run: RunId::from_parts(at, number),
            wait: Bytes::from_static(b"t1"),
            namespace: "default".into(),
            workflow: "order".into(),
            workflow_type: "Order".to_owned(),
            kind,
            name: "name".to_owned(),
            since: at,
            until: at.saturating_add(std::time::Duration::from_secs(60)),
            timer: Some("1".into()),
            details: Bytes::new(),
        }
    }

    #[test]
    fn an_approval_is_found_among_many_timers() {
        static OPERATIONS: AtomicUsize = AtomicUsize::new(0);
        let mut connection = Connection::open_in_memory().unwrap();
        let migrations = crate::open::MIGRATIONS;
        migrations.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
        connection.execute_batch("BEGIN").unwrap();
        let shard = ShardId::new(1).unwrap();
        for number in 0..10_000 {
            put(&connection, shard, &wait(number, WaitKind::Timer)).unwrap();
        }
        let approval = wait(10_000, WaitKind::Approval);
        put(&connection, shard, &approval).unwrap();
        let count = || {
            OPERATIONS.fetch_add(10, Relaxed);
            false
        };
        connection.progress_handler(10, Some(count)).unwrap();
        let filter = WaitFilter { kind: Some(WaitKind::Approval), ..WaitFilter::default() };
        assert_eq!(list(&connection, &filter, 10).unwrap(), [(shard, approval)]);
        let operations = OPERATIONS.load(Relaxed);
        assert!(operations < 1_000, "{operations} operations");
    }
}
