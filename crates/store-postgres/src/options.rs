//! Which database the store is in and how it is used. The defaults are what the benchmark measures.

use std::{fmt, time::Duration};

use tokio_postgres::{Config, config::TargetSessionAttrs};

use crate::OpenError;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) connect: Config,
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
    /// stands still holds up others that take its shards no longer than this.
    pub idle_timeout: Duration,
    /// How long what failed without a trace is tried again: a lost connection, a database that starts,
    /// too many connections. Default 5 s; after that callers are told.
    pub retry_for: Duration,
    /// Threads that talk to the database. Default 1.
    pub threads: usize,
}

impl Options {
    /// The defaults, for the database at this address: `postgres://user:password@host:port/database`.
    /// Several hosts, with commas between them, are tried in turn for the one that can be written to.
    pub fn new(address: &str) -> Result<Self, OpenError> {
        let refuse = |reason: String| OpenError::Address { reason };
        let mut connect: Config = address.parse().map_err(|error| {
            // The message names the part at fault and never the password.
            refuse(source_of(&error))
        })?;
        if connect.get_hosts().is_empty() {
            return Err(refuse("it names no host".to_owned()));
        }
        connect.target_session_attrs(TargetSessionAttrs::ReadWrite);
        connect.connect_timeout(Duration::from_secs(5));
        connect.keepalives_idle(Duration::from_secs(10));
        connect.tcp_user_timeout(Duration::from_secs(15));
        if connect.get_application_name().is_none() {
            connect.application_name("abide");
        }
        Ok(Self {
            connect,
            schema: "abide".to_owned(),
            writers: 2,
            readers: 4,
            group_batches_max: 4096,
            group_bytes_max: 8 << 20,
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_millis(1500),
            retry_for: Duration::from_secs(5),
            threads: 1,
        })
    }

    /// How long an answer may take: the database gives up before, so none after this means that the
    /// connection is dead.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout.saturating_add(Duration::from_secs(2))
    }

    /// Where the store is, for messages: without user and password.
    pub fn place(&self) -> String {
        Place(self).to_string()
    }
}

fn source_of(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Writes hosts, database and schema.
struct Place<'a>(&'a Options);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use tokio_postgres::config::Host;
        let connect = &self.0.connect;
        f.write_str("postgres://")?;
        for (index, host) in connect.get_hosts().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            let port = connect.get_ports().get(index).or(connect.get_ports().first());
            write!(f, ":{}", port.copied().unwrap_or(5432))?;
        }
        let database = connect.get_dbname().or(connect.get_user()).unwrap_or_default();
        write!(f, "/{database} (schema {})", self.0.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_never_show_the_password() {
        let options = Options::new("postgres://user:secret@host:7/things").unwrap();
        assert_eq!(options.place(), "postgres://host:7/things (schema abide)");
        assert!(!format!("{options:?}").contains("secret"));
        for wrong in ["postgres://user:secret@", "host", "postgres://user:secret@host:port/x"] {
            let refused = Options::new(wrong).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
