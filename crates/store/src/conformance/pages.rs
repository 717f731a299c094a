//! Checks of paging and order: every paged read is walked in pages of two and must return each row
//! once, in key order.

use abide_core::{ids::RunId, time::Timestamp};
use bytes::Bytes;

use crate::{
    RunFilter, Store, WaitFilter, WaitPosition, WorkflowRuns, Write,
    conformance::{
        Check, checks, commit, pages_of_two, read,
        samples::{
            due_row, everything_of, log_row, outbox_row, run, run_row, shard, snapshot_row,
            task_key, task_row, time, wait_row,
        },
    },
    rows::{
        DueRow, ListLimit, Loaded, LogLimit, LogRow, OutboxRow, RunKey, RunRow, SnapshotRow, Swept,
        TaskKey, TaskRow, WorkKind,
    },
};

pub(super) const CHECKS: &[Check] = checks![
    log,
    a_page_of_a_log_ends_with_the_row_that_fills_it,
    a_load_begins_after_the_snapshot,
    a_load_says_whether_the_row_is_outdated,
    a_load_sees_one_moment,
    runs_of_a_workflow,
    tasks,
    due,
    due_not_later_than_asked,
    waits,
    outbox,
    runs,
    stranded,
    a_page_of_none_is_empty,
    bounds_may_be_extreme,
];

fn log(store: &dyn Store) {
    let rows: Vec<_> = (1..=5).map(|sequence| log_row(run(1), sequence)).collect();
    commit(store, shard(1), rows.iter().rev().cloned().map(Write::AppendLog).collect());
    commit(store, shard(1), vec![Write::AppendLog(log_row(run(2), 1))]);
    let all = pages_of_two(|last: Option<&LogRow>| {
        let after = last.map_or(0, |row| row.sequence);
        read(store.log(shard(1), run(1), after, LogLimit::rows(2)))
    });
    assert_eq!(all, rows);
}

fn a_page_of_a_log_ends_with_the_row_that_fills_it(store: &dyn Store) {
    let row = |sequence: u64, events: usize, notes: usize| {
        let (events, notes) = (vec![1; events].into(), vec![2; notes].into());
        LogRow { events, notes, ..log_row(run(1), sequence) }
    };
    let rows = [row(1, 10, 0), row(2, 60_000, 40_000), row(3, 0, 5), row(4, 5, 5), row(5, 1, 1)];
    commit(store, shard(1), rows.iter().cloned().map(Write::AppendLog).collect());
    let check = |after, limit, expected: &[LogRow]| {
        assert_eq!(read(store.log(shard(1), run(1), after, limit)), expected, "{limit:?}");
    };
    let limit = |rows, bytes| LogLimit { rows, bytes };
    check(0, limit(9, 10), &rows[..1]);
    check(0, limit(9, 11), &rows[..2]);
    check(0, limit(9, 100_010), &rows[..2]);
    check(0, limit(9, 100_011), &rows[..3]);
    check(1, limit(9, 0), &rows[1..2]);
    check(2, limit(2, 1_000), &rows[2..4]);
    check(2, limit(9, 1_000), &rows[2..]);
    check(0, limit(0, 1_000), &[]);
    assert!(limit(9, 10).filled_by(&rows[..1]) && limit(1, 99).filled_by(&rows[..1]));
    assert!(!limit(9, 99).filled_by(&rows[..1]));
}

