//! Checks of the commit itself: atomic, in order, at the right epoch.

use abide_core::time::Timestamp;

use crate::{
    Batch, CommitError, Store, WaitFilter, Write,
    conformance::{
        Check, checks, commit, read,
        samples::{everything_of, inbox_row, log_row, outbox_row, run, run_row, shard, time},
        snapshot_of, stored, try_commit,
    },
    rows::{LogLimit, RunRow, ShardRow},
};

pub(super) const CHECKS: &[Check] = checks![
    an_empty_store_answers_nothing,
    an_empty_batch_is_committed,
    a_refused_batch_leaves_no_trace,
    a_log_row_is_refused_twice_in_one_batch,
    a_run_cannot_begin_under_the_id_of_another,
    a_deleted_run_may_be_logged_again,
    writes_of_a_batch_keep_their_order,
    batches_keep_the_order_of_calls,
    a_claim_sets_epoch_and_owner,
    a_claim_must_raise_the_epoch,
    a_stale_batch_is_refused,
    a_refused_claim_changes_nothing,
    a_refused_batch_spares_its_neighbours,
    shards_are_apart,
];

fn an_empty_store_answers_nothing(store: &dyn Store) {
    let unclaimed = ShardRow { shard: shard(3), epoch: 0, owner: String::new() };
    assert_eq!(read(store.shard(shard(3))), unclaimed);
    assert_eq!(stored(store, shard(3), &run_row(run(1))), None);
    assert_eq!(snapshot_of(store, shard(3), run(1)), None);
    assert_eq!(read(store.inbox(shard(3), run(1), 1)), None);
    assert!(read(store.log(shard(3), run(1), 0, LogLimit::rows(10))).is_empty());
    assert!(read(store.registry(String::new())).is_empty());
}

fn an_empty_batch_is_committed(store: &dyn Store) {
    commit(store, shard(0), Vec::new());
    let stale = try_commit(store, shard(0), 1, Vec::new());
    assert_eq!(stale, Err(CommitError::Stale { shard: shard(0), stored: 0, batch: 1 }));
}

fn a_refused_batch_leaves_no_trace(store: &dyn Store) {
    commit(store, shard(1), vec![Write::AppendLog(log_row(run(9), 1))]);
    let mut writes = everything_of(run(1));
    writes.push(Write::AppendLog(log_row(run(9), 1)));
    let refused = try_commit(store, shard(1), 0, writes);
    assert!(matches!(refused, Err(CommitError::Refused(_))), "{refused:?}");
    assert!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))).is_empty());
    assert_eq!(stored(store, shard(1), &run_row(run(1))), None);
    assert_eq!(snapshot_of(store, shard(1), run(1)), None);
    assert!(read(store.tasks(shard(1), None, 10)).is_empty());
    assert!(read(store.due(shard(1), None, Timestamp::NEVER, 10)).is_empty());
    assert!(read(store.waits(WaitFilter::default(), 10)).is_empty());
    assert!(read(store.outbox(shard(1), None, 10)).is_empty());
    assert_eq!(read(store.inbox(shard(1), run(1), 1)), None);
}

fn a_log_row_is_refused_twice_in_one_batch(store: &dyn Store) {
    let row = || Write::AppendLog(log_row(run(1), 1));
    let refused = try_commit(store, shard(1), 0, vec![row(), row()]);
    assert!(matches!(refused, Err(CommitError::Refused(_))), "{refused:?}");
    assert!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))).is_empty());
    commit(store, shard(1), vec![row()]);
}

/// The existing run stays intact, although all rows except the first log row would be replaced by
/// writes of the same key.
fn a_run_cannot_begin_under_the_id_of_another(store: &dyn Store) {
    commit(store, shard(1), everything_of(run(1)));
    let rows = read(store.log(shard(1), run(1), 0, LogLimit::rows(10)));
    let intruder = RunRow { workflow: "intruder".into(), ordinal: 1, ..run_row(run(1)) };
    let writes = vec![
        Write::PutRun(intruder),
        Write::DeleteOutbox { run: run(1), number: 1 },
        Write::AppendLog(log_row(run(1), 1)),
    ];
    let refused = try_commit(store, shard(1), 0, writes);
    assert_eq!(refused, Err(CommitError::log_row_exists(run(1), 1)));
    assert_eq!(stored(store, shard(1), &run_row(run(1))), Some(run_row(run(1))));
    assert_eq!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))), rows);
    assert_eq!(read(store.outbox(shard(1), None, 10)).len(), 1);
}

fn a_deleted_run_may_be_logged_again(store: &dyn Store) {
    let row = || Write::AppendLog(log_row(run(1), 1));
    commit(store, shard(1), vec![row()]);
    commit(store, shard(1), vec![Write::DeleteRun(run(1)), row()]);
    commit(store, shard(1), vec![Write::DeleteRun(run(1)), row(), Write::DeleteRun(run(1)), row()]);
    assert_eq!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))), [log_row(run(1), 1)]);
}

fn writes_of_a_batch_keep_their_order(store: &dyn Store) {
    let late = inbox_row(run(1), 2, time(20, 0));
    let writes = vec![
        Write::PutOutbox(outbox_row(run(1), 1)),
        Write::DeleteOutbox { run: run(1), number: 1 },
        Write::DeleteOutbox { run: run(1), number: 2 },
        Write::PutOutbox(outbox_row(run(1), 2)),
        Write::PutInbox(inbox_row(run(1), 1, time(10, 0))),
        Write::DeleteInboxBefore(time(15, 0)),
        Write::PutInbox(late.clone()),
    ];
    commit(store, shard(1), writes);
    assert_eq!(read(store.outbox(shard(1), None, 10)), [outbox_row(run(1), 2)]);
    assert_eq!(read(store.inbox(shard(1), run(1), 1)), None);
    assert_eq!(read(store.inbox(shard(1), run(1), 2)), Some(late));
}

