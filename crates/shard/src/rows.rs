//! Rows are a projection of the run: what the store should hold follows from the folded log alone.
//! Incremental writes compare projections before and after, so they cannot drift from a rebuild.

use abide_core::{
    codec::{self, RunDetails},
    event::{Origin, WaitDetails},
    ids::{EventNumber, TimerId, WaitId},
    run::{Activity, Phase, Run, Task, TimerKey, Touch},
    time::Timestamp,
};
use abide_store::{
    Write,
    rows::{DueRow, OutboxRow, RunRow, TaskKey, TaskPhase, TaskRow, WaitKind, WaitRow, WorkKind},
};
use bytes::{BufMut, Bytes, BytesMut};

/// One row of the store, other than the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Work for a worker.
    Task(TaskRow),
    /// An entry of the due index.
    Due(DueRow),
    /// Something that the run waits for.
    Wait(WaitRow),
    /// An effect on another workflow.
    Outbox(OutboxRow),
    /// The run as lists show it.
    Run(RunRow),
}

/// The rows that a part of the run should have.
pub fn project(run: &Run, part: &Touch) -> Vec<Row> {
    if !run.open() && !matches!(part, Touch::Run | Touch::Effect(_)) {
        return Vec::new();
    }
    match part {
        Touch::Run => vec![Row::Run(run_row(run))],
        Touch::Deadlines => [TimerKey::FirstTask, TimerKey::Deadline]
            .iter()
            .filter_map(|key| due_row(run, key))
            .collect(),
        Touch::Task => workflow_task(run).into_iter().collect(),
        Touch::Timer(timer) => timer_rows(run, timer),
        Touch::Wait(wait) => condition_row(run, wait).into_iter().collect(),
        Touch::Activity(scheduled) => activity_rows(run, *scheduled),
        Touch::Effect(number) => effect_row(run, *number).into_iter().collect(),
    }
}

/// The writes that turn the rows of a part from `before` into `after`.
pub fn changes(before: &[Row], after: &[Row]) -> Vec<Write> {
    let gone = before.iter().filter(|old| !after.iter().any(|new| old.same_place(new)));
    let new = after.iter().filter(|new| !before.contains(new));
    gone.map(Row::delete).chain(new.cloned().map(Row::put)).collect()
}

impl Row {
    /// The write that puts the row.
    pub fn put(self) -> Write {
        match self {
            Self::Task(row) => Write::PutTask(row),
            Self::Due(row) => Write::PutDue(row),
            Self::Wait(row) => Write::PutWait(row),
            Self::Outbox(row) => Write::PutOutbox(row),
            Self::Run(row) => Write::PutRun(row),
        }
    }

    fn delete(&self) -> Write {
        match self {
            Self::Task(row) => Write::DeleteTask(row.key.clone()),
            Self::Due(row) => Write::DeleteDue(row.key()),
            Self::Wait(row) => Write::DeleteWait { run: row.run, wait: row.wait.clone() },
            Self::Outbox(row) => Write::DeleteOutbox { run: row.run, number: row.number },
            Self::Run(row) => Write::DeleteRun(row.run),
        }
    }

    fn same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Task(one), Self::Task(two)) => one.key == two.key,
            (Self::Due(one), Self::Due(two)) => one.key() == two.key(),
            (Self::Wait(one), Self::Wait(two)) => one.run == two.run && one.wait == two.wait,
            (Self::Outbox(one), Self::Outbox(two)) => {
                one.run == two.run && one.number == two.number
            }
            (Self::Run(one), Self::Run(two)) => one.run == two.run,
            _ => false,
        }
    }
}

fn run_row(run: &Run) -> RunRow {
    let details = RunDetails {
        memo: run.spec.memo.clone(),
        search_attributes: run.spec.search_attributes.clone(),
    };
    RunRow {
        run: run.id,
        namespace: run.workflow.namespace.clone(),
        workflow: run.workflow.workflow.clone(),
        ordinal: run.ordinal,
        workflow_type: run.spec.workflow_type.clone(),
        status: run.shown_status(),
        start_key: run.key.as_ref().map(|key| key.as_str().to_owned()),
        started_at: run.started_at,
        closed_at: run.closed_at(),
        details: codec::encode_run_details(&details),
    }
}

fn due_row(run: &Run, key: &TimerKey) -> Option<Row> {
    Some(Row::Due(DueRow {
        due: run.due(key)?,
        run: run.id,
        timer: key.to_bytes(),
        workflow: run.workflow.workflow.clone(),
        namespace: run.workflow.namespace.clone(),
    }))
}

fn task_key(run: &Run, queue: &str, kind: WorkKind, scheduled: u64) -> TaskKey {
    let namespace = run.workflow.namespace.clone();
    TaskKey { namespace, queue: queue.to_owned(), kind, run: run.id, scheduled }
}