fn a_load_begins_after_the_snapshot(store: &dyn Store) {
    let rows: Vec<_> = (1..=5).map(|sequence| log_row(run(1), sequence)).collect();
    commit(store, shard(1), rows.iter().cloned().map(Write::AppendLog).collect());
    commit(store, shard(1), vec![Write::AppendLog(log_row(run(2), 4))]);
    let check = |limit, sequence: Option<u64>, log: &[LogRow]| {
        let snapshot = sequence.map(|sequence| SnapshotRow { sequence, ..snapshot_row(run(1)) });
        let expected = Loaded { snapshot, log: log.to_vec(), row_outdated: false };
        assert_eq!(read(store.load(shard(1), run(1), limit)), expected, "{limit:?}");
    };
    let bytes = |bytes| LogLimit { rows: 9, bytes };
    let size = rows[0].bytes();
    check(LogLimit::rows(9), None, &rows);
    check(LogLimit::rows(2), None, &rows[..2]);
    check(bytes(size), None, &rows[..1]);
    let put = |sequence| {
        let row = SnapshotRow { sequence, ..snapshot_row(run(1)) };
        commit(store, shard(1), vec![Write::PutSnapshot(row)]);
    };
    put(2);
    check(LogLimit::rows(9), Some(2), &rows[2..]);
    check(LogLimit::rows(2), Some(2), &rows[2..4]);
    check(LogLimit::rows(0), Some(2), &[]);
    check(bytes(size + 1), Some(2), &rows[2..4]);
    check(bytes(0), Some(2), &rows[2..3]);
    put(5);
    check(LogLimit::rows(9), Some(5), &[]);
    let other = Loaded { log: vec![log_row(run(2), 4)], ..Loaded::default() };
    assert_eq!(read(store.load(shard(1), run(2), LogLimit::rows(9))), other);
    assert_eq!(read(store.load(shard(2), run(1), LogLimit::rows(9))), Loaded::default());
}

/// A row has no queue if a version wrote it that knew none.
fn a_load_says_whether_the_row_is_outdated(store: &dyn Store) {
    let old = RunRow { queue: String::new(), parent: None, ..run_row(run(1)) };
    let runs = [old, run_row(run(2))];
    for row in &runs {
        let log = Write::AppendLog(log_row(row.run, 1));
        commit(store, shard(1), vec![log, Write::PutRun(row.clone())]);
    }
    let snapshot = Write::PutSnapshot(SnapshotRow { sequence: 1, ..snapshot_row(run(1)) });
    let outdated = |number| read(store.load(shard(1), run(number), LogLimit::rows(9))).row_outdated;
    assert_eq!([outdated(1), outdated(2)], [true, false]);
    commit(store, shard(1), vec![snapshot]);
    assert_eq!([outdated(1), outdated(2)], [true, false]);
    commit(store, shard(1), vec![Write::PutRun(run_row(run(1)))]);
    assert_eq!([outdated(1), outdated(2)], [false, false]);
}

/// Loads during commits, each of which appends one row and puts the snapshot of the rows before it.
/// A load of a snapshot and a later log would find more than one row.
fn a_load_sees_one_moment(store: &dyn Store) {
    let append = |sequence| {
        let snapshot = SnapshotRow { sequence: sequence - 1, ..snapshot_row(run(1)) };
        vec![Write::AppendLog(log_row(run(1), sequence)), Write::PutSnapshot(snapshot)]
    };
    commit(store, shard(1), append(1));
    std::thread::scope(|threads| {
        let writer =
            threads.spawn(|| (2..=100).for_each(|row| commit(store, shard(1), append(row))));
        while !writer.is_finished() {
            let loaded = read(store.load(shard(1), run(1), LogLimit::rows(9)));
            let next = loaded.snapshot.map(|row| log_row(run(1), row.sequence + 1));
            assert_eq!(loaded.log, Vec::from_iter(next));
        }
    });
}

fn runs_of_a_workflow(store: &dyn Store) {
    let row = |number: u64, ordinal| {
        let mut row = run_row(run(number));
        row.ordinal = ordinal;
        row
    };
    let rows = [row(1, 12), row(5, 9), row(4, 3), row(3, 2), row(2, 1)];
    let mut stranger = row(6, 7);
    stranger.workflow = "other".into();
    let mut foreigner = row(7, 8);
    foreigner.namespace = "other".into();
    let writes = rows.iter().chain([&stranger, &foreigner]).cloned().map(Write::PutRun).collect();
    commit(store, shard(1), writes);
    let all = pages_of_two(|last: Option<&RunKey>| {
        let workflow = WorkflowRuns {
            namespace: "namespace".into(),
            workflow: "workflow".into(),
            before: last.map(|row| row.ordinal),
        };
        read(store.runs_of(shard(1), workflow, 2))
    });
    assert_eq!(all, rows.each_ref().map(RunKey::of));
}

