//! What opening does with files that are new, old, in use, newer, of others, or damaged, and what is
//! left when a store ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use abide_core::{
    ids::{RunId, ShardId},
    time::Timestamp,
};
use abide_store::{
    Batch, ReadError, Store, Write,
    rows::{LogLimit, LogRow},
};
use abide_store_sqlite::{OpenError, Options, SqliteStore};
use bytes::Bytes;

fn shard() -> ShardId {
    ShardId::new(1).unwrap()
}

fn run() -> RunId {
    RunId::from_parts(Timestamp::EPOCH, 1)
}

fn append(sequence: u64) -> Batch {
    append_to(run(), sequence)
}

fn append_to(run: RunId, sequence: u64) -> Batch {
    let events = Bytes::from(vec![7; 5000]);
    let row = LogRow { run, sequence, first_event: 1, events, notes: Bytes::new() };
    Batch { shard: shard(), epoch: 0, writes: vec![Write::AppendLog(row)] }
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(&Options::new(path))
}

fn refused(path: &Path) -> OpenError {
    match open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn a_file_is_open_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    let error = refused(&path);
    assert_eq!(error, OpenError::InUse { path: path.clone() });
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    drop(store);
    open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn a_file_is_open_once_under_all_its_names() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    symlink(&path, directory.path().join("link")).unwrap();
    symlink(directory.path(), directory.path().join("folder")).unwrap();
    let error = refused(&directory.path().join("link"));
    assert!(matches!(error, OpenError::Unavailable { .. }), "leads nowhere: {error:?}");
    let store = open(&directory.path().join("folder").join("store")).unwrap();
    let in_use = OpenError::InUse { path: path.canonicalize().unwrap() };
    for name in ["store", "link", "folder/store", "folder/link", "./store"] {
        assert_eq!(refused(&directory.path().join(name)), in_use);
    }
    drop(store);
    open(&directory.path().join("link")).unwrap();
}

/// Runs itself in a second process, which is told by the environment what to open and where to answer.
#[test]
fn another_process_is_told_that_the_file_is_in_use() {
    const PATH: &str = "ABIDE_TEST_STORE";
    if let Some(path) = std::env::var_os(PATH) {
        let path = Path::new(&path);
        fs::write(path.with_extension("answer"), refused(path).to_string()).unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("store");
    let store = open(&path).unwrap();
    pollster::block_on(store.commit(append(1))).unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "another_process_is_told_that_the_file_is_in_use"])
        .env(PATH, &path)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let expected = format!("{} is in use by another process, or twice by this one", path.display());
    assert_eq!(fs::read_to_string(path.with_extension("answer")).unwrap(), expected);
    pollster::block_on(store.commit(append(2))).unwrap();
}

#[test]
fn dropping_finishes_what_is_queued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    for sequence in 1..=300 {
        drop(store.commit(append(sequence)));
    }
    drop(store);
    assert_eq!(fs::metadata(directory.path().join("store-wal")).unwrap().len(), 0);
    let store = open(&path).unwrap();
    assert_eq!(
        pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(1000))).unwrap().len(),
        300
    );
}

#[test]
fn a_newer_file_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = refused(&path);
    assert_eq!(error, OpenError::Newer { path: path.clone(), found: 99, known: 3 });
    assert!(error.to_string().contains("99") && error.to_string().contains('3'), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    assert_eq!(refused(&path), OpenError::Foreign { path: path.clone() });
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let text = "This is not a database. ".repeat(500);
    fs::write(&path, &text).unwrap();
    let error = refused(&path);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_damaged_file_is_not_read_as_something_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    for sequence in 1..=100 {
        pollster::block_on(store.commit(append(sequence))).unwrap();
    }
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    let middle = 16_384 * 3;
    bytes[middle..].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    match open(&path) {
        Err(error) => assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}"),
        Ok(store) => {
            let read = pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(1000)));
            assert!(matches!(read, Err(ReadError::Corrupt(_))), "{read:?}");
        }
    }
}

/// Starts a store with rows that are in the log alone, and ends it as a kill would: nothing is copied.
fn killed(path: &Path, rows: u64) -> Vec<(PathBuf, Vec<u8>)> {
    let store = open(path).unwrap();
    for sequence in 1..=rows {
        pollster::block_on(store.commit(append(sequence))).unwrap();
    }
    let files = ["", "-wal", ".mark"].map(|suffix| {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        let bytes = fs::read(&file).unwrap();
        (file, bytes)
    });
    drop(store);
    for (file, bytes) in &files {
        fs::write(file, bytes).unwrap();
    }
    files.into()
}

