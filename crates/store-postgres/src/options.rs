//! Which database the store is in and how it is used. The defaults are what the benchmark measures.

use std::{sync::Arc, time::Duration};

use crate::{OpenError, hosts::Hosts};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) hosts: Arc<Hosts>,
    /// The schema that holds the tables; it is made if it is not there. Default `abide`.
    pub schema: String,
    /// Transactions of the writer that are under way at one time, each with a connection. Default 2:
    /// while one is written to the disk, the next is executed.
    pub writers: usize,
    /// Connections that read at one time. Default 4. One more reads lists and counts, one more writes
    /// the registry, so that a lease never waits behind other work.
    pub readers: usize,
    /// Most batches in one transaction. Default 4,096: bounds how long the first one waits for the
    /// last.
    pub group_batches_max: usize,
    /// Bytes in one transaction after which no further batch joins. Default 8 MiB.
    pub group_bytes_max: usize,
    /// How long the database works on one statement before it gives up. Default 10 s.
    pub statement_timeout: Duration,
    /// How long a statement waits for a row that another transaction holds. Default 5 s.
    pub lock_timeout: Duration,
    /// How long the database keeps a transaction whose node says nothing. Default 1.5 s: a node that
    /// stands still holds up others that take its shards no longer than this. See [`Self::for_lease`].
    pub idle_timeout: Duration,
    /// How long what failed without a trace is tried again: a lost connection, a database that starts,
    /// too many connections. Default 5 s; after that callers are told.
    pub retry_for: Duration,
    /// How long the registry waits for an answer, tries again and takes to connect. Default 1.5 s: a lease
    /// must survive a connection that has died without a word. See [`Self::for_lease`].
    pub registry_timeout: Duration,
    /// Threads that talk to the database. Default 1.
    pub threads: usize,
}

impl Options {
    /// The defaults, for the database at this address: `postgres://user:password@host:port/database`.
    /// Several hosts, with commas between them, are tried in turn for the one that can be written to.
    ///
    /// `sslmode`, `sslrootcert`, `sslcert` and `sslkey` mean what they mean to PostgreSQL's own programs;
    /// the files that they name are read here.
    pub fn new(address: &str) -> Result<Self, OpenError> {
        Ok(Self {
            hosts: Arc::new(Hosts::read(address)?),
            schema: "abide".to_owned(),
            writers: 2,
            readers: 4,
            group_batches_max: 4096,
            group_bytes_max: 8 << 20,
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: PART_OF_LEASE,
            retry_for: Duration::from_secs(5),
            registry_timeout: PART_OF_LEASE,
            threads: 1,
        })
    }

    /// Fits a node whose lease lasts so long: when others may take its shards, the database has long
    /// undone what the node left unfinished; and a renewal that is lost is noticed in time for others.
    pub fn for_lease(mut self, lease: Duration) -> Self {
        let part = (lease * 3 / 10).clamp(Duration::from_millis(50), PART_OF_LEASE);
        (self.idle_timeout, self.registry_timeout) = (part, part);
        self
    }

    /// How long an answer may take: the database gives up before, so none after this means that the
    /// connection is dead.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout.saturating_add(Duration::from_secs(2))
    }

    /// Where the store is, for messages: without user and password.
    pub fn place(&self) -> String {
        format!("{} (schema {})", self.hosts, self.schema)
    }

    /// The address with hosts and database alone: without user, password and settings.
    pub fn address(&self) -> String {
        self.hosts.to_string()
    }
}

/// Enough for a node that is busy, and three tenths of the usual lease.
const PART_OF_LEASE: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_never_show_the_password() {
        let options = Options::new("postgres://user:secret@host:7/things").unwrap();
        assert_eq!(options.place(), "postgres://host:7/things (schema abide)");
        assert!(!format!("{options:?}").contains("secret"));
        let several = Options::new("postgres://user:secret@one,two:7/things").unwrap();
        assert_eq!(several.place(), "postgres://one:5432,two:7/things (schema abide)");
        for wrong in ["postgres://user:secret@", "host", "postgres://user:secret@host:port/x"] {
            let refused = Options::new(wrong).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn times_that_a_lease_depends_on_are_a_part_of_it() {
        let idle = |lease_ms| {
            let options = Options::new("postgres://host/things").unwrap();
            let options = options.for_lease(Duration::from_millis(lease_ms));
            assert_eq!(options.idle_timeout, options.registry_timeout);
            options.idle_timeout.as_millis()
        };
        assert_eq!([idle(200), idle(1000), idle(5000), idle(60_000)], [60, 300, 1500, 1500]);
    }
}
