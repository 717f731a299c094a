//! Which database the store uses, and how. The benchmark measures the defaults.

use std::{sync::Arc, time::Duration};

use crate::{OpenError, hosts::Hosts};

#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) hosts: Arc<Hosts>,
    /// Schema that holds the tables, created if missing. Default `abide`.
    pub schema: String,
    /// Number of write transactions in flight, each on its own connection. Default 2: while one is
    /// being flushed to disk, the next one executes.
    pub writers: usize,
    /// Number of connections for reads. Default 4. One more serves lists, one counts, and one the
    /// registry, so that a lease renewal never queues behind other work.
    pub readers: usize,
    /// Maximum number of batches in one transaction. Default 4,096: bounds how long the first batch
    /// waits for the last.
    pub group_batches_max: usize,
    /// Size of a transaction in bytes from which no further batch joins. Default 8 MiB.
    pub group_bytes_max: usize,
    /// How long the database may work on one statement. Default 10 s.
    pub statement_timeout: Duration,
    /// How long a statement waits for a row lock. Default 5 s.
    pub lock_timeout: Duration,
    /// How long the database keeps an idle transaction open. Default 1.5 s: bounds how long a
    /// stalled node blocks the nodes that take over its shards. See [`Self::for_lease`].
    pub idle_timeout: Duration,
    /// How long to retry failures that wrote nothing: a lost connection, a database that is
    /// starting, too many connections. Default 5 s; after that callers get the error.
    pub retry_for: Duration,
    /// Bound for each registry call, retries and connecting included. Default 1.5 s: a lease must
    /// survive a connection that died silently. See [`Self::for_lease`].
    pub registry_timeout: Duration,
    /// Number of threads for database I/O. Default 1.
    pub threads: usize,
}

impl Options {
    /// Default options for the database at this address:
    /// `postgres://user:password@host:port/database`. Several hosts, separated by commas, are tried
    /// in turn until one accepts writes.
    ///
    /// `sslmode`, `sslrootcert`, `sslcert` and `sslkey` mean the same as for PostgreSQL's own
    /// programs; the files that they name are read by this call.
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

    /// Derives the timeouts from the duration of a node's lease: by the time that other nodes may
    /// take its shards, the database has rolled back its open transactions, and a lost renewal is
    /// noticed early enough to send another.
    pub fn for_lease(mut self, lease: Duration) -> Self {
        let part = (lease * 3 / 10).clamp(Duration::from_millis(50), PART_OF_LEASE);
        (self.idle_timeout, self.registry_timeout) = (part, part);
        self
    }

    /// How long to wait for a response. The database's own timeouts are shorter, so silence beyond
    /// this means that the connection is dead.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout.saturating_add(Duration::from_secs(2))
    }

    /// Names the store in messages: hosts, database and schema, without user and password.
    pub fn place(&self) -> String {
        format!("{} (schema {})", self.hosts, self.schema)
    }

    /// Hosts and database only: without user, password and settings.
    pub fn address(&self) -> String {
        self.hosts.to_string()
    }
}

/// Long enough for a busy node, and three tenths of the default lease.
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
