//! How much work it is to find the runs that nothing would resume.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use abide_core::time::Timestamp;
use abide_store::rows::DueRow;
use bytes::Bytes;

use super::*;

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

fn tables() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("../../migrations/0001_tables.sql")).unwrap();
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
    assert_eq!(stranded(&connection, shard(1), None, 10).unwrap(), [open_run(1)]);
    let operations = OPERATIONS.load(Relaxed);
    assert!(operations < 2_000, "{operations} operations");
}

#[test]
fn a_stranded_run_is_found_behind_many_that_are_due() {
    let connection = tables();
    let many = u128::try_from(CANDIDATES).unwrap() + 10;
    for number in 1..=many + 3 {
        put(&connection, shard(1), &open_run(number)).unwrap();
    }
    for number in 1..=many {
        due::put(&connection, shard(1), &due_in(u64::try_from(number).unwrap(), number)).unwrap();
    }
    let page = |after, rows| stranded(&connection, shard(1), after, rows).unwrap();
    let left = [1, 2, 3].map(|number| open_run(many + number));
    assert_eq!(page(None, 10), left);
    assert_eq!(page(None, 2), left[..2]);
    assert_eq!(page(Some(left[1].run), 2), left[2..]);
}
