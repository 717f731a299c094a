//! Opens the schema: looks before it touches, brings the tables up to date. A schema that is not ours,
//! newer or damaged keeps its content.
//!
//! Several nodes may open at one time. Who makes the marker table is decided by the database, which lets
//! one of them make it; the others look again. Who brings the tables up to date holds the marker's row;
//! the others wait for it and then find nothing to do. Nodes that run on an older version meanwhile go on:
//! a migration leaves them what they use.

use std::{path::PathBuf, time::Duration};

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
    /// The oldest version of the schema whose programs can work with the result. Nodes of the version
    /// before run on while a node of the next one migrates, so this is that version or an older one:
    /// what they use may be added to, and is removed one version after the last that uses it.
    oldest: i64,
}

/// What each version of the schema adds to the one before; the first makes version 1. Never changed,
/// only added to.
const MIGRATIONS: [Migration; 1] =
    [Migration { sql: include_str!("migrations/0001_tables.sql"), oldest: 1 }];

/// The table that tells our schemas from others, with one row: the version, and the oldest program that
/// may use it.
const MARKER: &str = "abide_schema";

/// Why a store was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The address cannot be read.
    #[error(
        "the address of the database cannot be read: {reason}; write it as \
         postgres://user:password@host:5432/database"
    )]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// A file that the address names cannot be used.
    #[error("the certificate or key in {} cannot be used: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The schema was written by a newer version of the program.
    #[error(
        "{place} has schema version {found}, which programs can use that know version {oldest}; this one \
         knows versions up to {known}: use a newer one"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its version.
        found: i64,
        /// The oldest version that a program must know to use it.
        oldest: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The schema holds tables of another program.
    #[error("{place} holds tables of another program: choose another database or schema")]
    Foreign {
        /// The database.
        place: String,
    },
    /// Tables are missing or damaged.
    #[error("{place} cannot be read: {reason}")]
    Corrupt {
        /// The database.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The database cannot be reached or refused; opening may succeed later.
    #[error("{place} cannot be opened: {reason}")]
    Unavailable {
        /// The database.
        place: String,
        /// Why not.
        reason: String,
    },
}

pub(crate) fn unavailable(options: &Options, reason: String) -> OpenError {
    OpenError::Unavailable { place: options.place(), reason }
}

/// Why this try did not come to its end.
enum Stop {
    /// For good.
    Error(OpenError),
    /// Another node was quicker, or the database is not ready: look again.
    Again(Fault),
}

/// Makes or checks the tables, so that sessions can be opened on them.
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
    // Something may listen there that is no database, or one that stands still.
    let connected = within(patience, Session::connect(options, patience)).await;
    let session = connected.map_err(stop)?;
    let lost = |error: Error| stop(Fault::from(error));
    check_encoding(&session, options).await?;
    match look(&session, options).await.map_err(lost)? {
        Found::Nothing => {
            // Whoever was quicker made the same.
            if let Err(error) = session.run(&new_schema(options)).await {
                let quicker = fault::of_existing_thing(&error);
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
    session.prepare(tables::WRITES).await.map_err(lost)?;
    session.prepare(tables::OTHERS).await.map_err(lost)?;
    let shards = session.number("SELECT count(*) FROM shards").await.map_err(lost)?;
    if shards != Some(i64::from(ShardId::COUNT)) {
        let reason = "rows of the table shards are missing".to_owned();
        return Err(Stop::Error(failed(options, Fault::Corrupt(reason))));
    }
    Ok(())
}

/// Names may have any characters, which only one encoding has.
async fn check_encoding(session: &Session, options: &Options) -> Result<(), Stop> {
    let sql = "SELECT current_setting($1)";
    let found = session.texts(sql, "server_encoding").await;
    match found.map_err(|error| Stop::Again(Fault::from(error)))?.pop() {
        Some(encoding) if encoding != "UTF8" => Err(Stop::Error(unavailable(
            options,
            format!("its encoding is {encoding}: make a database with encoding UTF8"),
        ))),
        _ => Ok(()),
    }
}

/// Whether it is worth another look.
fn stopped(options: &Options, fault: Fault) -> Stop {
    match fault {
        Fault::Passing(_) | Fault::Met(_) => Stop::Again(fault),
        fault => Stop::Error(failed(options, fault)),
    }
}

/// What an error of the database says about it.
fn failed(options: &Options, fault: Fault) -> OpenError {
    let place = options.place();
    match fault {
        Fault::Corrupt(reason) => OpenError::Corrupt { place, reason },
        Fault::Passing(reason)
        | Fault::Met(reason)
        | Fault::Full(reason)
        | Fault::Unavailable(reason)
        | Fault::Unknown(reason) => OpenError::Unavailable { place, reason },
        Fault::Refused(error) => OpenError::Corrupt { place, reason: error.to_string() },
    }
}

/// What the schema holds.
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

/// Makes the schema with its marker, at version zero.
fn new_schema(options: &Options) -> String {
    let schema = quoted(&options.schema);
    format!(
        "BEGIN; CREATE SCHEMA IF NOT EXISTS {schema}; \
         CREATE TABLE {schema}.{MARKER} (only_row boolean PRIMARY KEY CHECK (only_row), \
         version bigint NOT NULL, oldest bigint NOT NULL); \
         INSERT INTO {schema}.{MARKER} (only_row, version, oldest) VALUES (true, 0, 0); COMMIT"
    )
}

/// Brings the tables up to date.
async fn migrate(session: &Session, options: &Options) -> Result<(), Stop> {
    let stop = |error| stopped(options, Fault::from(error));
    let known = MIGRATIONS.len() as i64;
    if version(session, options, "").await? >= known {
        return Ok(());
    }
    // Tables may be large, and whoever waits for another that migrates should wait.
    let begin = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
    session.run(begin).await.map_err(stop)?;
    let found = version(session, options, "FOR UPDATE").await?;
    // Whoever wants to read a table stands behind one that waits to change it. So that waits for a
    // moment only, and is tried again when the node is started again.
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

/// The version of the schema, if this program may use it. `locked` is how the row is locked.
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
