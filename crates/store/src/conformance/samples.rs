//! Sample rows: every field has a value, and fields of the same type differ, so that swapped
//! columns are detected.

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use bytes::Bytes;

use crate::{
    Write,
    rows::{
        AttributeRow, DueRow, InboxRow, LogRow, OutboxRow, RegistryRow, RunParent, RunRow,
        RunStatus, SnapshotRow, TaskKey, TaskPhase, TaskRow, WaitKind, WaitRow, WorkKind,
    },
};

pub(super) fn shard(number: u8) -> ShardId {
    match ShardId::new(number) {
        Some(shard) => shard,
        None => panic!("there is no shard {number}"),
    }
}

pub(super) fn time(seconds: i64, nanos: u32) -> Timestamp {
    match Timestamp::new(seconds, nanos) {
        Some(time) => time,
        None => panic!("{seconds} s and {nanos} ns are out of range"),
    }
}

/// Runs created at the same moment, ordered by `number`.
pub(super) fn run(number: u64) -> RunId {
    RunId::from_parts(time(1_800_000_000, 0), u128::from(number))
}

pub(super) fn log_row(run: RunId, sequence: u64) -> LogRow {
    LogRow {
        run,
        sequence,
        first_event: sequence * 3 + 1,
        events: Bytes::from(format!("events {sequence}")),
        notes: Bytes::from(format!("notes {sequence}")),
    }
}

pub(super) fn snapshot_row(run: RunId) -> SnapshotRow {
    SnapshotRow { run, sequence: 7, state: Bytes::from_static(b"state") }
}

pub(super) fn run_row(run: RunId) -> RunRow {
    RunRow {
        run,
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        ordinal: 1,
        workflow_type: "Type".to_owned(),
        status: RunStatus::Running,
        start_key: Some("key".to_owned()),
        started_at: time(1_800_000_000, 1),
        closed_at: None,
        details: Bytes::from_static(b"details"),
        queue: "queue".to_owned(),
        parent: Some(RunParent { workflow: "parent".into(), run: RunId::MIN }),
    }
}

pub(super) fn attribute_row(run: RunId, name: &str, value: &[u8]) -> AttributeRow {
    AttributeRow {
        run,
        namespace: "namespace".into(),
        name: name.to_owned(),
        value: Bytes::copy_from_slice(value),
        started_at: time(1_800_000_000, 1),
    }
}

pub(super) fn task_key(run: RunId) -> TaskKey {
    TaskKey {
        namespace: "namespace".into(),
        queue: "queue".to_owned(),
        kind: WorkKind::Activity,
        run,
        scheduled: 5,
    }
}

pub(super) fn task_row(key: TaskKey) -> TaskRow {
    TaskRow { key, workflow: "workflow".into(), phase: TaskPhase::Ready }
}

pub(super) fn due_row(run: RunId, due: Timestamp) -> DueRow {
    DueRow {
        due,
        run,
        timer: Bytes::from_static(b"timer"),
        workflow: "workflow".into(),
        namespace: "namespace".into(),
    }
}

pub(super) fn wait_row(run: RunId, wait: &'static [u8]) -> WaitRow {
    WaitRow {
        run,
        wait: Bytes::from_static(wait),
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        workflow_type: "Type".to_owned(),
        kind: WaitKind::Signal,
        name: "name".to_owned(),
        since: time(1_800_000_000, 2),
        until: time(1_800_000_100, 3),
        timer: Some("timer".into()),
        details: Bytes::from_static(b"details"),
    }
}

pub(super) fn outbox_row(run: RunId, number: u64) -> OutboxRow {
    OutboxRow {
        run,
        number,
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        effect: Bytes::from(format!("effect {number}")),
    }
}

pub(super) fn inbox_row(source: RunId, number: u64, at: Timestamp) -> InboxRow {
    InboxRow { source, number, at, outcome: Bytes::from(format!("outcome {number}")) }
}

pub(super) fn registry_row(name: &str, version: u64) -> RegistryRow {
    RegistryRow { name: name.to_owned(), version, value: Bytes::from(format!("value {version}")) }
}

/// One row of each table that belongs to a run.
pub(super) fn everything_of(run: RunId) -> Vec<Write> {
    vec![
        Write::AppendLog(log_row(run, 1)),
        Write::PutSnapshot(snapshot_row(run)),
        Write::PutRun(run_row(run)),
        Write::PutTask(task_row(task_key(run))),
        Write::PutDue(due_row(run, time(1_800_000_050, 0))),
        Write::PutWait(wait_row(run, b"wait")),
        Write::PutAttribute(attribute_row(run, "name", b"value")),
        Write::PutOutbox(outbox_row(run, 1)),
        Write::PutInbox(inbox_row(run, 1, time(1_800_000_000, 0))),
    ]
}
