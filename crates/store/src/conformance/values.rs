//! Checks that values come back exactly as written: times to the nanosecond over the full range,
//! bytes of any value and length, text in any script, large numbers.

use abide_core::time::Timestamp;
use bytes::Bytes;

use crate::{
    Store, WaitFilter, WorkflowRuns, Write,
    conformance::{
        Check, checks, commit, read,
        samples::{
            due_row, inbox_row, log_row, outbox_row, registry_row, run, run_row, shard,
            snapshot_row, task_key, task_row, time, wait_row,
        },
        snapshot_of, stored,
    },
    rows::{LogLimit, RunKey},
};

pub(super) const CHECKS: &[Check] =
    checks![times_are_exact, keys_are_compared_by_bytes, big_blobs, any_text, large_numbers];

fn times() -> [Timestamp; 9] {
    [
        time(-62_135_596_800, 0),
        time(-1_000_000_000, 123_456_789),
        time(-1, 999_999_999),
        Timestamp::EPOCH,
        time(0, 1),
        time(1_800_000_000, 123_456_789),
        time(10_413_792_000, 987_654_321),
        time(253_402_300_799, 999_999_998),
        Timestamp::NEVER,
    ]
}

fn times_are_exact(store: &dyn Store) {
    for (number, at) in (1..).zip(times()) {
        let mut row = run_row(run(number));
        (row.started_at, row.closed_at) = (at, Some(at));
        let mut wait = wait_row(run(number), b"wait");
        (wait.since, wait.until) = (at, at);
        let inbox = inbox_row(run(number), 1, at);
        let due = due_row(run(number), at);
        let writes = vec![
            Write::PutRun(row.clone()),
            Write::PutWait(wait.clone()),
            Write::PutInbox(inbox.clone()),
            Write::PutDue(due.clone()),
        ];
        commit(store, shard(1), writes);
        assert_eq!(stored(store, shard(1), &run_row(run(number))), Some(row));
        assert_eq!(read(store.inbox(shard(1), run(number), 1)), Some(inbox));
        let of_run = WaitFilter { run: Some((shard(1), run(number))), ..WaitFilter::default() };
        assert_eq!(read(store.waits(of_run, 10)), [(shard(1), wait)]);
        let until_then = read(store.due(shard(1), None, at, 100));
        assert_eq!(until_then.last(), Some(&due));
    }
    let due: Vec<_> = read(store.due(shard(1), None, Timestamp::NEVER, 100));
    assert_eq!(due.iter().map(|row| row.due).collect::<Vec<_>>(), times());
}

/// In byte order, and all distinct.
const KEYS: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0b", b"a\x01", b"\xff"];

fn keys_are_compared_by_bytes(store: &dyn Store) {
    for key in KEYS.iter().rev() {
        let mut due = due_row(run(1), time(5, 0));
        due.timer = Bytes::from_static(key);
        commit(store, shard(1), vec![Write::PutDue(due), Write::PutWait(wait_row(run(1), key))]);
    }
    let timers = || -> Vec<_> {
        let rows = read(store.due(shard(1), None, time(5, 0), 100));
        rows.into_iter().map(|row| row.timer).collect()
    };
    assert_eq!(timers(), KEYS);
    let waits = || -> Vec<_> {
        let rows = read(store.waits(WaitFilter::default(), 100));
        rows.into_iter().map(|(_, row)| row.wait).collect()
    };
    assert_eq!(waits(), KEYS);
    let mut key = due_row(run(1), time(5, 0)).key();
    key.timer = Bytes::from_static(b"\0");
    let wait = key.timer.clone();
    let delete = vec![Write::DeleteDue(key), Write::DeleteWait { run: run(1), wait }];
    commit(store, shard(1), delete);
    assert_eq!((timers().len(), waits().len()), (KEYS.len() - 1, KEYS.len() - 1));
}

fn big_blobs(store: &dyn Store) {
    let big = Bytes::from((0_u32..1 << 18).flat_map(u32::to_be_bytes).collect::<Vec<_>>());
    let mut log = log_row(run(1), 1);
    (log.events, log.notes) = (big.clone(), big.slice(1..));
    let mut snapshot = snapshot_row(run(1));
    snapshot.state = big.clone();
    let mut row = run_row(run(1));
    row.details = big.clone();
    let mut outbox = outbox_row(run(1), 1);
    outbox.effect = big;
    let writes = vec![
        Write::AppendLog(log.clone()),
        Write::PutSnapshot(snapshot.clone()),
        Write::PutRun(row.clone()),
        Write::PutOutbox(outbox.clone()),
    ];
    commit(store, shard(1), writes);
    assert!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))) == [log], "the log differs");
    assert!(snapshot_of(store, shard(1), run(1)) == Some(snapshot), "the snapshot differs");
    assert!(stored(store, shard(1), &run_row(run(1))) == Some(row), "the run differs");
    assert!(read(store.outbox(shard(1), None, 10)) == [outbox], "the outbox differs");
}

fn any_text(store: &dyn Store) {
    let texts = ["", "ü", "日本語", "🦀 crab", "a'b\"c;--", "with\0zero", "e\u{301}", "é", "%_*?"];
    for (number, text) in (1..).zip(texts) {
        let mut row = run_row(run(number));
        (row.namespace, row.workflow) = (text.into(), text.into());
        (row.workflow_type, row.start_key) = (text.to_owned(), Some(text.to_owned()));
        let mut task = task_row(task_key(run(number)));
        (task.key.namespace, task.key.queue) = (text.into(), text.to_owned());
        let writes = vec![Write::PutRun(row.clone()), Write::PutTask(task.clone())];
        commit(store, shard(1), writes);
        let workflow = WorkflowRuns { namespace: text.into(), workflow: text.into(), before: None };
        assert_eq!(read(store.runs_of(shard(1), workflow, 10)), [RunKey::of(&row)], "{text:?}");
        assert_eq!(stored(store, shard(1), &row), Some(row), "{text:?}");
        assert!(read(store.tasks(shard(1), None, 100)).contains(&task), "{text:?}");
        let put = pollster::block_on(store.put_registry(registry_row(text, 1)));
        assert_eq!(put, Ok(true), "{text:?}");
    }
    let mut sorted = texts;
    sorted.sort_unstable();
    let queues: Vec<_> =
        read(store.tasks(shard(1), None, 100)).into_iter().map(|row| row.key.queue).collect();
    assert_eq!(queues, sorted);
    let names: Vec<_> =
        read(store.registry(String::new())).into_iter().map(|row| row.name).collect();
    assert_eq!(names, sorted);
    assert_eq!(read(store.registry("e".to_owned())).len(), 1);
}

fn large_numbers(store: &dyn Store) {
    let largest = (1 << 63) - 1;
    let mut log = log_row(run(1), 1);
    (log.sequence, log.first_event) = (largest, largest);
    let mut row = run_row(run(1));
    row.ordinal = largest;
    let outbox = outbox_row(run(1), largest);
    let writes = vec![
        Write::AppendLog(log.clone()),
        Write::PutRun(row.clone()),
        Write::PutOutbox(outbox.clone()),
    ];
    commit(store, shard(1), writes);
    assert_eq!(read(store.log(shard(1), run(1), largest - 1, LogLimit::rows(10))), [log]);
    assert_eq!(stored(store, shard(1), &run_row(run(1))), Some(row));
    assert_eq!(read(store.outbox(shard(1), None, 10)), [outbox]);
}
