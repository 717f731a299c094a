//! Opens the file: takes the lock, checks before it writes, and migrates the schema. A file that is
//! in use, of another program, newer or damaged is not changed.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use crate::{
    Options,
    fault::Fault,
    mark::{Mark, beside, private},
    tables::log,
};

/// Identifies our files in SQLite's header: "Abid" in ASCII.
const APPLICATION_ID: i64 = 0x4162_6964;

/// The schema changes of each version; the first creates version 1. Never change one, only add.
pub(crate) const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_tables.sql"),
    include_str!("migrations/0002_log_numbers.sql"),
    include_str!("migrations/0003_search.sql"),
];

/// Why a store was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another store, in this process or another one, has the file open.
    #[error("{} is in use by another process, or twice by this one", .path.display())]
    InUse {
        /// Path of the store's file.
        path: PathBuf,
    },
    /// The file was written by a newer version of the program.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}: use a newer one",
        .path.display()
    )]
    Newer {
        path: PathBuf,
        /// Schema version of the file.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The file is an SQLite database, but not a store.
    #[error("{} is a database of another program", .path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is damaged, or not a database.
    #[error("{} cannot be read: {reason}", .path.display())]
    Corrupt {
        path: PathBuf,
        /// What SQLite found wrong.
        reason: String,
    },
    /// There was a store, and its files are missing, empty or shorter than they were.
    #[error(
        "{}: {what}. Nothing was changed. Put the missing files back, or a backup; to go on with what is \
         here, or with a new store, remove {} first",
        .path.display(), .remove.display()
    )]
    Lost {
        path: PathBuf,
        /// The missing part, as a sentence.
        what: String,
        /// Path of the file that proves it. If it is removed, the store opens as it is.
        remove: PathBuf,
    },
    /// The disk is full. The stored data is intact.
    #[error(
        "{} cannot be opened, because its disk is full: {reason}. What is stored is whole; make room, then \
         try again",
        .path.display()
    )]
    Full {
        path: PathBuf,
        /// What there was no room for.
        reason: String,
    },
    /// The file system refused; opening may succeed later.
    #[error("{} cannot be opened: {reason}", .path.display())]
    Unavailable {
        path: PathBuf,
        /// The error of the file system or of SQLite.
        reason: String,
    },
}

/// The canonical path of the file, with links resolved. The lock is beside that path, so that a
/// file has one lock.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, OpenError> {
    let unavailable = |reason: String| OpenError::Unavailable { path: path.to_owned(), reason };
    if path.symlink_metadata().is_ok() {
        return path.canonicalize().map_err(|error| unavailable(error.to_string()));
    }
    let name = path.file_name().ok_or_else(|| unavailable("it has no file name".to_owned()))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    Ok(directory.map_err(|error| unavailable(format!("its directory: {error}")))?.join(name))
}

/// Holds the lock on the store until dropped.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

/// Takes the lock. It is a separate file: closing any handle of the database file itself would
/// release the locks that SQLite holds on it.
pub(crate) fn lock(path: &Path) -> Result<Lock, OpenError> {
    let unavailable = |error: io::Error| unavailable(path, "its lock file", &error);
    let mut options = File::options();
    let file = private(options.create(true).truncate(false).write(true))
        .open(beside(path, ".lock"))
        .map_err(unavailable)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(unavailable(error)),
    }
}

/// Reserves the room for the index of the log until dropped.
pub(crate) struct IndexRoom(
    #[expect(dead_code, reason = "closing the file would drop SQLite's locks on it")] Option<File>,
);

/// Reserves room for the index of the log, which SQLite keeps in the `-shm` file, for the longest
/// log: twice the checkpoint size, and as much again for the last group. SQLite would grow the file
/// only after a commit is in the log; on a full disk it would then be unknown whether that commit
/// took effect, and the store would have to stop.
pub(crate) fn reserve_index(
    options: &Options,
    connection: &Connection,
) -> Result<IndexRoom, OpenError> {
    // SQLite maps the index in regions of 32 KiB, each with an entry for 4,096 pages.
    const REGION_BYTES: u64 = 32 << 10;
    const REGION_PAGES: u64 = 4096;

    if options.file_layer.is_some() || !cfg!(unix) {
        return Ok(IndexRoom(None));
    }
    let path = &options.path;
    let page_bytes: u32 = connection
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map_err(|error| failed(path, error))?;
    let pages = u64::from(options.checkpoint_bytes) * 3 / u64::from(page_bytes);
    let bytes = (pages / REGION_PAGES + 1) * REGION_BYTES;
    let lengthen = || {
        let mut file = File::options().write(true).open(beside(path, "-shm"))?;
        let present = file.seek(SeekFrom::End(0))?;
        // Written bytes have their place on the disk; merely extending the file would reserve none.
        io::copy(&mut io::repeat(0).take(bytes.saturating_sub(present)), &mut file)?;
        Ok(file)
    };
    let file = lengthen().map_err(|error| unavailable(path, "its -shm file", &error))?;
    Ok(IndexRoom(Some(file)))
}