/// Creates all futures before it awaits the first, and awaits them in reverse order.
fn batches_keep_the_order_of_calls(store: &dyn Store) {
    let put = |ordinal| {
        let mut row = run_row(run(1));
        row.ordinal = ordinal;
        let writes = vec![Write::PutRun(row), Write::AppendLog(log_row(run(1), ordinal))];
        store.commit(Batch { shard: shard(1), epoch: 0, writes })
    };
    let pending: Vec<_> = (1..=50).map(put).collect();
    for commit in pending.into_iter().rev() {
        assert_eq!(pollster::block_on(commit), Ok(()));
    }
    assert_eq!(stored(store, shard(1), &run_row(run(1))).map(|row| row.ordinal), Some(50));
    assert_eq!(read(store.log(shard(1), run(1), 0, LogLimit::rows(100))).len(), 50);
}

fn claim(store: &dyn Store, epoch: u64, claimed: u64, owner: &str) -> Result<(), CommitError> {
    let writes = vec![Write::Claim { epoch: claimed, owner: owner.to_owned() }];
    try_commit(store, shard(5), epoch, writes)
}

fn a_claim_sets_epoch_and_owner(store: &dyn Store) {
    assert_eq!(claim(store, 0, 4, "node-ä"), Ok(()));
    let expected = ShardRow { shard: shard(5), epoch: 4, owner: "node-ä".to_owned() };
    assert_eq!(read(store.shard(shard(5))), expected);
    assert_eq!(claim(store, 4, 5, "other"), Ok(()));
    assert_eq!(read(store.shard(shard(5))).owner, "other");
    assert_eq!(read(store.shard(shard(6))).epoch, 0);
}

fn a_claim_must_raise_the_epoch(store: &dyn Store) {
    assert_eq!(claim(store, 0, 4, "a"), Ok(()));
    for claimed in [0, 3, 4] {
        let refused = claim(store, 4, claimed, "b");
        assert!(matches!(refused, Err(CommitError::Refused(_))), "{claimed}: {refused:?}");
    }
    assert_eq!(read(store.shard(shard(5))).owner, "a");
}

fn a_stale_batch_is_refused(store: &dyn Store) {
    assert_eq!(claim(store, 0, 4, "a"), Ok(()));
    for epoch in [0, 3, 5] {
        let stale = try_commit(store, shard(5), epoch, everything_of(run(1)));
        let expected = CommitError::Stale { shard: shard(5), stored: 4, batch: epoch };
        assert_eq!(stale, Err(expected));
    }
    assert_eq!(stored(store, shard(5), &run_row(run(1))), None);
    assert_eq!(try_commit(store, shard(5), 4, everything_of(run(1))), Ok(()));
}

fn a_refused_claim_changes_nothing(store: &dyn Store) {
    commit(store, shard(5), vec![Write::AppendLog(log_row(run(1), 1))]);
    let writes = vec![
        Write::Claim { epoch: 9, owner: "a".to_owned() },
        Write::AppendLog(log_row(run(1), 1)),
    ];
    let refused = try_commit(store, shard(5), 0, writes);
    assert!(matches!(refused, Err(CommitError::Refused(_))), "{refused:?}");
    assert_eq!(read(store.shard(shard(5))).epoch, 0);
    commit(store, shard(5), vec![Write::AppendLog(log_row(run(1), 2))]);
}

/// Commits refused, stale and valid batches at the same time.
fn a_refused_batch_spares_its_neighbours(store: &dyn Store) {
    let send = |number: u8, epoch| {
        let row = log_row(run(u64::from(number)), 1);
        let mut writes = vec![Write::AppendLog(row.clone())];
        if number % 5 == 1 {
            writes.push(Write::AppendLog(row));
        }
        store.commit(Batch { shard: shard(number), epoch, writes })
    };
    let pending: Vec<_> = (0..30).map(|number| send(number, u64::from(number % 7 == 2))).collect();
    for (number, commit) in (0_u8..).zip(pending) {
        let answer = pollster::block_on(commit);
        let rows =
            read(store.log(shard(number), run(u64::from(number)), 0, LogLimit::rows(10))).len();
        match (number % 7 == 2, number % 5 == 1) {
            (true, _) => assert!(matches!(answer, Err(CommitError::Stale { .. })), "{answer:?}"),
            (_, true) => assert!(matches!(answer, Err(CommitError::Refused(_))), "{answer:?}"),
            _ => assert_eq!(answer, Ok(())),
        }
        assert_eq!(rows, usize::from(answer.is_ok()));
    }
}

fn shards_are_apart(store: &dyn Store) {
    commit(store, shard(1), everything_of(run(1)));
    let cleared = vec![Write::DeleteRun(run(1)), Write::DeleteInboxBefore(time(2_000_000_000, 0))];
    commit(store, shard(2), cleared);
    assert_eq!(stored(store, shard(2), &run_row(run(1))), None);
    assert!(read(store.log(shard(2), run(1), 0, LogLimit::rows(10))).is_empty());
    assert!(read(store.tasks(shard(2), None, 10)).is_empty());
    assert!(read(store.outbox(shard(2), None, 10)).is_empty());
    assert!(read(store.due(shard(2), None, time(2_000_000_000, 0), 10)).is_empty());
    assert_eq!(stored(store, shard(1), &run_row(run(1))), Some(run_row(run(1))));
    assert_eq!(read(store.log(shard(1), run(1), 0, LogLimit::rows(10))).len(), 1);
    assert!(read(store.inbox(shard(1), run(1), 1)).is_some());
}
