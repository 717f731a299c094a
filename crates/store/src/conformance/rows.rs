//! One check per table: a put row is read back with every field, a put replaces, a delete removes,
//! and deleting a missing row has no effect.

use abide_core::time::Timestamp;
use bytes::Bytes;

use crate::{
    Store, WaitFilter, Write,
    conformance::{
        Check, checks, commit, read,
        samples::{
            due_row, everything_of, inbox_row, log_row, outbox_row, registry_row, run, run_row,
            shard, snapshot_row, task_key, task_row, time, wait_row,
        },
        snapshot_of, stored,
    },
    rows::{ListLimit, LogLimit, RegistryRow, RunStatus, TaskPhase, WaitKind, WaitRow, WorkKind},
};

pub(super) const CHECKS: &[Check] = checks![
    log,
    snapshots,
    runs,
    deleted_runs,
    tasks,
    due,
    waits,
    outbox,
    inbox,
    old_answers,
    registry,
    stranded,
];

fn log(store: &dyn Store) {
    let mut bare = log_row(run(1), 2);
    (bare.events, bare.notes) = (Bytes::new(), Bytes::new());
    let writes = vec![Write::AppendLog(log_row(run(1), 1)), Write::AppendLog(bare.clone())];
    commit(store, shard(1), writes);
    assert_eq!(
        read(store.log(shard(1), run(1), 0, LogLimit::rows(10))),
        [log_row(run(1), 1), bare]
    );
}

fn snapshots(store: &dyn Store) {
    let mut row = snapshot_row(run(1));
    commit(store, shard(1), vec![Write::PutSnapshot(row.clone())]);
    assert_eq!(snapshot_of(store, shard(1), run(1)), Some(row.clone()));
    (row.sequence, row.state) = (8, Bytes::from_static(b"newer"));
    commit(store, shard(1), vec![Write::PutSnapshot(row.clone())]);
    assert_eq!(snapshot_of(store, shard(1), run(1)), Some(row));
}

fn runs(store: &dyn Store) {
    let mut row = run_row(run(1));
    let put = |row: &_| commit(store, shard(1), vec![Write::PutRun(Clone::clone(row))]);
    put(&row);
    assert_eq!(stored(store, shard(1), &row), Some(row.clone()));
    for status in RunStatus::ALL {
        row.status = status;
        row.closed_at = (!status.is_open()).then(|| time(1_800_000_001, 7));
        put(&row);
        assert_eq!(stored(store, shard(1), &row), Some(row.clone()));
    }
    row.namespace = "other namespace".into();
    row.workflow = "other workflow".into();
    row.workflow_type = "Other".to_owned();
    (row.ordinal, row.start_key, row.details) = (2, None, Bytes::new());
    row.started_at = time(1_800_000_002, 0);
    put(&row);
    assert_eq!(stored(store, shard(1), &row), Some(row.clone()));
    assert_eq!(read(store.runs(Default::default(), ListLimit::rows(10))).found, [row]);
}

fn deleted_runs(store: &dyn Store) {
    commit(store, shard(1), everything_of(run(1)));
    commit(store, shard(1), everything_of(run(2)));
    commit(store, shard(1), vec![Write::DeleteRun(run(1)), Write::DeleteRun(run(3))]);
    assert_eq!(stored(store, shard(1), &run_row(run(1))), None);
    assert_eq!(snapshot_of(store, shard(1), run(1)), None);
    assert!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))).is_empty());
    assert_eq!(read(store.tasks(shard(1), None, 10)).len(), 2);
    assert_eq!(read(store.outbox(shard(1), None, 10)).len(), 2);
    assert_eq!(stored(store, shard(1), &run_row(run(2))), Some(run_row(run(2))));
    assert_eq!(read(store.log(shard(1), run(2), 0, LogLimit::rows(10))).len(), 1);
    assert_eq!(read(store.runs(Default::default(), ListLimit::rows(10))).found, [run_row(run(2))]);
}

