//! Opens the schema: looks before it touches, brings the tables up to date. A schema that is not ours,
//! newer or damaged keeps its content.
//!
//! Several nodes may open at one time. Who makes the marker table is decided by the database, which lets
//! one of them make it; the others look again. Who brings the tables up to date holds the marker's row;
//! the others wait for it and then find nothing to do.

use std::time::Duration;

use abide_core::ids::ShardId;
use tokio::time::{Instant, sleep};
use tokio_postgres::Error;

use crate::{
    Options,
    fault::{self, Fault},
    session::{Session, quoted, within},
    tables,
};

/// What each version of the schema adds to the one before; the first makes version 1. Never changed,
/// only added to.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/0001_tables.sql")];

/// The table that tells our schemas from others, with the one row that holds the version.
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
    /// The schema was written by a newer version of the program.
    #[error(
        "{place} has schema version {found}, this program knows versions up to {known}: use a newer \
         one"
    )]
    Newer {
        /// The database.
        place: String,
        /// Its version.
        found: i64,
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
    let stop = |fault| match fault {
        Fault::Passing(_) | Fault::Met(_) => Stop::Again(fault),
        fault => Stop::Error(failed(options, fault)),
    };
    // Something may listen there that is no database, or one that stands still.
    let connected = within(options.patience(), Session::connect(options)).await;
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

/// What an error of the database says about it.
fn failed(options: &Options, fault: Fault) -> OpenError {
    let place = options.place();
    match fault {
        Fault::Corrupt(reason) => OpenError::Corrupt { place, reason },
        Fault::Passing(reason)
        | Fault::Met(reason)
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
         version bigint NOT NULL); \
         INSERT INTO {schema}.{MARKER} (only_row, version) VALUES (true, 0); COMMIT"
    )
}

/// Holds the marker's row while it brings the tables up to date.
async fn migrate(session: &Session, options: &Options) -> Result<(), Stop> {
    let stop = |error: Error| match Fault::from(error) {
        fault @ (Fault::Passing(_) | Fault::Met(_)) => Stop::Again(fault),
        fault => Stop::Error(failed(options, fault)),
    };
    // Tables may be large, and whoever waits for them should wait.
    let begin = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
    session.run(begin).await.map_err(stop)?;
    let version = format!("SELECT version FROM {MARKER} FOR UPDATE");
    let found = session.number(&version).await.map_err(stop)?;
    let place = || options.place();
    let (found, known) = match (found, MIGRATIONS.len() as i64) {
        (None, _) => {
            let reason = format!("the table {MARKER} has no row");
            return Err(Stop::Error(OpenError::Corrupt { place: place(), reason }));
        }
        (Some(found), known) if found > known => {
            return Err(Stop::Error(OpenError::Newer { place: place(), found, known }));
        }
        (Some(found), known) => (found, known),
    };
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        session.run(migration).await.map_err(stop)?;
    }
    if found < known {
        let written = format!("UPDATE {MARKER} SET version = {known}");
        session.run(&written).await.map_err(stop)?;
    }
    session.run("COMMIT").await.map_err(stop)
}