fn tasks(store: &dyn Store) {
    let key = |namespace: &str, queue: &str, kind, number, scheduled| TaskKey {
        namespace: namespace.into(),
        queue: queue.to_owned(),
        kind,
        run: run(number),
        scheduled,
    };
    let rows = [
        key("a", "", WorkKind::Activity, 9, 900),
        key("a", "q", WorkKind::Workflow, 2, 0),
        key("a", "q", WorkKind::Activity, 1, 5),
        key("a", "q", WorkKind::Activity, 1, 300),
        key("a", "q", WorkKind::Activity, 2, 1),
        key("a", "q ", WorkKind::Workflow, 1, 0),
        key("a\0", "q", WorkKind::Workflow, 1, 0),
        key("ab", "p", WorkKind::Workflow, 1, 0),
        key("ä", "p", WorkKind::Workflow, 1, 0),
    ]
    .map(task_row);
    commit(store, shard(1), rows.iter().rev().cloned().map(Write::PutTask).collect());
    let all = pages_of_two(|last: Option<&TaskRow>| {
        read(store.tasks(shard(1), last.map(|row| row.key.clone()), 2))
    });
    assert_eq!(all, rows);
}

fn due_rows() -> Vec<DueRow> {
    let row = |seconds, nanos, number, timer: &'static [u8]| {
        let mut row = due_row(run(number), time(seconds, nanos));
        row.timer = Bytes::from_static(timer);
        row
    };
    vec![
        row(-62_135_596_800, 0, 9, b"z"),
        row(-1, 999_999_999, 1, b"a"),
        row(0, 0, 1, b"a"),
        row(0, 1, 1, b"a"),
        row(1_799_999_999, 999_999_999, 3, b"a"),
        row(1_800_000_000, 0, 1, b""),
        row(1_800_000_000, 0, 1, b"\0"),
        row(1_800_000_000, 0, 1, b"a"),
        row(1_800_000_000, 0, 2, b""),
        row(1_800_000_000, 1, 1, b"a"),
        row(1_800_003_600, 0, 4, b"a"),
        row(1_802_592_000, 0, 1, b"a"),
        row(253_402_300_799, 999_999_998, 1, b"a"),
    ]
}

fn due(store: &dyn Store) {
    let rows = due_rows();
    commit(store, shard(1), rows.iter().rev().cloned().map(Write::PutDue).collect());
    let neighbours = rows.iter().step_by(3).cloned().map(Write::PutDue).collect();
    commit(store, shard(2), neighbours);
    let all = pages_of_two(|last: Option<&DueRow>| {
        let after = last.map(DueRow::key);
        read(store.due(shard(1), after, Timestamp::NEVER, 2))
    });
    assert_eq!(all, rows);
}

fn due_not_later_than_asked(store: &dyn Store) {
    let rows = due_rows();
    commit(store, shard(1), rows.iter().cloned().map(Write::PutDue).collect());
    for until in rows.iter().map(|row| row.due) {
        let expected: Vec<_> = rows.iter().filter(|row| row.due <= until).cloned().collect();
        assert_eq!(read(store.due(shard(1), None, until, 100)), expected, "until {until}");
        let after = expected.last().map(DueRow::key);
        assert!(read(store.due(shard(1), after, until, 100)).is_empty(), "after {until}");
    }
}

fn waits(store: &dyn Store) {
    let never = Timestamp::NEVER;
    let row = |until, number, wait| {
        let mut row = wait_row(run(number), wait);
        row.until = until;
        row
    };
    let rows = [
        (shard(9), row(time(-5, 5), 5, b"a")),
        (shard(3), row(time(1_800_000_000, 0), 1, b"")),
        (shard(3), row(time(1_800_000_000, 0), 1, b"\0")),
        (shard(3), row(time(1_800_000_000, 0), 1, b"b")),
        (shard(2), row(time(1_800_000_000, 0), 2, b"a")),
        (shard(4), row(time(1_800_000_000, 1), 1, b"a")),
        (shard(7), row(never, 1, b"n")),
        (shard(6), row(never, 3, b"n")),
    ];
    for (shard, row) in rows.iter().rev() {
        commit(store, *shard, vec![Write::PutWait(row.clone())]);
    }
    let all = pages_of_two(|last: Option<&(_, _)>| {
        let after = last.map(|(shard, row)| WaitPosition::of(*shard, row));
        read(store.waits(WaitFilter { after, ..WaitFilter::default() }, 2))
    });
    assert_eq!(all, rows);
}

