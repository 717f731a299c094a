//! How much work it takes to find the runs that nothing would resume.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use abide_core::time::Timestamp;
use abide_store::rows::{DueRow, WaitKind, WaitRow};
use bytes::Bytes;

use super::*;
use crate::open::MIGRATIONS;

fn run(number: u128) -> RunId {
    RunId::from_parts(Timestamp::EPOCH, number)
}

fn shard(number: u8) -> ShardId {
    ShardId::new(number).unwrap()
}

fn open_run(number: u128) -> RunRow {
    RunRow {
        run: run(number),
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        ordinal: 1,
        workflow_type: "Type".to_owned(),
        status: RunStatus::Running,
        start_key: None,
        started_at: Timestamp::EPOCH,
        closed_at: None,
        details: Bytes::new(),
        queue: String::new(),
        parent: None,
    }
}

fn due_in(minutes: u64, number: u128) -> DueRow {
    DueRow {
        due: Timestamp::from_unix_millis(minutes * 60_000),
        run: run(number),
        timer: Bytes::from_static(b"timer"),
        workflow: "workflow".into(),
        namespace: "namespace".into(),
    }
}

fn wait_until(until: Timestamp, number: u128) -> WaitRow {
    WaitRow {
        run: run(number),
        wait: Bytes::from_static(b"wait"),
        namespace: "namespace".into(),
        workflow: "workflow".into(),
        workflow_type: "Type".to_owned(),
        kind: WaitKind::Timer,
        name: "timer".to_owned(),
        since: Timestamp::EPOCH,
        until,
        timer: Some("timer".into()),
        details: Bytes::new(),
    }
}

fn tables() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    MIGRATIONS.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
    connection.execute_batch("BEGIN").unwrap();
    connection
}

#[test]
fn entries_of_other_shards_are_not_read() {
    static OPERATIONS: AtomicUsize = AtomicUsize::new(0);
    let mut connection = tables();
    put(&connection, shard(1), &open_run(1)).unwrap();
    for number in 0..20_000 {
        due::put(&connection, shard(2), &due_in(number % 1200, u128::from(number))).unwrap();
    }
    let count = || {
        OPERATIONS.fetch_add(10, Relaxed);
        false
    };
    connection.progress_handler(10, Some(count)).unwrap();
    assert_eq!(stranded(&connection, shard(1), None, 10).unwrap().stranded, [open_run(1).run]);
    let operations = OPERATIONS.load(Relaxed);
    assert!(operations < 2_000, "{operations} operations");
}

/// Each wait leads to its entry: no full scan of the index for each of them.
#[test]
fn runs_that_wait_for_a_time_cost_a_look_each() {
    static OPERATIONS: AtomicUsize = AtomicUsize::new(0);
    let mut connection = tables();
    for number in 1..=1000 {
        put(&connection, shard(1), &open_run(number)).unwrap();
        let due = due_in(u64::try_from(number).unwrap(), number);
        waits::put(&connection, shard(1), &wait_until(due.due, number)).unwrap();
        if number != 500 {
            due::put(&connection, shard(1), &due).unwrap();
        }
    }
    let count = || {
        OPERATIONS.fetch_add(10, Relaxed);
        false
    };
    connection.progress_handler(10, Some(count)).unwrap();
    let swept = stranded(&connection, shard(1), None, 2000).unwrap();
    assert_eq!((swept.stranded, swept.next), (vec![open_run(500).run], None));
    assert_eq!(swept.quiet.len(), 999);
    let operations = OPERATIONS.load(Relaxed);
    assert!(operations < 100_000, "{operations} operations");
}
