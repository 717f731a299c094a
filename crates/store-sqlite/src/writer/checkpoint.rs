//! When pages are copied from the write-ahead log into the file. SQLite would do it by itself, but
//! would not report a sync that failed meanwhile; here that is an error like any other.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use rusqlite::Connection;

use crate::fault::Fault;

pub(super) struct Checkpoint {
    /// Pages in the log after the last commit.
    log_pages: Arc<AtomicU32>,
    /// Pages in the log when they were last copied. The next copy comes only after as many again,
    /// also when a reader kept the log from restarting.
    copied_pages: u32,
    pages_between: u32,
}

impl Checkpoint {
    pub(super) fn new(log_pages: Arc<AtomicU32>, bytes_between: u32, page_bytes: u32) -> Self {
        let pages_between = bytes_between.checked_div(page_bytes).unwrap_or_default().max(1);
        Self { log_pages, copied_pages: 0, pages_between }
    }

    /// Copies pages if enough have accumulated. Below twice that number, it does not wait for
    /// reads, and copies the pages that none of them needs; above, it waits for them, because with
    /// a read always in flight the log would never restart. Pages that are not copied stay in the
    /// log.
    pub(super) fn when_due(&mut self, connection: &Connection) -> Result<(), Fault> {
        let pages = self.log_pages.load(Relaxed);
        if pages < self.copied_pages {
            self.copied_pages = 0;
        }
        if pages - self.copied_pages < self.pages_between {
            return Ok(());
        }
        let copied = if pages < self.pages_between.saturating_mul(2) {
            copy(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        } else {
            copy(connection, "PRAGMA wal_checkpoint(RESTART)")
        };
        // Retrying after a full disk costs nothing; after a long read it would cost each commit a
        // wait.
        if !matches!(copied, Err(Fault::Full(_))) {
            self.copied_pages = pages;
        }
        copied
    }

    /// Returns the space of the log to the disk, if the file has room for its pages.
    pub(super) fn make_room(&self, connection: &Connection) -> Result<(), Fault> {
        copy(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Leaves an empty log behind. If that fails, the next open reads the log.
    pub(super) fn at_the_end(&self, connection: &Connection) -> Result<(), Fault> {
        copy(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    }
}

/// Copies what it can. If a read that needs the log outlasts the busy timeout, the log cannot
/// restart, and the next copy gets further.
fn copy(connection: &Connection, sql: &str) -> Result<(), Fault> {
    let busy = connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, bool>(0))?;
    if busy {
        return Err(Fault::Unavailable("a long read needs the log".to_owned()));
    }
    Ok(())
}