fn tasks(store: &dyn Store) {
    let mut workflow = task_row(task_key(run(1)));
    (workflow.key.kind, workflow.key.scheduled) = (WorkKind::Workflow, 0);
    let mut activity = task_row(task_key(run(1)));
    for phase in [TaskPhase::Ready, TaskPhase::Started, TaskPhase::Held] {
        (workflow.phase, activity.phase) = (phase, phase);
        let writes = vec![Write::PutTask(activity.clone()), Write::PutTask(workflow.clone())];
        commit(store, shard(1), writes);
        let expected = [workflow.clone(), activity.clone()];
        assert_eq!(read(store.tasks(shard(1), None, 10)), expected);
    }
    let writes = vec![Write::DeleteTask(workflow.key), Write::DeleteTask(task_key(run(2)))];
    commit(store, shard(1), writes);
    assert_eq!(read(store.tasks(shard(1), None, 10)), [activity]);
}

fn due(store: &dyn Store) {
    let (early, late) = (due_row(run(1), time(100, 0)), due_row(run(1), time(200, 0)));
    let put = |row: &_| Write::PutDue(Clone::clone(row));
    commit(store, shard(1), vec![put(&late), put(&early), put(&late)]);
    let all = || read(store.due(shard(1), None, time(1_000, 0), 10));
    assert_eq!(all(), [early.clone(), late.clone()]);
    let mut elsewhere = late.key();
    elsewhere.due = time(200, 1);
    commit(store, shard(1), vec![Write::DeleteDue(early.key()), Write::DeleteDue(elsewhere)]);
    assert_eq!(all(), [late]);
}

fn waits(store: &dyn Store) {
    let mut row = wait_row(run(1), b"wait");
    for kind in WaitKind::ALL {
        row.kind = kind;
        row.name = format!("{kind:?}");
        row.until = row.until.saturating_add(std::time::Duration::from_nanos(1));
        commit(store, shard(1), vec![Write::PutWait(row.clone())]);
        assert_eq!(read(store.waits(WaitFilter::default(), 10)), [(shard(1), row.clone())]);
    }
    let delete = |wait| Write::DeleteWait { run: run(1), wait: Bytes::from_static(wait) };
    commit(store, shard(1), vec![delete(b"other"), Write::PutWait(wait_row(run(2), b"wait"))]);
    commit(store, shard(1), vec![delete(b"wait")]);
    let left = [(shard(1), wait_row(run(2), b"wait"))];
    assert_eq!(read(store.waits(WaitFilter::default(), 10)), left);
}

fn outbox(store: &dyn Store) {
    let mut row = outbox_row(run(1), 1);
    commit(store, shard(1), vec![Write::PutOutbox(row.clone())]);
    row.effect = Bytes::from_static(b"replaced");
    commit(store, shard(1), vec![Write::PutOutbox(row.clone())]);
    assert_eq!(read(store.outbox(shard(1), None, 10)), [row]);
    let delete = |number| Write::DeleteOutbox { run: run(1), number };
    commit(store, shard(1), vec![delete(1), delete(2)]);
    assert!(read(store.outbox(shard(1), None, 10)).is_empty());
}

fn inbox(store: &dyn Store) {
    let mut row = inbox_row(run(1), 1, time(5, 6));
    commit(store, shard(1), vec![Write::PutInbox(row.clone())]);
    assert_eq!(read(store.inbox(shard(1), run(1), 1)), Some(row.clone()));
    (row.at, row.outcome) = (time(7, 8), Bytes::from_static(b"replaced"));
    commit(store, shard(1), vec![Write::PutInbox(row.clone())]);
    assert_eq!(read(store.inbox(shard(1), run(1), 1)), Some(row));
    let delete = |number| Write::DeleteInbox { source: run(1), number };
    commit(store, shard(1), vec![delete(1), delete(2)]);
    assert_eq!(read(store.inbox(shard(1), run(1), 1)), None);
}

