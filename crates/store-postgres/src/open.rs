//! Opens the schema: inspects it first, then migrates the tables. A schema that belongs to another
//! program, is newer, or is damaged is left untouched.
//!
//! Several nodes may open the schema at once. The database lets exactly one of them create the
//! marker table; the others look again. The node that migrates holds a lock on the marker's row;
//! the others wait for it and then find nothing to do. Nodes of an older version keep running
//! meanwhile: a migration keeps everything that they use.

use std::{borrow::Cow, path::PathBuf, time::Duration};

use abide_core::ids::ShardId;
use tokio::time::{Instant, sleep};
use tokio_postgres::Error;

use crate::{
    Options,
    fault::{self, Fault},
    session::{Session, quoted, within},
    tables,
};

/// One step from a version of the schema to the next.
struct Migration {
    sql: &'static str,
    /// Oldest schema version whose programs can work with the result. Nodes of the previous version
    /// keep running while a node of the next one migrates, so this is at most the previous version:
    /// a migration may add to what they use, and removes it one version after the last version that
    /// uses it.
    oldest: i64,
}

/// What each version of the schema adds to the previous one; the first entry creates version 1.
/// Existing entries never change.
const MIGRATIONS: [Migration; 2] = [
    Migration { sql: include_str!("migrations/0001_tables.sql"), oldest: 1 },
    Migration { sql: include_str!("migrations/0002_search.sql"), oldest: 1 },
];

/// Marks a schema as ours. Its single row holds the version, and the oldest version that a program
/// must know to use it.
const MARKER: &str = "abide_schema";

/// Why a store was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error(
        "the address of the database cannot be read: {reason}; write it as \
         postgres://user:password@host:5432/database"
    )]
    Address { reason: String },
    /// A file that the address names cannot be used.
    #[error("the certificate or key in {} cannot be used: {reason}", path.display())]
    Certificate { path: PathBuf, reason: String },
    /// A newer version of the program migrated the schema.
    #[error(
        "{place} has schema version {found}, which programs can use that know version {oldest}; this one \
         knows versions up to {known}: use a newer one"
    )]
    Newer {
        place: String,
        found: i64,
        /// The oldest version that a program must know to use it.
        oldest: i64,
        /// Newest version that this program knows.
        known: i64,
    },
    /// The schema holds tables of another program.
    #[error("{place} holds tables of another program: choose another database or schema")]
    Foreign { place: String },
    /// Tables are missing or damaged.
    #[error("{place} cannot be read: {reason}")]
    Corrupt { place: String, reason: String },
    /// The database cannot be reached or refused access; opening may succeed later.
    #[error("{place} cannot be opened: {reason}")]
    Unavailable { place: String, reason: String },
}

pub(crate) fn unavailable(options: &Options, reason: String) -> OpenError {
    OpenError::Unavailable { place: options.place(), reason }
}

/// Why one attempt to open stopped.
enum Stop {
    Error(OpenError),
    /// Another node was faster, or the database is not ready: try again.
    Again(Fault),
}