/// Opens the connection that writes, and migrates the schema.
pub(crate) fn writer(options: &Options) -> Result<Connection, OpenError> {
    let failed = |error| failed(&options.path, error);
    let marked = match options.file_layer {
        Some(_) => None,
        None => look(&options.path)?,
    };
    let mut connection = connect(options).map_err(failed)?;
    let version = version(&connection, &options.path)?;
    if let Some(rows) = marked {
        check_rows(&connection, &options.path, version, rows)?;
    }
    prepare(&connection, options).map_err(failed)?;
    begin_log(&connection, &options.path)?;
    if options.file_layer.is_none() {
        rewrite_log(&mut connection, &options.path)?;
    }
    empty_log(&connection, &options.path)?;
    migrate(&mut connection, version).map_err(failed)?;
    Ok(connection)
}

/// Creates the mark of a store that its writer has opened. There is none with a test's file layer,
/// which knows no other files.
pub(crate) fn mark(options: &Options, connection: &Connection) -> Result<Option<Mark>, OpenError> {
    if options.file_layer.is_some() {
        return Ok(None);
    }
    let rows = log::last(connection).map_err(|error| failed(&options.path, error))?;
    let mark = Mark::make(&options.path, rows)
        .map_err(|error| unavailable(&options.path, "its mark", &error))?;
    sync_directory(&options.path)?;
    Ok(Some(mark))
}

/// Checks the files before anything is opened: SQLite would create missing ones, and would delete a
/// log without its file. Creates the file of a new store; returns the number in the mark.
fn look(path: &Path) -> Result<Option<u64>, OpenError> {
    let unavailable = |error| unavailable(path, "its files", &error);
    let length = |path: &Path| match path.metadata() {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let log = beside(path, "-wal");
    let file_bytes = length(path).map_err(unavailable)?;
    let log_bytes = length(&log).map_err(unavailable)?.unwrap_or_default();
    let marked = Mark::read(path).map_err(unavailable)?;
    if file_bytes.is_none_or(|bytes| bytes == 0) {
        let gone = if file_bytes.is_none() { "it is missing" } else { "it is empty" };
        let (what, remove) = match marked {
            Some(_) => (format!("{gone}, though a store was here"), Mark::path_of(path)),
            None if log_bytes > 0 => (format!("{gone}, though its log is here"), log),
            None => {
                let mut options = File::options();
                private(options.create(true).append(true)).open(path).map_err(unavailable)?;
                return Ok(None);
            }
        };
        return Err(OpenError::Lost { path: path.to_owned(), what, remove });
    }
    Ok(marked)
}

/// Checks that the store has all rows that its mark promises. Only reads.
fn check_rows(
    connection: &Connection,
    path: &Path,
    version: i64,
    rows: u64,
) -> Result<(), OpenError> {
    let what = if version == 0 {
        "it holds no store, though one was here".to_owned()
    } else {
        let found = log::last(connection).map_err(|error| failed(path, error))?;
        if found >= rows {
            return Ok(());
        }
        let log = beside(path, "-wal");
        format!(
            "its log of runs ends with row {found} and had {rows}: the file is older than it was, or {} \
             was removed or cut",
            log.display()
        )
    };
    Err(OpenError::Lost { path: path.to_owned(), what, remove: Mark::path_of(path) })
}

fn unavailable(path: &Path, what: &str, error: &io::Error) -> OpenError {
    refused(path, Fault::of_file(what, error))
}

/// Opens a connection that only reads.
pub(crate) fn reader(options: &Options) -> Result<Connection, OpenError> {
    let open = || {
        let connection = connect(options)?;
        bound_cache(&connection, options.reader_cache_bytes)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|error| failed(&options.path, error))
}

/// The error of opening that an error of SQLite means.
pub(crate) fn failed(path: &Path, error: rusqlite::Error) -> OpenError {
    refused(path, error.into())
}

fn refused(path: &Path, fault: Fault) -> OpenError {
    let path = path.to_owned();
    match fault {
        Fault::Corrupt(reason) => OpenError::Corrupt { path, reason },
        Fault::Full(reason) => OpenError::Full { path, reason },
        Fault::Unavailable(reason) | Fault::Io(reason) => OpenError::Unavailable { path, reason },
        Fault::Refused(error) => OpenError::Corrupt { path, reason: error.to_string() },
    }
}

fn connect(options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match &options.file_layer {
        Some(layer) => Connection::open_with_flags_and_vfs(&options.path, flags, layer.as_str())?,
        None => Connection::open_with_flags(&options.path, flags)?,
    };
    // Checkpoints happen only when the writer asks for them, and never once it has stopped.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Otherwise a statement is recompiled whenever a bound limit could change its plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

/// SQLite converts the bound to a number of pages at once, so the page size must be set by now.
fn bound_cache(connection: &Connection, bytes: u32) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -i64::from(bytes >> 10))
}

