//! Groups of batches on disks that are full or fail, committed without the thread, so that what is in
//! one group is not left to chance.

use abide_core::{ids::RunId, time::Timestamp};
use abide_sqlite_disk::Disk;
use abide_store::rows::LogRow;
use bytes::Bytes;

use super::*;
use crate::open;

/// A writer on a disk of its own. Its cache is so small that a large batch is written before its commit.
struct Bench {
    disk: Disk,
    writer: Writer,
    _directory: tempfile::TempDir,
}

fn bench(layer: &str) -> Bench {
    let disk = Disk::register(layer);
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(directory.path().join("store"));
    options.file_layer = Some(layer.to_owned());
    options.page_bytes = 4096;
    options.writer_cache_bytes = 40 << 10;
    let mut writer = Writer::new(open::writer(&options).unwrap(), &options).unwrap();
    assert_eq!(writer.answers(&[append(0, 10)]), [Ok(true)]);
    Bench { disk, writer, _directory: directory }
}

fn append(run: u128, size: usize) -> Work {
    let run = RunId::from_parts(Timestamp::EPOCH, run);
    let events = Bytes::from(vec![7; size]);
    let row = LogRow { run, sequence: 1, first_event: 1, events, notes: Bytes::new() };
    let shard = ShardId::new(1).unwrap();
    Work::Batch(Batch { shard, epoch: 0, writes: vec![Write::AppendLog(row)] })
}

/// Commits a group and compares its answers. A batch is `r` if it repeats a row and is refused, `L` if it
/// is too large for the cache, `s` if it is small. The answers are `+` for
/// committed, `r` for refused, `u` for unavailable, `?` for unknown and `x` for stopped.
fn check(bench: &mut Bench, group: &str, expected: &str) {
    let work = |(run, name)| match name {
        'r' => append(0, 10),
        'L' => append(run, 1 << 20),
        _ => append(run, 10),
    };
    let group: Vec<_> = (1..).zip(group.chars()).map(work).collect();
    let answers = bench.writer.answers(&group);
    let letter = |answer: &Answer| match answer {
        Ok(_) => '+',
        Err(CommitError::Refused(_) | CommitError::Stale { .. }) => 'r',
        Err(CommitError::Unavailable(_)) => 'u',
        Err(CommitError::Unknown(_)) => '?',
        Err(CommitError::Stopped(_)) => 'x',
    };
    assert_eq!(answers.iter().map(letter).collect::<String>(), expected, "{answers:?}");
}

#[test]
fn a_refused_batch_on_a_full_disk_spares_its_neighbours() {
    let mut bench = bench("refused-and-full");
    bench.disk.set_capacity(bench.disk.used() + 200_000);
    check(&mut bench, "srLs", "+ru+");
}

#[test]
fn a_write_that_fails_beside_a_refused_batch_stops_the_writer() {
    let mut bench = bench("refused-and-failing");
    bench.disk.fail_next_write_of("-wal");
    check(&mut bench, "srLs", "????");
    check(&mut bench, "s", "x");
}
