//! When pages are copied from the write-ahead log into the file. SQLite would do it by itself, but
//! would not report a sync that failed meanwhile; here that is an error like any other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::fault::Fault;

/// After a full disk kept pages from being copied, the next copy waits this long: each attempt writes
/// all of them again until it fails.
const PAUSE_WHEN_FULL: Duration = Duration::from_secs(1);

/// Bytes of large batches after which pages are copied. Their pages change only once, so waiting saves
/// nothing, and all commits wait while they are copied.
const LARGE_BYTES_BETWEEN: usize = 16 << 20;

pub(super) struct Checkpoint {
    /// Pages in the log after the last commit.
    log_pages: Arc<AtomicU32>,
    /// Pages in the log when they were last copied. The next copy comes only after as many again,
    /// also when a reader kept the log from restarting.
    copied_pages: u32,
    pub(super) pages_between: u32,
    /// Bytes of large batches that were committed since the last copy.
    large_bytes: usize,
    /// When the disk was last too full for the copy, or for a commit after it.
    pub(super) full_at: Option<Instant>,
}

impl Checkpoint {
    pub(super) fn new(log_pages: Arc<AtomicU32>, bytes_between: u32, page_bytes: u32) -> Self {
        let pages_between = bytes_between.checked_div(page_bytes).unwrap_or_default().max(1);
        Self { log_pages, copied_pages: 0, pages_between, large_bytes: 0, full_at: None }
    }

    /// Large batches of so many bytes were committed.
    pub(super) const fn wrote_large(&mut self, bytes: usize) {
        self.large_bytes += bytes;
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
        let many = pages - self.copied_pages >= self.pages_between
            || self.large_bytes >= LARGE_BYTES_BETWEEN;
        if !many || self.pausing() {
            return Ok(());
        }
        let copied = if pages < self.pages_between.saturating_mul(2) {
            copy(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        } else {
            copy(connection, "PRAGMA wal_checkpoint(RESTART)")
        };
        // After a full disk the copy is retried soon, without waiting for more pages.
        if matches!(copied, Err(Fault::Full(_))) {
            self.pause();
        } else {
            (self.copied_pages, self.large_bytes) = (pages, 0);
        }
        copied
    }

    /// Whether the disk was full a moment ago, so that trying again would only cost time.
    pub(super) fn pausing(&self) -> bool {
        self.full_at.is_some_and(|at| at.elapsed() < PAUSE_WHEN_FULL)
    }

    /// The disk is full, and copying pages does not change that.
    pub(super) fn pause(&mut self) {
        self.full_at = Some(Instant::now());
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