fn outbox(store: &dyn Store) {
    let rows = [(1, 2), (1, 10), (1, 300), (2, 1), (300, 0)]
        .map(|(number, effect)| outbox_row(run(number), effect));
    commit(store, shard(1), rows.iter().rev().cloned().map(Write::PutOutbox).collect());
    let all = pages_of_two(|last: Option<&OutboxRow>| {
        read(store.outbox(shard(1), last.map(|row| (row.run, row.number)), 2))
    });
    assert_eq!(all, rows);
}

fn runs(store: &dyn Store) {
    let row = |seconds, nanos, number| {
        let mut row = run_row(run(number));
        row.started_at = time(seconds, nanos);
        row
    };
    let rows = [
        row(1_800_000_001, 0, 1),
        row(1_800_000_000, 9, 7),
        row(1_800_000_000, 0, 5),
        row(1_800_000_000, 0, 4),
        row(0, 0, 6),
        row(-7, 999_999_999, 8),
    ];
    for (number, row) in (0_u8..).zip(&rows) {
        commit(store, shard(number * 9), vec![Write::PutRun(row.clone())]);
    }
    let all = pages_of_two(|last: Option<&RunRow>| {
        let after = last.map(|row| (row.started_at, row.run));
        let filter = RunFilter { after, ..RunFilter::default() };
        read(store.runs(filter, ListLimit::rows(2))).found
    });
    assert_eq!(all, rows);
}

fn stranded(store: &dyn Store) {
    let runs = [1, 3, 4, 200, 1000].map(run);
    commit(store, shard(1), runs.iter().rev().map(|id| Write::PutRun(run_row(*id))).collect());
    commit(store, shard(2), vec![Write::PutRun(run_row(run(2)))]);
    commit(store, shard(1), vec![Write::PutTask(task_row(task_key(run(3))))]);
    let sweep = |after| read(store.stranded(shard(1), after, 2));
    let swept = |runs: &[RunId], next| {
        let (stranded, quiet) = (runs.to_vec(), Vec::new());
        Swept { stranded, quiet, next }
    };
    assert_eq!(
        sweep(None),
        swept(&runs[..1], Some(run(3))),
        "the limit counts runs examined, not runs found"
    );
    assert_eq!(sweep(Some(run(3))), swept(&runs[2..4], Some(run(200))));
    assert_eq!(sweep(Some(run(200))), swept(&runs[4..], None));
}

fn a_page_of_none_is_empty(store: &dyn Store) {
    commit(store, shard(1), everything_of(run(1)));
    let never = Timestamp::NEVER;
    assert!(read(store.log(shard(1), run(1), 0, LogLimit::rows(0))).is_empty());
    assert!(read(store.load(shard(1), run(1), LogLimit::rows(0))).log.is_empty());
    assert!(read(store.tasks(shard(1), None, 0)).is_empty());
    assert!(read(store.due(shard(1), None, never, 0)).is_empty());
    assert!(read(store.waits(WaitFilter::default(), 0)).is_empty());
    assert!(read(store.outbox(shard(1), None, 0)).is_empty());
    assert!(read(store.runs(RunFilter::default(), ListLimit::rows(0))).found.is_empty());
    assert_eq!(read(store.stranded(shard(1), None, 0)), Swept::default());
}

fn bounds_may_be_extreme(store: &dyn Store) {
    commit(store, shard(1), everything_of(run(1)));
    assert_eq!(read(store.log(shard(1), run(1), 0, LogLimit::rows(usize::MAX))).len(), 1);
    assert!(read(store.log(shard(1), run(1), u64::MAX, LogLimit::rows(usize::MAX))).is_empty());
    assert!(read(store.load(shard(1), run(1), LogLimit::rows(usize::MAX))).snapshot.is_some());
    assert!(read(store.outbox(shard(1), Some((run(1), u64::MAX)), usize::MAX)).is_empty());
    assert_eq!(read(store.inbox(shard(1), run(1), u64::MAX)), None);
    let workflow = WorkflowRuns {
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        before: Some(u64::MAX),
    };
    assert_eq!(read(store.runs_of(shard(1), workflow, usize::MAX)).len(), 1);
}
