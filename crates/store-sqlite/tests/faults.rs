//! What the store answers when the disk fails or is full.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_sqlite_disk::{Disk, Power};
use abide_store::{
    Batch, CommitError, Store, Write,
    rows::{LogLimit, LogRow},
};
use abide_store_sqlite::{OpenError, Options, SqliteStore};
use bytes::Bytes;

const RUN: u128 = 1;

fn shard() -> ShardId {
    ShardId::new(1).unwrap()
}

fn run() -> RunId {
    RunId::from_parts(Timestamp::EPOCH, RUN)
}

fn append(store: &SqliteStore, sequence: u64, size: usize) -> Result<(), CommitError> {
    let events = Bytes::from(vec![7; size]);
    let row = LogRow { run: run(), sequence, first_event: 1, events, notes: Bytes::new() };
    let writes = vec![Write::AppendLog(row)];
    pollster::block_on(store.commit(Batch { shard: shard(), epoch: 0, writes }))
}

fn sequences(store: &SqliteStore) -> Vec<u64> {
    let rows = pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(10_000))).unwrap();
    rows.into_iter().map(|row| row.sequence).collect()
}

/// A disk of its own, and a store on it that copies its log often.
struct Bench {
    disk: Disk,
    options: Options,
    _directory: tempfile::TempDir,
}

impl Bench {
    fn new(layer: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::new(directory.path().join("store"));
        options.file_layer = Some(layer.to_owned());
        options.page_bytes = 4096;
        options.checkpoint_bytes = 400 << 10;
        Self { disk: Disk::register(layer), options, _directory: directory }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.options).unwrap()
    }

    /// The process ends and another begins; the power stays on.
    fn reopen(&self, store: SqliteStore) -> SqliteStore {
        drop(store);
        self.disk.end_process();
        self.open()
    }

    /// The power fails and all that was not synced is lost.
    fn restart(&self, store: SqliteStore) -> SqliteStore {
        drop(store);
        self.disk.restart(|| false);
        self.open()
    }
}

#[test]
fn a_failed_sync_of_a_commit_stops_the_store() {
    let bench = Bench::new("failed-commit");
    let store = bench.open();
    assert_eq!(append(&store, 1, 100), Ok(()));
    bench.disk.fail_next_sync_of("-wal");
    let unknown = append(&store, 2, 100);
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    let stopped = append(&store, 3, 100);
    assert!(matches!(stopped, Err(CommitError::Stopped(_))), "{stopped:?}");
    assert_eq!(sequences(&store), [1], "reads go on");
    let store = bench.restart(store);
    assert_eq!(sequences(&store), [1]);
    assert_eq!(append(&store, 2, 100), Ok(()));
}

/// Without a power cut the next process still sees what was not synced. It must not write behind it: a
/// later power cut would take that away, and all that follows in the log with it.
#[test]
fn nothing_is_written_behind_what_was_not_synced() {
    let bench = Bench::new("failed-then-reopened");
    let store = bench.open();
    assert_eq!(append(&store, 1, 100), Ok(()));
    bench.disk.fail_next_sync_of("-wal");
    let unknown = append(&store, 2, 100);
    assert!(matches!(unknown, Err(CommitError::Unknown(_))), "{unknown:?}");
    let store = bench.reopen(store);
    assert_eq!(append(&store, 3, 100), Ok(()));
    let before = sequences(&store);
    let store = bench.restart(store);
    assert!(before.contains(&3));
    assert_eq!(sequences(&store), before, "what was seen or acknowledged is there");
}