fn workflow_task(run: &Run) -> Option<Row> {
    let phase = match &run.task {
        Task::Idle => return None,
        Task::Scheduled { .. } | Task::Retry(_) if run.paused => TaskPhase::Held,
        Task::Scheduled { .. } => TaskPhase::Ready,
        Task::Retry(retry) if retry.blocked.is_some() => TaskPhase::Held,
        Task::Retry(_) => TaskPhase::Ready,
    };
    let key = task_key(run, &run.spec.queue, WorkKind::Workflow, 0);
    Some(Row::Task(TaskRow { key, workflow: run.workflow.workflow.clone(), phase }))
}

fn timer_rows(run: &Run, id: &TimerId) -> Vec<Row> {
    let Some(timer) = run.timers.get(id) else { return Vec::new() };
    let mut rows: Vec<_> = due_row(run, &TimerKey::Timer(id.clone())).into_iter().collect();
    let (kind, name) = match &timer.spec.origin {
        Some(Origin::Condition { .. }) if timer.wait.is_some() => return rows,
        Some(Origin::ExternalEvent { name }) => (WaitKind::Signal, name.clone()),
        Some(Origin::ActivityRetry { execution }) => {
            (WaitKind::ActivityRetry, execution.to_string())
        }
        Some(Origin::ChildWorkflowRetry { workflow }) => {
            (WaitKind::ChildRetry, workflow.to_string())
        }
        Some(Origin::CreateTimer | Origin::Condition { .. }) | None => {
            (WaitKind::Timer, id.to_string())
        }
    };
    let details = codec::encode_wait_details(timer.spec.details.as_ref());
    let place = wait_place(b't', id.as_str());
    let mut row = wait_row(run, place, kind, name, (timer.since, timer.due()), details);
    row.timer = Some(id.clone()).filter(|_| !timer.spec.optional());
    rows.push(Row::Wait(row));
    rows
}

fn condition_row(run: &Run, id: &WaitId) -> Option<Row> {
    let wait = run.waits.get(id)?;
    let timer = wait.spec.timer.as_ref().and_then(|timer| run.timers.get(timer));
    let until = timer.map_or(Timestamp::NEVER, |timer| timer.due());
    let name = wait.spec.condition.key.clone().unwrap_or_default();
    let details = codec::encode_wait_details(wait.spec.details.as_ref());
    let place = wait_place(b'c', id.as_str());
    let kind = match &wait.spec.details {
        Some(WaitDetails { approval: Some(_), .. }) => WaitKind::Approval,
        Some(_) | None => WaitKind::Condition,
    };
    let mut row = wait_row(run, place, kind, name, (wait.since, until), details);
    row.timer = timer.map(|timer| timer.spec.timer.clone());
    Some(Row::Wait(row))
}

fn activity_rows(run: &Run, scheduled: EventNumber) -> Vec<Row> {
    let Some(activity) = run.activities.get(&scheduled).filter(|activity| !activity.closing) else {
        return Vec::new();
    };
    let key = task_key(run, &activity.spec.queue, WorkKind::Activity, scheduled);
    let phase = activity_phase(run, activity);
    let mut rows = vec![Row::Task(TaskRow { key, workflow: run.workflow.workflow.clone(), phase })];
    rows.extend(due_row(run, &TimerKey::Activity(scheduled)));
    if let Phase::Backoff { until } = activity.phase {
        let place = wait_place(b'a', &scheduled.to_string());
        let name = activity.execution.to_string();
        let span = (activity.scheduled_at, until);
        let kind = WaitKind::ActivityRetry;
        rows.push(Row::Wait(wait_row(run, place, kind, name, span, Bytes::new())));
    }
    rows
}

fn activity_phase(run: &Run, activity: &Activity) -> TaskPhase {
    match activity.phase {
        Phase::Started { .. } => TaskPhase::Started,
        Phase::Ready { .. } if !run.paused => TaskPhase::Ready,
        Phase::Ready { .. } | Phase::Backoff { .. } => TaskPhase::Held,
    }
}

fn effect_row(run: &Run, number: u64) -> Option<Row> {
    Some(Row::Outbox(OutboxRow {
        run: run.id,
        number,
        namespace: run.workflow.namespace.clone(),
        workflow: run.workflow.workflow.clone(),
        effect: codec::encode_effect(run.outbox.get(&number)?),
    }))
}

fn wait_place(kind: u8, id: &str) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + id.len());
    bytes.put_u8(kind);
    bytes.put_slice(id.as_bytes());
    bytes.freeze()
}

fn wait_row(
    run: &Run,
    wait: Bytes,
    kind: WaitKind,
    name: String,
    (since, until): (Timestamp, Timestamp),
    details: Bytes,
) -> WaitRow {
    WaitRow {
        run: run.id,
        wait,
        namespace: run.workflow.namespace.clone(),
        workflow: run.workflow.workflow.clone(),
        workflow_type: run.spec.workflow_type.clone(),
        kind,
        name,
        since,
        until,
        timer: None,
        details,
    }
}
