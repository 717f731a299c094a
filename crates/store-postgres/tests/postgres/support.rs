//! Shared helpers: small batches, and functions to commit and read them.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Store as _, Write,
    rows::{LogLimit, LogRow},
};
use abide_store_postgres::{Options, PostgresStore};
use bytes::Bytes;

pub(crate) fn shard(number: u8) -> ShardId {
    ShardId::new(number).unwrap()
}

pub(crate) fn run(number: u128) -> RunId {
    RunId::from_parts(Timestamp::from_unix_millis(1_800_000_000_000), number)
}

pub(crate) fn log_row(run: RunId, sequence: u64) -> LogRow {
    let (events, notes) = (Bytes::from_static(b"events"), Bytes::from_static(b"notes"));
    LogRow { run, sequence, first_event: sequence, events, notes }
}

/// Appends one row to the log of the shard's only run.
pub(crate) fn batch(number: u8, epoch: u64, sequence: u64) -> Batch {
    let row = log_row(run(u128::from(number)), sequence);
    Batch { shard: shard(number), epoch, writes: vec![Write::AppendLog(row)] }
}

pub(crate) fn commit(store: &PostgresStore, batch: Batch) -> Result<(), CommitError> {
    pollster::block_on(store.commit(batch))
}

pub(crate) fn claim(
    store: &PostgresStore,
    number: u8,
    epoch: u64,
    owner: &str,
) -> Result<(), CommitError> {
    let writes = vec![Write::Claim { epoch: epoch + 1, owner: owner.to_owned() }];
    commit(store, Batch { shard: shard(number), epoch, writes })
}

/// Claims the shard as soon as the database accepts writes, and returns the new epoch.
pub(crate) fn claim_again(store: &PostgresStore, number: u8) -> u64 {
    loop {
        let stored = pollster::block_on(store.shard(shard(number)));
        if let Ok(row) = stored
            && claim(store, number, row.epoch, "the owner again").is_ok()
        {
            return row.epoch + 1;
        }
    }
}

/// Sequences in the log of the shard's only run.
pub(crate) fn sequences(store: &PostgresStore, number: u8) -> Vec<u64> {
    let rows = store.log(shard(number), run(u128::from(number)), 0, LogLimit::rows(usize::MAX));
    pollster::block_on(rows).unwrap().into_iter().map(|row| row.sequence).collect()
}

/// Default options for this address, with short timeouts.
pub(crate) fn impatient(address: &str) -> Options {
    let mut options = Options::new(address).unwrap();
    options.statement_timeout = Duration::from_secs(2);
    options.lock_timeout = Duration::from_secs(5);
    options.idle_timeout = Duration::from_millis(200);
    options.retry_for = Duration::from_secs(1);
    options
}

/// Behaves as an owner does: after an unknown outcome, it claims its shard again and reads before
/// it continues. What was acknowledged must be there at the end.
pub(crate) fn own(
    store: &PostgresStore,
    number: u8,
    acknowledged: &AtomicUsize,
    goes_on: impl Fn() -> bool,
) {
    let (mut epoch, mut next) = (0, 1);
    let mut kept = BTreeSet::new();
    while goes_on() {
        match commit(store, batch(number, epoch, next)) {
            Ok(()) => {
                kept.insert(next);
                next += 1;
                acknowledged.fetch_add(1, Relaxed);
            }
            Err(CommitError::Unavailable(_)) => {}
            Err(CommitError::Unknown(_)) => {
                epoch = claim_again(store, number);
                next = sequences(store, number).last().copied().unwrap_or_default() + 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let there = BTreeSet::from_iter(sequences(store, number));
    assert!(kept.is_subset(&there), "lost: {:?}", kept.difference(&there));
}