/// The version of the schema, zero for a new file. Only reads.
fn version(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let one = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let header = || {
        let tables = one("SELECT count(*) FROM sqlite_schema")?;
        Ok((one("PRAGMA application_id")?, one("PRAGMA user_version")?, tables))
    };
    let known = MIGRATIONS.len() as i64;
    match header().map_err(|error| failed(path, error))? {
        (0, 0, 0) => Ok(0),
        (APPLICATION_ID, found, _) if found > known => {
            Err(OpenError::Newer { path: path.to_owned(), found, known })
        }
        (APPLICATION_ID, found, _) => Ok(found),
        _ => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

fn prepare(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", options.page_bytes)?;
    bound_cache(connection, options.writer_cache_bytes)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Lets a log shrink again that a long read kept from restarting.
    connection.pragma_update(None, "journal_size_limit", options.checkpoint_bytes)
}

/// Switches the file to a write-ahead log, which not every file system supports.
fn begin_log(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let mode = connection
        .query_row("PRAGMA journal_mode = wal", [], |row| row.get::<_, String>(0))
        .map_err(|error| failed(path, error))?;
    if mode != "wal" {
        let reason = "its file system does not allow a write-ahead log, which needs memory that \
            processes share: use a local disk";
        return Err(OpenError::Unavailable { path: path.to_owned(), reason: reason.to_owned() });
    }
    Ok(())
}

/// Writes the log again unchanged, and syncs it. After a failed sync the log is read back from the
/// operating system's cache and looks intact, but the disk may lack it, and a later sync does not
/// write pages that the cache considers clean. If that log were copied into the file, a power cut
/// during the copy would leave half of it there, and no log to finish it from.
fn rewrite_log(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    // Keeps other connections from restarting the log meanwhile.
    let _alone = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| failed(path, error))?;
    match rewrite(&beside(path, "-wal")) {
        // SQLite creates the log when it writes the first page.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        rewritten => rewritten.map_err(|error| unavailable(path, "its log", &error)),
    }
}

fn rewrite(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut chunk = vec![0; 1 << 20];
    loop {
        let at = file.stream_position()?;
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return file.sync_all();
        }
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&chunk[..length])?;
    }
}

/// Copies the log into the file, syncs it, and truncates the log, so that nothing is appended to
/// what a failed sync may have left.
fn empty_log(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let busy = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))
        .map_err(|error| failed(path, error))?;
    if busy {
        let reason = "its log is being read by another program".to_owned();
        return Err(OpenError::Unavailable { path: path.to_owned(), reason });
    }
    Ok(())
}

fn migrate(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    for (number, sql) in (1..).zip(MIGRATIONS).filter(|(number, _)| *number > version) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// A new file survives a crash only once its directory entry is synced.
fn sync_directory(path: &Path) -> Result<(), OpenError> {
    if !cfg!(unix) {
        return Ok(());
    }
    let directory = File::open(path.parent().unwrap_or(path));
    let synced = directory.and_then(|directory| directory.sync_all());
    synced.map_err(|error| unavailable(path, "its directory", &error))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn rewriting_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for length in [0, 1, (1 << 20) - 1, 1 << 20, (3 << 20) + 5] {
            let bytes: Vec<u8> = (0_u8..=250).cycle().take(length).collect();
            std::fs::write(&path, &bytes).unwrap();
            rewrite(&path).unwrap();
            assert!(std::fs::read(&path).unwrap() == bytes, "{length} bytes");
        }
        assert!(rewrite(&directory.path().join("missing")).is_err());
    }

    /// Sorting and grouping must not fail because a second disk is full.
    #[test]
    fn connections_keep_temporary_data_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("store"));
        for connection in [writer(&options).unwrap(), reader(&options).unwrap()] {
            let place: i64 =
                connection.query_row("PRAGMA temp_store", [], |row| row.get(0)).unwrap();
            assert_eq!(place, 2);
        }
    }

    /// A read reuses the statement that was compiled the first time.
    #[test]
    fn a_bound_limit_does_not_compile_a_statement_anew() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("store"));
        let writer = writer(&options).unwrap();
        let mut statement = writer.prepare("SELECT run FROM runs ORDER BY run LIMIT ?").unwrap();
        for limit in [1, 200, 1000] {
            assert!(!statement.exists([limit]).unwrap());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
