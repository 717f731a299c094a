//! Groups of batches on disks that are full or fail. They are committed without the thread, so that
//! the tests control the content of each group.

use std::{
    sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

use abide_core::{ids::RunId, time::Timestamp};
use abide_sqlite_disk::Disk;
use abide_store::rows::{LogRow, SnapshotRow};
use bytes::Bytes;

use super::*;
use crate::open;

/// A writer on its own disk. Its cache is so small that a large batch spills to disk before its
/// commit.
struct Bench {
    disk: Disk,
    options: Options,
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
    options.checkpoint_bytes = 200 << 10;
    let mut writer = Writer::new(open::writer(&options).unwrap(), &options, None).unwrap();
    assert_eq!(writer.answers(&[append(0, 10)]), [Ok(true)]);
    Bench { disk, options, writer, _directory: directory }
}

fn append(run: u128, size: usize) -> WriteRequest {
    let run = RunId::from_parts(Timestamp::EPOCH, run);
    let events = Bytes::from(vec![7; size]);
    write(Write::AppendLog(LogRow {
        run,
        sequence: 1,
        first_event: 1,
        events,
        notes: Bytes::new(),
    }))
}

/// Replaces one long row, so that the log grows and the file does not.
fn replace(round: u8) -> WriteRequest {
    let run = RunId::from_parts(Timestamp::EPOCH, 0);
    let state = Bytes::from(vec![round; 16 << 10]);
    write(Write::PutSnapshot(SnapshotRow { run, sequence: 1, state }))
}

fn write(write: Write) -> WriteRequest {
    WriteRequest::Batch(Batch { shard: ShardId::new(1).unwrap(), epoch: 0, writes: vec![write] })
}

/// Commits a group and compares its answers. A batch is `r` if it repeats a row and is refused, `L`
/// if it is too large for the cache, `s` if it is small. The answers are `+` for committed, `r` for
/// refused, `u` for unavailable, `?` for unknown and `x` for stopped.
fn check(bench: &mut Bench, group: &str, expected: &str) {
    let work = |(run, name)| match name {
        'r' => append(0, 10),
        'L' => append(run, 1 << 20),
        _ => append(run, 10),
    };
    let group: Vec<_> = (1..).zip(group.chars()).map(work).collect();
    let answers = bench.writer.answers(&group);
    let letter = |answer: &WriteResult| match answer {
        Ok(_) => '+',
        Err(CommitError::Refused(_) | CommitError::Stale { .. }) => 'r',
        Err(CommitError::Unavailable(_) | CommitError::Full(_)) => 'u',
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

/// The log takes all the room, and the file needs none of it.
#[test]
fn a_full_disk_is_freed_of_the_log() {
    let mut bench = bench("full-of-log");
    assert_eq!(bench.writer.answers(&[replace(0)]), [Ok(true)]);
    bench.writer.checkpoint.make_room(&bench.writer.connection).unwrap();
    bench.disk.set_capacity(bench.disk.used() + 200_000);
    for round in 1..200 {
        assert_eq!(bench.writer.answers(&[replace(round)]), [Ok(true)], "round {round}");
    }
}

#[test]
fn a_copy_that_did_not_fit_is_made_when_there_is_room() {
    let mut bench = bench("late-copy");
    check(&mut bench, "L", "+");
    let used = bench.disk.used();
    bench.disk.set_capacity(used);
    bench.writer.copy_when_due();
    assert_eq!(bench.disk.used(), used);
    bench.disk.set_capacity(usize::MAX);
    bench.writer.checkpoint.full_at = None;
    bench.writer.copy_when_due();
    assert!(bench.disk.used() > used + (1 << 20), "the file grew");
}

#[test]
fn a_full_disk_is_not_asked_for_room_at_every_commit() {
    let mut bench = bench("seldom-copy");
    check(&mut bench, "L", "+");
    bench.disk.set_capacity(bench.disk.used());
    let fails = |bench: &mut Bench| {
        let answers = bench.writer.answers(&[append(9, 1 << 20)]);
        assert!(matches!(answers[..], [Err(CommitError::Full(_))]), "{answers:?}");
        bench.writer.counter().counts().upkeep_failures
    };
    for _ in 0..5 {
        bench.writer.copy_when_due();
        assert_eq!(fails(&mut bench), 1, "copies that did not fit");
    }
    bench.writer.checkpoint.full_at = None;
    assert_eq!(fails(&mut bench), 2, "it is tried again after the pause");
}

#[test]
fn a_failed_sync_while_making_room_stops_the_writer() {
    let mut bench = bench("failing-room");
    assert_eq!(bench.writer.answers(&[replace(0)]), [Ok(true)]);
    bench.writer.checkpoint.make_room(&bench.writer.connection).unwrap();
    assert_eq!(bench.writer.answers(&[replace(1)]), [Ok(true)]);
    bench.disk.set_capacity(bench.disk.used() + 200_000);
    bench.disk.fail_next_sync_of("store");
    check(&mut bench, "Ls", "xx");
}

#[test]
fn a_write_that_fails_beside_a_refused_batch_stops_the_writer() {
    let mut bench = bench("refused-and-failing");
    bench.disk.fail_next_write_of("-wal");
    check(&mut bench, "srLs", "????");
    check(&mut bench, "s", "x");
}

/// Overlapping reads: each begins before the one before it ends. A read lasts until the next call,
/// which is answered when the next read has begun, but not longer than reads usually do.
fn overlapping_reads(connections: &[Connection; 2], calls: &Receiver<SyncSender<()>>) {
    let mut reads = Vec::new();
    let mut call: Option<SyncSender<()>> = None;
    for connection in connections.iter().cycle() {
        let read = connection.unchecked_transaction().unwrap();
        tables::shards::epochs(&read).unwrap();
        reads.clear();
        reads.push(read);
        if let Some(call) = call {
            call.send(()).unwrap();
        }
        call = match calls.recv_timeout(Duration::from_millis(5)) {
            Ok(call) => Some(call),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[test]
fn the_log_stays_small_while_reads_overlap() {
    let mut bench = bench("overlapping-reads");
    let readers = [(); 2].map(|()| open::reader(&bench.options).unwrap());
    let (calls, called) = channel();
    let thread = thread::spawn(move || overlapping_reads(&readers, &called));
    let before = bench.disk.used();
    for round in 0..200 {
        let (call, answered) = sync_channel(0);
        calls.send(call).unwrap();
        answered.recv().unwrap();
        assert_eq!(bench.writer.answers(&[replace(round)]), [Ok(true)]);
        bench.writer.copy_when_due();
        let log = bench.disk.used() - before;
        assert!(log < 3 * (200 << 10), "the log grew to {log} bytes");
    }
    drop(calls);
    thread.join().unwrap();
}

/// Each wait for a lock takes seconds, so a group must not wait once per batch.
#[test]
fn a_group_waits_once_for_a_lock() {
    static WAITS: AtomicU32 = AtomicU32::new(0);
    let mut bench = bench("locked");
    let stranger = open::writer(&bench.options).unwrap();
    stranger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let count = |_| {
        WAITS.fetch_add(1, Relaxed);
        false
    };
    bench.writer.connection.busy_handler(Some(count)).unwrap();
    check(&mut bench, "sssss", "uuuuu");
    assert_eq!(WAITS.load(Relaxed), 1);
    stranger.execute_batch("ROLLBACK").unwrap();
    check(&mut bench, "sssss", "+++++");
}

/// A mark that lags behind harms nothing. One that is too high would have an intact store refused.
#[cfg(target_os = "linux")]
#[test]
fn a_mark_without_room_spares_commits_but_those_that_remove_rows() {
    let mut bench = bench("mark-without-room");
    let last = tables::log::last(&bench.writer.connection).unwrap();
    bench.writer.mark = Some(Mark::without_room(last));
    check(&mut bench, "ss", "++");
    assert_eq!(bench.writer.counter().counts().upkeep_failures, 1);
    let delete = |run| write(Write::DeleteRun(RunId::from_parts(Timestamp::EPOCH, run)));
    assert_eq!(
        bench.writer.answers(&[delete(2)]),
        [Ok(true)],
        "the mark is not above what is left"
    );
    bench.writer.mark = Some(Mark::without_room(last + 1));
    let refused = bench.writer.answers(&[delete(1)]);
    assert!(
        matches!(&refused[..], [Err(CommitError::Full(why))] if why.contains("mark")),
        "{refused:?}"
    );
    assert_eq!(tables::log::last(&bench.writer.connection).unwrap(), last + 1);
}

#[test]
fn a_read_that_keeps_the_log_from_starting_over_is_told() {
    let mut bench = bench("long-read");
    let reader = open::reader(&bench.options).unwrap();
    let read = reader.unchecked_transaction().unwrap();
    tables::shards::epochs(&read).unwrap();
    bench.writer.connection.busy_timeout(Duration::ZERO).unwrap();
    check(&mut bench, "L", "+");
    bench.writer.copy_when_due();
    assert_eq!(bench.writer.counter().counts().upkeep_failures, 1);
    bench.writer.copy_when_due();
    assert_eq!(bench.writer.counter().counts().upkeep_failures, 1, "not for each commit");
}

/// All commits wait while pages are copied. Those of large rows change only once, so it does not pay to
/// collect many of them.
#[test]
fn large_rows_are_copied_before_they_are_many() {
    let mut bench = bench("large-rows");
    bench.writer.checkpoint.pages_between = u32::MAX;
    let before = bench.disk.used();
    for run in 1..=16 {
        assert_eq!(bench.writer.answers(&[append(run, 1 << 20)]), [Ok(true)]);
        bench.writer.copy_when_due();
    }
    let used = bench.disk.used() - before;
    assert!(used > 30 << 20, "the file has them too, and not only the log: {used} bytes");
}