/// A power cut while the log of a failed sync is copied into the file. The store writes such a log again
/// before it copies it; files of the operating system alone can be reached for that, so here the disk
/// does it.
#[test]
fn a_power_cut_while_opening_after_a_failed_sync_leaves_the_file_whole() {
    let bench = Bench::new("failed-then-cut");
    for operations in 0..30 {
        bench.disk.erase();
        let store = bench.open();
        for sequence in 1..10 {
            assert_eq!(append(&store, sequence, 3000), Ok(()));
        }
        let store = bench.reopen(store);
        assert_eq!(append(&store, 10, 100), Ok(()));
        bench.disk.fail_next_sync_of("-wal");
        assert!(append(&store, 11, 20_000).is_err());
        drop(store);
        bench.disk.end_process();
        bench.disk.rewrite("-wal");
        bench.disk.set_power(Power::OnFor(operations));
        let store = SqliteStore::open(&bench.options);
        bench.disk.set_power(Power::Off);
        drop(store);
        bench.disk.restart(|| true);
        assert_eq!(sequences(&bench.open()), (1..12).collect::<Vec<_>>(), "cut at {operations}");
    }
}

#[test]
fn a_log_that_cannot_be_copied_at_the_start_is_an_error() {
    let bench = Bench::new("failed-opening");
    let store = bench.open();
    assert_eq!(append(&store, 1, 100), Ok(()));
    bench.disk.fail_next_sync_of("-wal");
    assert!(append(&store, 2, 100).is_err());
    drop(store);
    bench.disk.end_process();
    bench.disk.fail_next_sync_of("store");
    let error = SqliteStore::open(&bench.options).err();
    assert!(matches!(error, Some(OpenError::Unavailable { .. })), "{error:?}");
}

#[test]
fn a_failed_sync_of_a_checkpoint_stops_the_store() {
    let bench = Bench::new("failed-checkpoint");
    let store = bench.open();
    bench.disk.fail_next_sync_of("store");
    let answers: Vec<_> = (1..200).map(|sequence| append(&store, sequence, 3000)).collect();
    let good = answers.iter().take_while(|answer| answer.is_ok()).count();
    assert!((10..190).contains(&good), "stopped after {good} commits");
    let stopped = |answer: &_| matches!(answer, Err(CommitError::Stopped(_)));
    assert!(answers[good..].iter().all(stopped), "{:?}", &answers[good..]);
    let store = bench.restart(store);
    assert_eq!(sequences(&store).len(), good, "what was acknowledged is in the log");
}

#[test]
fn a_full_disk_loses_nothing_and_passes() {
    let bench = Bench::new("full-disk");
    let store = bench.open();
    assert_eq!(append(&store, 1, 100), Ok(()));
    bench.disk.set_capacity(bench.disk.used() + 200_000);
    let mut next = 2;
    let refused = loop {
        match append(&store, next, 3000) {
            Ok(()) => next += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, CommitError::Full(_)), "{refused:?}");
    let again = append(&store, next, 3000);
    assert!(matches!(again, Err(CommitError::Full(_))), "{again:?}");
    assert_eq!(sequences(&store), (1..next).collect::<Vec<_>>());
    bench.disk.set_capacity(usize::MAX);
    assert_eq!(append(&store, next, 3000), Ok(()), "space has returned");
    let store = bench.restart(store);
    assert_eq!(sequences(&store), (1..=next).collect::<Vec<_>>());
}

/// Of a group that does not fit, the small ones are committed.
#[test]
fn a_batch_too_large_for_the_disk_spares_its_neighbours() {
    let bench = Bench::new("too-large");
    let store = bench.open();
    bench.disk.set_capacity(bench.disk.used() + 400_000);
    let send = |number: u64, size| {
        let run = RunId::from_parts(Timestamp::EPOCH, u128::from(number));
        let events = Bytes::from(vec![7; size]);
        let row = LogRow { run, sequence: 1, first_event: 1, events, notes: Bytes::new() };
        let writes = vec![Write::AppendLog(row)];
        store.commit(Batch { shard: shard(), epoch: 0, writes })
    };
    let pending: Vec<_> =
        (0..20).map(|number| send(number, if number == 7 { 2 << 20 } else { 10 })).collect();
    for (number, answer) in pending.into_iter().map(pollster::block_on).enumerate() {
        let full = matches!(answer, Err(CommitError::Full(_)));
        assert_eq!((answer.is_ok(), full), (number != 7, number == 7), "{answer:?}");
    }
}
