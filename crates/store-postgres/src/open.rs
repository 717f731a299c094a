//! Opens the schema: inspects it first, then migrates the tables. A schema that belongs to another
//! program, is newer, or is damaged is left untouched.
//!
//! Several nodes may open the schema at once. The database lets exactly one of them create the
//! marker table; the others look again. The node that migrates holds a lock on the marker's row;
//! the others look again until it has ended and there is nothing to do. Nodes of an older version
//! keep running meanwhile: a migration keeps everything that they use. The tables are changed in one
//! short transaction, with the version; then the indexes are built that take long.

use std::{borrow::Cow, path::PathBuf, time::Duration};

use abide_core::ids::ShardId;
use tokio::time::{Instant, sleep};
use tokio_postgres::Error;

use crate::{
    Options,
    fault::{self, Fault},
    indexes,
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
/// Existing entries never change. A migration locks the tables that it changes, so it takes only moments:
/// indexes on tables that may be large are built in [`indexes`].
const MIGRATIONS: [Migration; 2] = [
    Migration { sql: include_str!("migrations/0001_tables.sql"), oldest: 1 },
    Migration { sql: include_str!("migrations/0002_search.sql"), oldest: 1 },
];

/// Marks a schema as ours. Its single row holds the version, and the oldest version that a program
/// must know to use it.
const MARKER: &str = "abide_schema";

/// Pause before another attempt.
const PAUSE: Duration = Duration::from_millis(100);

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
            Err(Stop::Again(_)) => sleep(PAUSE).await,
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
    let lost = |error| stopped(options, Fault::from(error));
    let known = MIGRATIONS.len() as i64;
    loop {
        let found = version(session, options).await?;
        // A newer version may have removed indexes.
        let built = found > known
            || (found == known
                && indexes::missing(session, options).await.map_err(lost)?.is_empty());
        if built {
            return Ok(());
        }
        session.run("BEGIN").await.map_err(lost)?;
        let Some(found) = locked_version(session).await.map_err(lost)? else {
            session.run("ROLLBACK").await.map_err(lost)?;
            sleep(PAUSE).await;
            continue;
        };
        if found < known {
            change_tables(session, options, found).await.map_err(lost)?;
        } else {
            indexes::build(session, options).await.map_err(|fault| stopped(options, fault))?;
        }
        session.run("COMMIT").await.map_err(lost)?;
    }
}

/// Locks the version until the end of the transaction, unless another node has locked it. A node that
/// waited for the lock in the database would keep the other one's indexes from being finished.
async fn locked_version(session: &Session) -> Result<Option<i64>, Error> {
    let sql = format!("SELECT version FROM {MARKER} FOR UPDATE SKIP LOCKED");
    session.number(&sql).await
}

/// Brings the tables from this version to the one that the program knows.
async fn change_tables(session: &Session, options: &Options, found: i64) -> Result<(), Error> {
    // Readers of a table queue behind a statement that waits to change it. So the migration waits
    // only briefly for its locks; a restart of the node tries again.
    let patience = options.lock_timeout.as_millis();
    let limits = format!("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {patience}");
    session.run(&limits).await?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        session.run(migration.sql).await?;
    }
    if found == 0 {
        indexes::create(session).await?;
    }
    let (known, oldest) = (MIGRATIONS.len(), MIGRATIONS.last().map_or(0, |last| last.oldest));
    session.run(&format!("UPDATE {MARKER} SET version = {known}, oldest = {oldest}")).await
}

/// Version of the schema, if this program may use it.
async fn version(session: &Session, options: &Options) -> Result<i64, Stop> {
    let place = || options.place();
    let known = MIGRATIONS.len() as i64;
    let sql = format!("SELECT version, oldest FROM {MARKER}");
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