/// The store is refused, its files are left as they are, and without its mark it opens.
fn lost(path: &Path, remove: &str, left: usize) {
    let before = contents(path);
    let error = refused(path);
    let OpenError::Lost { remove: named, .. } = &error else { panic!("{error:?}") };
    let text = error.to_string();
    for part in ["Nothing was changed", "backup", remove, &path.display().to_string()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(contents(path) == before, "nothing was changed");
    assert_eq!(refused(path), error, "and it is refused again");
    fs::remove_file(named).unwrap();
    let store = open(path).unwrap();
    assert_eq!(
        pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(1000))).unwrap().len(),
        left
    );
}

/// What the files hold. SQLite makes an empty log where there is none.
fn contents(path: &Path) -> [Vec<u8>; 3] {
    ["", "-wal", ".mark"]
        .map(|suffix| fs::read(format!("{}{suffix}", path.display())).unwrap_or_default())
}

fn wal(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

#[test]
fn a_store_whose_file_is_gone_is_not_taken_for_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    killed(&path, 20);
    fs::remove_file(&path).unwrap();
    fs::remove_file(wal(&path)).unwrap();
    lost(&path, ".mark", 0);
}

#[test]
fn a_log_without_its_file_is_kept_though_nothing_says_that_there_was_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    killed(&path, 20);
    fs::remove_file(directory.path().join("store.mark")).unwrap();
    for empty in [false, true] {
        if empty {
            fs::write(&path, "").unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        let log = fs::read(wal(&path)).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Lost { .. }), "{error:?}");
        assert!(error.to_string().contains("store-wal"), "{error}");
        assert_eq!(fs::read(wal(&path)).unwrap(), log);
    }
}

#[test]
fn a_store_whose_file_was_emptied_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    killed(&path, 20);
    fs::write(&path, "").unwrap();
    fs::remove_file(wal(&path)).unwrap();
    lost(&path, ".mark", 0);
}

#[test]
fn a_store_whose_log_was_removed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(open(&path).unwrap());
    killed(&path, 20);
    fs::remove_file(wal(&path)).unwrap();
    lost(&path, ".mark", 0);
}

#[test]
fn a_store_whose_log_was_cut_is_refused_and_one_that_is_whole_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(open(&path).unwrap());
    let files = killed(&path, 20);
    let whole = files[1].1.len();
    for bytes in [whole - 1, whole / 2, whole / 3, 100] {
        for (file, content) in &files {
            fs::write(file, content).unwrap();
        }
        fs::write(wal(&path), &files[1].1[..bytes]).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Lost { .. }), "cut at {bytes}: {error:?}");
    }
    for (file, content) in &files {
        fs::write(file, content).unwrap();
    }
    let store = open(&path).unwrap();
    assert_eq!(
        pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(1000))).unwrap().len(),
        20
    );
    pollster::block_on(store.commit(append(21))).unwrap();
}

/// A backup that was put into the place of the store is older than its mark.
#[test]
fn a_backup_is_opened_when_the_mark_was_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(killed(&path, 5));
    drop(open(&path).unwrap());
    let backup = fs::read(&path).unwrap();
    let store = open(&path).unwrap();
    pollster::block_on(store.commit(append(6))).unwrap();
    drop(store);
    fs::write(&path, backup).unwrap();
    lost(&path, ".mark", 5);
}

#[test]
fn rows_that_were_refused_or_deleted_are_not_missed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    pollster::block_on(store.commit(append(1))).unwrap();
    let twice = Batch { writes: [append(2).writes, append(2).writes].concat(), ..append(2) };
    let answers: Vec<_> = [append(3), twice, append(4)].map(|batch| store.commit(batch)).into();
    let answers: Vec<_> =
        answers.into_iter().map(|answer| pollster::block_on(answer).is_ok()).collect();
    assert_eq!(answers, [true, false, true]);
    drop(store);
    let store = open(&path).unwrap();
    let delete = Batch { writes: vec![Write::DeleteRun(run())], ..append(1) };
    pollster::block_on(store.commit(delete)).unwrap();
    drop(store);
    open(&path).unwrap();
}

