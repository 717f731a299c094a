//! What the store does when a real disk is full, with all of its files: a small file system in memory,
//! which a process of its own mounts. Where the kernel does not allow that, these tests say that they are
//! skipped; the disk in memory of the other tests knows only the files that SQLite writes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::{
    Batch, CommitError, Store, Write,
    rows::{LogLimit, LogRow},
};
use abide_store_sqlite::{OpenError, Options, SqliteStore};
use bytes::Bytes;

/// Where the small disk is, in the process that has it.
const DISK: &str = "ABIDE_TEST_DISK";

/// Runs the test `name` in a process that has a disk of 40 MB, and there `body` with its place.
fn on_a_small_disk(name: &str, body: impl FnOnce(&Path)) {
    if let Some(disk) = std::env::var_os(DISK) {
        return body(Path::new(&disk));
    }
    let directory = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg(format!("mount -t tmpfs -o size=40m none \"${DISK}\" && {script}"));
        command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
        command.env(DISK, directory.path()).output()
    };
    if !run("true").is_ok_and(|probe| probe.status.success()) {
        // Past the harness, which would hide it.
        let skipped = format!("skipped: {name}: no file system can be mounted here\n");
        return std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    }
    let output = run("exec \"$0\" \"$@\"").unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

/// A file that takes all room but so many bytes.
struct Ballast(PathBuf);

impl Ballast {
    fn leaving(disk: &Path, spare: u64) -> Self {
        let path = disk.join("ballast");
        let mut file = File::create(&path).unwrap();
        let full = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(spare)).unwrap();
        Self(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

fn shard() -> ShardId {
    ShardId::new(1).unwrap()
}

fn run() -> RunId {
    RunId::from_parts(Timestamp::EPOCH, 1)
}

fn options(disk: &Path) -> Options {
    let mut options = Options::new(disk.join("store"));
    options.page_bytes = 4096;
    options
}

fn append(store: &SqliteStore, sequence: u64) -> Result<(), CommitError> {
    let events = Bytes::from(vec![7; 3000]);
    let row = LogRow { run: run(), sequence, first_event: 1, events, notes: Bytes::new() };
    let writes = vec![Write::AppendLog(row)];
    pollster::block_on(store.commit(Batch { shard: shard(), epoch: 0, writes }))
}

fn rows(store: &SqliteStore) -> u64 {
    pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(100_000))).unwrap().len() as u64
}

/// Appends as long as `more` says so; gives the number of rows.
fn fill(store: &SqliteStore, mut count: u64, more: impl Fn() -> bool) -> u64 {
    while more() {
        count += 1;
        append(store, count).unwrap();
    }
    count
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// The index of the log grows when the log passes 4,062 pages. Wherever the disk is full by then, a commit
/// is refused before it is written.
#[test]
fn a_full_disk_refuses_commits_whichever_file_has_no_room() {
    on_a_small_disk("a_full_disk_refuses_commits_whichever_file_has_no_room", |disk| {
        for spare in (80..160).step_by(8) {
            let path = disk.join("store");
            let log = disk.join("store-wal");
            let store = SqliteStore::open(&options(disk)).unwrap();
            let index = length(&disk.join("store-shm"));
            let count = fill(&store, 0, || length(&log) < 4040 * (4096 + 24));
            let ballast = Ballast::leaving(disk, spare << 10);
            let refused = |count| match append(&store, count) {
                Err(CommitError::Full(_)) => true,
                Ok(()) => false,
                other => panic!("with {spare} KB to spare: {other:?}"),
            };
            let mut count = count + 1;
            while !refused(count) {
                count += 1;
            }
            assert!(refused(count), "and again");
            assert_eq!(rows(&store), count - 1, "reads go on");
            drop(ballast);
            append(&store, count).unwrap();
            assert_eq!(length(&disk.join("store-shm")), index, "it has all the room it needs");
            drop(store);
            let store = SqliteStore::open(&options(disk)).unwrap();
            assert_eq!(rows(&store), count);
            drop(store);
            for file in [&path, &log, &disk.join("store.mark")] {
                fs::remove_file(file).unwrap();
            }
        }
    });
}

#[test]
fn a_store_is_not_opened_on_a_full_disk_and_stays_whole() {
    on_a_small_disk("a_store_is_not_opened_on_a_full_disk_and_stays_whole", |disk| {
        let files = ["store", "store-wal", "store.mark"].map(|name| disk.join(name));
        let store = SqliteStore::open(&options(disk)).unwrap();
        let count = fill(&store, 0, || length(&files[1]) < 4 << 20);
        // As a kill leaves them: nothing is copied from the log into the file.
        let contents = files.clone().map(|file| fs::read(file).unwrap());
        drop(store);
        for spare in [0, 4, 40, 400, 1000] {
            for (file, content) in files.iter().zip(&contents) {
                fs::write(file, content).unwrap();
            }
            fs::remove_file(disk.join("store-shm")).unwrap();
            let _ballast = Ballast::leaving(disk, spare << 10);
            let error = SqliteStore::open(&options(disk)).err().unwrap();
            assert!(matches!(error, OpenError::Full { .. }), "{spare} KB to spare: {error:?}");
            assert!(error.to_string().contains("make room"), "{error}");
            assert_eq!(fs::read(&files[1]).unwrap(), contents[1], "the log is as it was");
            assert_eq!(fs::read(&files[2]).unwrap(), contents[2], "and so is the mark");
        }
        assert_eq!(rows(&SqliteStore::open(&options(disk)).unwrap()), count);
    });
}

#[test]
fn a_new_store_begins_once_there_is_room() {
    on_a_small_disk("a_new_store_begins_once_there_is_room", |disk| {
        for spare in [0, 4, 16, 40, 80, 120, 200] {
            let ballast = Ballast::leaving(disk, spare << 10);
            let error = SqliteStore::open(&options(disk)).err().unwrap();
            assert!(matches!(error, OpenError::Full { .. }), "{spare} KB to spare: {error:?}");
            drop(ballast);
        }
        append(&SqliteStore::open(&options(disk)).unwrap(), 1).unwrap();
    });
}
