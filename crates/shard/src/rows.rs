//! Rows are a projection of the run: what the store should hold follows from the folded log alone.
//! Incremental writes compare projections before and after, so they cannot drift from a rebuild.

use abide_core::{
    codec::{self, RunDetails},
    ids::{EventNumber, TimerId},
    run::{Activity, Phase, Run, Task, TimerKey, Touch, WaitKey},
    search::attribute,
};
use abide_store::{
    Write,
    rows::{
        AttributeRow, DueRow, OutboxRow, RunParent, RunRow, TaskKey, TaskPhase, TaskRow, WaitRow,
        WorkKind,
    },
};

/// A row of the store, other than a log row.
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
    /// A value of one of its search attributes.
    Attribute(AttributeRow),
}

/// The rows that the store should hold for a part of the run.
pub fn project(run: &Run, part: &Touch) -> Vec<Row> {
    if !run.open() && !matches!(part, Touch::Run | Touch::Effect(_)) {
        return Vec::new();
    }
    match part {
        Touch::Run => std::iter::once(Row::Run(run_row(run))).chain(attribute_rows(run)).collect(),
        Touch::Deadlines => [TimerKey::FirstTask, TimerKey::Deadline]
            .iter()
            .filter_map(|key| due_row(run, key))
            .chain(wait_row(run, &WaitKey::Begin))
            .collect(),
        Touch::Task => workflow_task(run).into_iter().collect(),
        Touch::Timer(timer) => timer_rows(run, timer),
        Touch::Wait(wait) => wait_row(run, &WaitKey::Condition(wait.clone())).into_iter().collect(),
        Touch::Activity(scheduled) => activity_rows(run, *scheduled),
        Touch::Effect(number) => effect_row(run, *number).into_iter().collect(),
        Touch::Schedule => {
            let due = due_row(run, &TimerKey::Schedule);
            due.into_iter().chain(wait_row(run, &WaitKey::Schedule)).collect()
        }
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
            Self::Attribute(row) => Write::PutAttribute(row),
        }
    }

    fn delete(&self) -> Write {
        match self {
            Self::Task(row) => Write::DeleteTask(row.key.clone()),
            Self::Due(row) => Write::DeleteDue(row.key()),
            Self::Wait(row) => Write::DeleteWait { run: row.run, wait: row.wait.clone() },
            Self::Outbox(row) => Write::DeleteOutbox { run: row.run, number: row.number },
            Self::Run(row) => Write::DeleteRun(row.run),
            Self::Attribute(AttributeRow { run, name, value, .. }) => {
                let (name, value) = (name.clone(), value.clone());
                Write::DeleteAttribute { run: *run, name, value }
            }
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
            (Self::Attribute(one), Self::Attribute(two)) => {
                one.run == two.run && one.name == two.name && one.value == two.value
            }
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
        queue: run.spec.queue.clone(),
        parent: run.parent.as_ref().map(|parent| RunParent {
            workflow: parent.run.workflow.workflow.clone(),
            run: parent.run.run,
        }),
    }
}

/// The values of the run's search attributes. They stay when the run closes.
fn attribute_rows(run: &Run) -> impl Iterator<Item = Row> {
    let entries = attribute::entries(&run.spec.search_attributes);
    entries.into_iter().map(|(name, value)| {
        Row::Attribute(AttributeRow {
            run: run.id,
            namespace: run.workflow.namespace.clone(),
            name: name.to_owned(),
            value: value.into(),
            started_at: run.started_at,
        })
    })
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
        Task::Idle if run.buffer.is_empty() => return None,
        // A task for updates alone has no row, while other inputs wait for its end: this row lets
        // recovery find the run after a crash.
        Task::Idle => TaskPhase::Held,
        Task::Scheduled { .. } | Task::Retry(_) if run.paused => TaskPhase::Held,
        Task::Scheduled { .. } => TaskPhase::Ready,
        Task::Retry(retry) if retry.blocked.is_some() => TaskPhase::Held,
        Task::Retry(_) => TaskPhase::Ready,
    };
    let key = task_key(run, &run.spec.queue, WorkKind::Workflow, 0);
    Some(Row::Task(TaskRow { key, workflow: run.workflow.workflow.clone(), phase }))
}

fn timer_rows(run: &Run, id: &TimerId) -> Vec<Row> {
    let due = due_row(run, &TimerKey::Timer(id.clone()));
    due.into_iter().chain(wait_row(run, &WaitKey::Timer(id.clone()))).collect()
}

fn wait_row(run: &Run, key: &WaitKey) -> Option<Row> {
    run.wait_row(key).map(Row::Wait)
}

fn activity_rows(run: &Run, scheduled: EventNumber) -> Vec<Row> {
    let Some(activity) = run.activities.get(&scheduled).filter(|activity| !activity.closing) else {
        return Vec::new();
    };
    let key = task_key(run, &activity.spec.queue, WorkKind::Activity, scheduled);
    let phase = activity_phase(run, activity);
    let mut rows = vec![Row::Task(TaskRow { key, workflow: run.workflow.workflow.clone(), phase })];
    rows.extend(due_row(run, &TimerKey::Activity(scheduled)));
    rows.extend(wait_row(run, &WaitKey::Activity(scheduled)));
    rows
}

fn activity_phase(run: &Run, activity: &Activity) -> TaskPhase {
    match activity.phase {
        Phase::Started { detached: false, .. } => TaskPhase::Started,
        Phase::Ready { .. } if !run.paused => TaskPhase::Ready,
        Phase::Started { .. } | Phase::Ready { .. } | Phase::Backoff { .. } => TaskPhase::Held,
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
