//! When pages go from the write-ahead log into the file. SQLite would do it by itself, but would not
//! say when a sync failed on the way; here that is an error like any other.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use rusqlite::Connection;

use crate::fault::Fault;

pub(super) struct Checkpoint {
    /// Pages in the log after the last commit.
    log_pages: Arc<AtomicU32>,
    /// Pages in the log when they were last copied. More is copied only after as many again, also when
    /// a reader or a full disk kept the log from starting over.
    copied_pages: u32,
    pages_between: u32,
}

impl Checkpoint {
    pub(super) fn new(log_pages: Arc<AtomicU32>, bytes_between: u32, page_bytes: u32) -> Self {
        let pages_between = bytes_between.checked_div(page_bytes).unwrap_or_default().max(1);
        Self { log_pages, copied_pages: 0, pages_between }
    }

    /// Copies pages if enough have gathered. A full disk is no failure: the log keeps them.
    pub(super) fn when_due(&mut self, connection: &Connection) -> Result<(), Fault> {
        let pages = self.log_pages.load(Relaxed);
        if pages < self.copied_pages {
            self.copied_pages = 0;
        }
        if pages - self.copied_pages < self.pages_between {
            return Ok(());
        }
        self.copied_pages = pages;
        copy(connection, "PRAGMA wal_checkpoint(PASSIVE)")
    }

    /// Leaves an empty log behind. If that fails, the next open reads the log.
    pub(super) fn at_the_end(&self, connection: &Connection) {
        let _ = copy(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

fn copy(connection: &Connection, sql: &str) -> Result<(), Fault> {
    Ok(connection.prepare_cached(sql)?.query_row([], |_| Ok(()))?)
}