/// A store of 20 rows, of which only the last 10 are left.
fn half_deleted(path: &Path) {
    let old = RunId::from_parts(Timestamp::EPOCH, 2);
    let store = open(path).unwrap();
    for sequence in 1..=10 {
        pollster::block_on(store.commit(append_to(old, sequence))).unwrap();
    }
    for sequence in 1..=10 {
        pollster::block_on(store.commit(append(sequence))).unwrap();
    }
    let delete = Batch { writes: vec![Write::DeleteRun(old)], ..append(1) };
    pollster::block_on(store.commit(delete)).unwrap();
}

fn check_half_deleted(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    drop(connection);
    let store = open(path).unwrap();
    assert_eq!(
        pollster::block_on(store.log(shard(), run(), 0, LogLimit::rows(1000))).unwrap().len(),
        10
    );
    pollster::block_on(store.commit(append(11))).unwrap();
}

#[test]
fn a_store_that_was_vacuumed_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    half_deleted(&path);
    rusqlite::Connection::open(&path).unwrap().execute_batch("VACUUM").unwrap();
    check_half_deleted(&path);
}

/// As by `.dump`: what SQLite keeps beside the columns of a row is lost.
#[test]
fn a_store_that_was_copied_by_sql_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    half_deleted(&path);
    let copy = directory.path().join("copy");
    let whole = rusqlite::Connection::open(&path).unwrap();
    let version: u32 = whole.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    drop(whole);
    let connection = rusqlite::Connection::open(&copy).unwrap();
    let attach = format!(
        "PRAGMA page_size = 16384; PRAGMA application_id = {}; PRAGMA user_version = {version}; \
         ATTACH '{}' AS whole",
        0x4162_6964,
        path.display()
    );
    connection.execute_batch(&attach).unwrap();
    let tables = "SELECT name, sql FROM whole.sqlite_schema WHERE type = 'table'";
    let tables: Vec<(String, String)> = {
        let mut statement = connection.prepare(tables).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    for (table, sql) in tables {
        // In an order of its own, so that SQLite does not copy page by page.
        let rows = format!("INSERT INTO main.{table} SELECT * FROM whole.{table} ORDER BY 1, 2, 3");
        connection.execute_batch(&format!("{sql}; {rows}")).unwrap();
    }
    drop(connection);
    fs::rename(&copy, &path).unwrap();
    check_half_deleted(&path);
}

#[test]
fn a_store_of_the_first_version_goes_on_with_the_numbers_of_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("../src/migrations/0001_tables.sql")).unwrap();
    connection
        .execute_batch("PRAGMA application_id = 0x41626964; PRAGMA user_version = 1")
        .unwrap();
    for sequence in 1..=20 {
        let run = if sequence <= 10 { RunId::MAX } else { run() };
        let row = (run.as_bytes(), 1, sequence, [7; 5000], [0; 0]);
        connection.execute("INSERT INTO log VALUES (?, ?, ?, 1, ?, ?)", row).unwrap();
    }
    connection.execute("DELETE FROM log WHERE sequence <= 10", []).unwrap();
    drop(connection);
    let mark = directory.path().join("store.mark");
    drop(open(&directory.path().join("other")).unwrap());
    let text = fs::read_to_string(directory.path().join("other.mark")).unwrap();
    let marked = |rows| text.replace(&format!("{:020}", 0), &format!("{rows:020}"));
    fs::write(&mark, marked(21)).unwrap();
    assert!(matches!(refused(&path), OpenError::Lost { .. }), "it lacks a row");
    fs::write(&mark, marked(20)).unwrap();
    drop(open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().execute_batch("VACUUM").unwrap();
    let store = open(&path).unwrap();
    pollster::block_on(store.commit(append(21))).unwrap();
    drop(store);
    assert_eq!(fs::read_to_string(&mark).unwrap(), marked(21));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    pollster::block_on(store.commit(append(1))).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["store", "store-shm", "store-wal", "store.lock", "store.mark"]);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("store");
    let error = refused(&path);
    assert!(matches!(error, OpenError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn a_shard_that_no_store_writes_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("INSERT INTO shards VALUES (999, 1, 'x')").unwrap();
    drop(connection);
    let error = refused(&path);
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error:?}");
}

/// A file layer of SQLite that cannot share memory stands for a file system that cannot.
#[cfg(unix)]
#[test]
fn a_file_system_without_a_log_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(directory.path().join("store"));
    options.file_layer = Some("unix-none".to_owned());
    let error = SqliteStore::open(&options).err();
    let Some(OpenError::Unavailable { reason, .. }) = error else { panic!("{error:?}") };
    assert!(reason.contains("write-ahead log"), "{reason}");
}
