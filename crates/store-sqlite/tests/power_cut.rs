//! Cuts the power at a random point and loses a random part of what was not synced. Every batch that
//! was acknowledged must be there afterwards, and every other one whole or not at all.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_sqlite_disk::{Disk, Power};
use abide_store::{
    Batch, CommitError, ReadError, Store, Write,
    rows::{LogLimit, LogRow, OutboxRow},
};
use abide_store_sqlite::{Options, SqliteStore};
use bytes::Bytes;

/// A splitmix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn shard_of(number: u64) -> ShardId {
    ShardId::new(u8::try_from(number % 8).unwrap()).unwrap()
}

fn run_of(number: u64) -> RunId {
    RunId::from_parts(Timestamp::from_unix_millis(1_800_000_000_000 + number), u128::from(number))
}

/// Batch `number`: several rows in two tables, of sizes that differ.
fn batch(number: u64) -> Batch {
    let run = run_of(number);
    let log = |sequence| {
        let size = usize::try_from(number * 37 % 3000).unwrap();
        let events = Bytes::from(vec![u8::try_from(number % 251).unwrap(); size]);
        Write::AppendLog(LogRow { run, sequence, first_event: 1, events, notes: Bytes::new() })
    };
    let (namespace, workflow) = ("n".into(), "w".into());
    let effect = Bytes::from_static(b"effect");
    let outbox = Write::PutOutbox(OutboxRow { run, number, namespace, workflow, effect });
    Batch { shard: shard_of(number), epoch: 0, writes: vec![log(1), outbox, log(2), log(3)] }
}

/// How much of a batch is in the store: its log rows, and one for the outbox.
fn rows_of(store: &SqliteStore, number: u64) -> Result<usize, ReadError> {
    let (shard, run) = (shard_of(number), run_of(number));
    let log = pollster::block_on(store.log(shard, run, 0, LogLimit::rows(10)))?.len();
    let outbox = pollster::block_on(store.outbox(shard, None, usize::MAX))?;
    Ok(log + outbox.iter().filter(|row| row.run == run).count())
}

fn options(directory: &tempfile::TempDir, layer: &str) -> Options {
    let mut options = Options::new(directory.path().join("store"));
    options.file_layer = Some(layer.to_owned());
    options.page_bytes = 1024;
    options.checkpoint_bytes = 40 << 10;
    options.readers = 1;
    options
}

/// One life of the store, until the power is cut or all is written. Tells what was answered.
fn live(
    disk: &Disk,
    options: &Options,
    random: &mut Random,
    first: u64,
) -> BTreeMap<u64, Result<(), CommitError>> {
    disk.set_power(Power::OnFor(random.below(400)));
    let mut answers = BTreeMap::new();
    let Ok(store) = SqliteStore::open(options) else { return answers };
    let mut next = first;
    while disk.power() != Power::Off && next < first + 200 {
        let group = next..next + 1 + random.below(6);
        let pending: Vec<_> = group.clone().map(|number| store.commit(batch(number))).collect();
        answers.extend(group.clone().zip(pending.into_iter().map(pollster::block_on)));
        next = group.end;
    }
    disk.set_power(Power::Off);
    answers
}

/// What came of a few lives on one disk.
#[derive(Default)]
struct Outcome {
    acknowledged: usize,
    /// Batches that were lost or torn.
    damage: Vec<String>,
    /// A store that could not be opened or read.
    failures: Vec<String>,
}

/// Lives, dies and comes back a few times on one disk.
fn lives(disk: &Disk, layer: &str, seed: u64, lying: bool) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let options = options(&directory, layer);
    let mut random = Random(seed);
    let mut answers = BTreeMap::new();
    let mut outcome = Outcome::default();
    disk.erase();
    for life in 0..3 {
        if lying {
            disk.let_syncs_lie();
        }
        answers.extend(live(disk, &options, &mut random, life * 1000));
        let survivors = random.below(5);
        disk.restart(|| random.below(4) < survivors);
        let store = match SqliteStore::open(&options) {
            Ok(store) => store,
            Err(error) => {
                outcome.failures.push(format!("seed {seed}, life {life}: {error}"));
                return outcome;
            }
        };
        for (number, answer) in &answers {
            let what = format!("seed {seed}, life {life}: batch {number} answered {answer:?}");
            match rows_of(&store, *number) {
                Ok(4) => {}
                Ok(0) if answer.is_err() => {}
                Ok(rows) => outcome.damage.push(format!("{what} and has {rows} rows of 4")),
                Err(error) => outcome.failures.push(format!("{what}: {error}")),
            }
        }
    }
    outcome.acknowledged = answers.values().filter(|answer| answer.is_ok()).count();
    outcome
}

#[test]
fn acknowledged_batches_survive_a_power_cut() {
    let disk = Disk::register("power-cut");
    let mut acknowledged = 0;
    for seed in 0..150 {
        let outcome = lives(&disk, "power-cut", seed, false);
        let problems = [outcome.damage, outcome.failures].concat();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        acknowledged += outcome.acknowledged;
    }
    assert!(acknowledged > 3000, "only {acknowledged} batches were at stake");
}

/// The test above would notice: on a disk whose syncs do nothing, acknowledged batches are lost.
#[test]
fn a_disk_that_lies_is_found_out() {
    let disk = Disk::register("lying-disk");
    let lost = (0..20).flat_map(|seed| lives(&disk, "lying-disk", seed, true).damage).count();
    assert!(lost > 0, "no loss in 20 rounds");
}
