//! Databases that are created for a measurement and dropped after it, and their statistics about
//! the work done.

use std::{collections::BTreeMap, future::Future};

use abide_command::Failed;
use abide_core::ids::ShardId;
use tokio_postgres::{Client, Error, NoTls, types::ToSql};

use crate::machine::{family_cpu, parent_of};

/// A PostgreSQL server, with a user that may create databases.
pub(super) struct DatabaseServer {
    address: Address,
    connection: Client,
}

impl DatabaseServer {
    pub(super) async fn connect(address: &str) -> Result<Self, Failed> {
        let address = Address::parse(address)?;
        let connection = connect(&address.0).await?;
        Ok(Self { address, connection })
    }

    /// Creates a database, measures in it, and drops it, whatever the outcome.
    pub(super) async fn with_database<T, F: Future<Output = Result<T, Failed>>>(
        &self,
        purpose: &str,
        measure: impl FnOnce(Database) -> F,
    ) -> Result<T, Failed> {
        let name = format!("abide_bench_{}_{purpose}", std::process::id());
        let make = format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0");
        self.connection.batch_execute(&make).await.map_err(|error| {
            refused(&error).hint("name a user that may make databases: ALTER USER … CREATEDB")
        })?;
        let measured = async {
            let address = self.address.of_database(&name);
            let connection = connect(&address).await?;
            measure(Database { address, connection }).await
        };
        let measured = measured.await;
        let drop = format!("DROP DATABASE {name} WITH (FORCE)");
        self.connection.batch_execute(&drop).await.map_err(|error| refused(&error))?;
        measured
    }
}

/// A database for one measurement.
pub(super) struct Database {
    /// Address for the servers.
    pub(super) address: String,
    connection: Client,
}

/// Work done in a database so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatabaseWork {
    /// Bytes of the write-ahead log, which all databases of the server share.
    pub(super) log_bytes: f64,
    /// Rows that were inserted, updated or deleted.
    pub(super) rows: f64,
    pub(super) commits: f64,
    /// Bytes of tables and indexes.
    pub(super) table_bytes: f64,
    /// Processor time of the whole server in seconds, if it is on this machine.
    pub(super) cpu_s: Option<f64>,
}

impl DatabaseWork {
    /// The difference to an earlier measurement.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            log_bytes: self.log_bytes - before.log_bytes,
            rows: self.rows - before.rows,
            commits: self.commits - before.commits,
            table_bytes: self.table_bytes - before.table_bytes,
            cpu_s: self.cpu_s.zip(before.cpu_s).map(|(now, before)| now - before),
        }
    }
}

/// Counts of rows and commits lag behind by up to a second.
const WORK: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8, \
    (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::float8 FROM pg_stat_user_tables), \
    (SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = current_database()), \
    (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8 FROM pg_stat_user_tables)";

impl Database {
    pub(super) async fn work(&self) -> Result<DatabaseWork, Failed> {
        let row = self.connection.query_one(WORK, &[]).await.map_err(|error| refused(&error))?;
        Ok(DatabaseWork {
            log_bytes: row.get(0),
            rows: row.get(1),
            commits: row.get(2),
            table_bytes: row.get(3),
            cpu_s: self.server_process().await?.and_then(family_cpu).map(|cpu| cpu.as_secs_f64()),
        })
    }

    /// The first process of the server, if it runs on this machine: the parent of the process at
    /// the other end of this connection.
    async fn server_process(&self) -> Result<Option<u32>, Failed> {
        let here =
            "SELECT pg_backend_pid(), coalesce(inet_server_addr() = inet_client_addr(), true)";
        let row = self.connection.query_one(here, &[]).await.map_err(|error| refused(&error))?;
        let (process, here): (i32, bool) = (row.get(0), row.get(1));
        let process = u32::try_from(process).ok().filter(|_| here);
        Ok(process.and_then(|process| parent_of(process, "postgres")))
    }

    /// Which node serves which shards, for the shards that are claimed.
    pub(super) async fn owners(&self) -> Result<BTreeMap<String, Vec<ShardId>>, Failed> {
        // An owner is a process of a node: the node's name, and a suffix that distinguishes its
        // processes.
        let claimed = "SELECT split_part(owner, '#', 1), shard FROM abide.shards WHERE owner <> ''";
        let nothing: &[&(dyn ToSql + Sync)] = &[];
        let rows =
            self.connection.query(claimed, nothing).await.map_err(|error| refused(&error))?;
        let mut owners = BTreeMap::<_, Vec<_>>::new();
        for row in rows {
            let (owner, shard): (String, i16) = (row.get(0), row.get(1));
            owners
                .entry(owner)
                .or_default()
                .extend(u8::try_from(shard).ok().and_then(ShardId::new));
        }
        Ok(owners)
    }
}

/// The address of a database, whose name can be replaced.
#[derive(Debug)]
struct Address(String);

impl Address {
    fn parse(text: &str) -> Result<Self, Failed> {
        let known = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
        if !known {
            return Err(Failed::usage("the address of the database cannot be read")
                .hint("write it as postgres://user:password@host:5432/database"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The same server, another database.
    fn of_database(&self, name: &str) -> String {
        let (address, options) = match self.0.split_once('?') {
            Some((address, options)) => (address, format!("?{options}")),
            None => (self.0.as_str(), String::new()),
        };
        let hosts = address.find("://").map_or(0, |at| at + 3);
        let end = address[hosts..].find('/').map_or(address.len(), |at| hosts + at);
        format!("{}/{name}{options}", &address[..end])
    }
}

async fn connect(address: &str) -> Result<Client, Failed> {
    let (client, connection) =
        tokio_postgres::connect(address, NoTls).await.map_err(|error| refused(&error))?;
    // The task ends with the client, and users of the client get the error.
    tokio::spawn(connection);
    Ok(client)
}

/// The message of the database, which the error's own text leaves out.
fn refused(error: &Error) -> Failed {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    Failed::refused(format_args!("the database: {error}{}", cause.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_of_the_same_server_has_its_own_name() {
        let other = |text: &str| Address::parse(text).expect("an address").of_database("other");
        assert_eq!(other("postgres://me:pw@db:7/things"), "postgres://me:pw@db:7/other");
        assert_eq!(other("postgresql://one,two"), "postgresql://one,two/other");
        assert_eq!(other("postgres://db/x?a=/b"), "postgres://db/other?a=/b");
        assert!(Address::parse("mysql://db/x").is_err());
    }
}