fn old_answers(store: &dyn Store) {
    let at = [time(10, 0), time(10, 1), time(10, 2)];
    let rows = || (1..).zip(at).map(|(number, at)| inbox_row(run(1), number, at));
    commit(store, shard(1), rows().map(Write::PutInbox).collect());
    commit(store, shard(2), rows().map(Write::PutInbox).collect());
    commit(store, shard(1), vec![Write::DeleteInboxBefore(time(10, 1))]);
    let left = |of| [1, 2, 3].map(|number| read(store.inbox(of, run(1), number)).is_some());
    assert_eq!(left(shard(1)), [false, true, true]);
    assert_eq!(left(shard(2)), [true, true, true]);
}

fn registry(store: &dyn Store) {
    let put =
        |name, version| match pollster::block_on(store.put_registry(registry_row(name, version))) {
            Ok(written) => written,
            Err(error) => panic!("put_registry failed: {error}"),
        };
    assert!(!put("namespace/b", 2), "a first version is 1");
    assert!(!put("namespace/b", 0), "a first version is 1");
    assert!(put("namespace/b", 1));
    assert!(!put("namespace/b", 1), "the version must grow");
    assert!(!put("namespace/b", 3), "the version must grow by one");
    assert!(put("namespace/b", 2));
    assert!(put("namespace/a", 1) && put("namespac%", 1) && put("node/1", 1) && put("nodes", 1));
    let names = |prefix: &str| -> Vec<RegistryRow> { read(store.registry(prefix.to_owned())) };
    let expected = [registry_row("namespace/a", 1), registry_row("namespace/b", 2)];
    assert_eq!(names("namespace/"), expected);
    assert_eq!(names("node"), [registry_row("node/1", 1), registry_row("nodes", 1)]);
    assert_eq!(names("").len(), 5);
    assert!(names("namespace/c").is_empty());
}

/// Open runs, all but one of which have something that resumes them, and a closed run. A wait with
/// a deadline resumes nothing by itself: its entry in the due index does.
fn stranded(store: &dyn Store) {
    let mut closed = run_row(run(7));
    closed.status = RunStatus::Failed;
    let until = time(1_900_000_000, 0);
    let wait = |number, until| Write::PutWait(WaitRow { until, ..wait_row(run(number), b"wait") });
    let mut writes: Vec<_> = (1..=6).map(|number| Write::PutRun(run_row(run(number)))).collect();
    writes.extend([
        Write::PutRun(closed),
        Write::PutTask(task_row(task_key(run(1)))),
        Write::PutDue(due_row(run(2), until)),
        wait(3, Timestamp::NEVER),
        Write::PutOutbox(outbox_row(run(4), 1)),
        wait(6, until),
        Write::PutDue(due_row(run(6), until)),
    ]);
    commit(store, shard(1), writes);
    let stranded = || read(store.stranded(shard(1), None, 10)).stranded;
    let quiet = || read(store.stranded(shard(1), None, 10)).quiet;
    assert_eq!(stranded(), [run(5)]);
    assert_eq!(quiet(), [run(2), run(3), run(6)], "they have neither task nor effect");

    // An entry with another due time does not belong to the wait.
    commit(store, shard(1), vec![wait(6, time(1_900_000_001, 0))]);
    assert_eq!(stranded(), [run(5), run(6)]);
    commit(store, shard(1), vec![Write::PutTask(task_row(task_key(run(6))))]);
    assert_eq!(stranded(), [run(5)], "a task resumes its run");
    assert_eq!(quiet(), [run(2), run(3)]);

    let gone = vec![
        Write::DeleteTask(task_key(run(1))),
        Write::DeleteDue(due_row(run(2), until).key()),
        Write::DeleteWait { run: run(3), wait: Bytes::from_static(b"wait") },
        Write::DeleteOutbox { run: run(4), number: 1 },
        Write::DeleteTask(task_key(run(6))),
    ];
    commit(store, shard(1), gone);
    commit(store, shard(2), vec![Write::PutTask(task_row(task_key(run(1))))]);
    assert_eq!(stranded().len(), 6, "rows of other shards do not count");
}