/// Creates or migrates the tables, so that sessions can use them.
pub(crate) async fn prepare(options: &Options) -> Result<(), OpenError> {
    let deadline = Instant::now() + options.retry_for;
    loop {
        match attempt(options).await {
            Ok(()) => return Ok(()),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Again(fault)) if Instant::now() >= deadline => {
                return Err(failed(options, fault));
            }
            Err(Stop::Again(_)) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn attempt(options: &Options) -> Result<(), Stop> {
    let stop = |fault| stopped(options, fault);
    let patience = options.patience();
    // The peer may be no database at all, or one that hangs.
    let connected = within(patience, Session::connect(options, patience)).await;
    let session = connected.map_err(stop)?;
    let lost = |error: Error| stop(Fault::from(error));
    check_encoding(&session, options).await?;
    match look(&session, options).await.map_err(lost)? {
        Found::Nothing => {
            // The node that was faster created the same.
            if let Err(error) = session.run(&new_schema(options)).await {
                let quicker = fault::is_duplicate_object(&error);
                let fault = Fault::from(error);
                return Err(if quicker { Stop::Again(fault) } else { stop(fault) });
            }
        }
        Found::Ours => {}
        Found::Others => {
            let place = options.place();
            return Err(Stop::Error(OpenError::Foreign { place }));
        }
    }
    migrate(&session, options).await?;
    let statements = [tables::WRITES, tables::OTHERS].concat();
    session.prepare(statements.into_iter().map(Cow::Borrowed)).await.map_err(lost)?;
    let shards = session.number("SELECT count(*) FROM shards").await.map_err(lost)?;
    if shards != Some(i64::from(ShardId::COUNT)) {
        let reason = "rows of the table shards are missing".to_owned();
        return Err(Stop::Error(failed(options, Fault::Corrupt(reason))));
    }
    Ok(())
}

/// Names may contain any character, which requires UTF-8.
async fn check_encoding(session: &Session, options: &Options) -> Result<(), Stop> {
    let sql = "SELECT current_setting($1)";
    let found = session.texts(sql, "server_encoding").await;
    match found.map_err(|error| Stop::Again(Fault::from(error)))?.pop() {
        Some(encoding) if encoding != "UTF8" => Err(Stop::Error(unavailable(
            options,
            format!("its encoding is {encoding}: create a database with encoding UTF8"),
        ))),
        _ => Ok(()),
    }
}

/// Decides whether to try again.
fn stopped(options: &Options, fault: Fault) -> Stop {
    match fault {
        Fault::Passing(_) | Fault::Conflict(_) => Stop::Again(fault),
        fault => Stop::Error(failed(options, fault)),
    }
}

/// Converts a failure of the database into an error of opening.
fn failed(options: &Options, fault: Fault) -> OpenError {
    let place = options.place();
    match fault {
        Fault::Corrupt(reason) => OpenError::Corrupt { place, reason },
        Fault::Passing(reason)
        | Fault::Conflict(reason)
        | Fault::Full(reason)
        | Fault::Unavailable(reason)
        | Fault::Unknown(reason) => OpenError::Unavailable { place, reason },
        Fault::Refused(error) => OpenError::Corrupt { place, reason: error.to_string() },
    }
}

enum Found {
    Nothing,
    Ours,
    Others,
}

async fn look(session: &Session, options: &Options) -> Result<Found, Error> {
    let names = session.texts(
        "SELECT table_name::text FROM information_schema.tables WHERE table_schema = $1",
        &options.schema,
    );
    let names = names.await?;
    Ok(if names.iter().any(|name| name == MARKER) {
        Found::Ours
    } else if names.is_empty() {
        Found::Nothing
    } else {
        Found::Others
    })
}

/// SQL that creates the schema with its marker, at version zero.
fn new_schema(options: &Options) -> String {
    let schema = quoted(&options.schema);
    format!(
        "BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}; \
         CREATE TABLE {schema}.{MARKER} (only_row boolean PRIMARY KEY CHECK (only_row), \
         version bigint NOT NULL, oldest bigint NOT NULL); \
         INSERT INTO {schema}.{MARKER} (only_row, version, oldest) VALUES (true, 0, 0); COMMIT"
    )
}

async fn migrate(session: &Session, options: &Options) -> Result<(), Stop> {
    let stop = |error| stopped(options, Fault::from(error));
    let known = MIGRATIONS.len() as i64;
    if version(session, options, "").await? >= known {
        return Ok(());
    }
    // Tables may be large, and a node should wait for another that is migrating.
    let begin = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
    session.run(begin).await.map_err(stop)?;
    let found = version(session, options, "FOR UPDATE").await?;
    // Readers of a table queue behind a statement that waits to change it. So the migration waits
    // only briefly for its locks; a restart of the node tries again.
    let patience = options.lock_timeout.as_millis();
    session.run(&format!("SET LOCAL lock_timeout = {patience}")).await.map_err(stop)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        session.run(migration.sql).await.map_err(stop)?;
    }
    if let Some(last) = MIGRATIONS.last().filter(|_| found < known) {
        let oldest = last.oldest;
        let written = format!("UPDATE {MARKER} SET version = {known}, oldest = {oldest}");
        session.run(&written).await.map_err(stop)?;
    }
    session.run("COMMIT").await.map_err(stop)
}

/// Version of the schema, if this program may use it. `locked` is the row lock clause of the query.
async fn version(session: &Session, options: &Options, locked: &str) -> Result<i64, Stop> {
    let place = || options.place();
    let known = MIGRATIONS.len() as i64;
    let sql = format!("SELECT version, oldest FROM {MARKER} {locked}");
    let row = session.numbers(&sql).await;
    match row.map_err(|error| stopped(options, Fault::from(error)))? {
        None => {
            let reason = format!("the table {MARKER} has no row");
            Err(Stop::Error(OpenError::Corrupt { place: place(), reason }))
        }
        Some([found, oldest]) if oldest > known => {
            Err(Stop::Error(OpenError::Newer { place: place(), found, oldest, known }))
        }
        Some([found, _]) => Ok(found),
    }
}
