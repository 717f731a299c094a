//! Where an engine keeps its state: an SQLite file, or a PostgreSQL database.

use std::path::Path;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use std::sync::Arc;
#[cfg(feature = "postgres")]
use std::time::Duration;

use abide_engine::Options;
#[cfg(feature = "postgres")]
use abide_engine::{LeaseOptions, Membership};

use crate::Embedded;

/// Addresses that begin so are databases; all others are files.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The name under which an embedded engine holds the lease of its database. All of them share it, so
/// that the database keeps one row.
#[cfg(feature = "postgres")]
const NODE: &str = "embedded";

/// How long to wait for the lease of a process that ended without releasing it, with room for a slow
/// database.
#[cfg(feature = "postgres")]
const LEASE_PATIENCE: Duration = Duration::from_secs(3 * LeaseOptions::LEASE.as_secs());

/// Why an engine was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The SQLite file cannot be used.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    File(#[from] abide_store_sqlite::OpenError),
    /// The PostgreSQL database cannot be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Database(#[from] abide_store_postgres::OpenError),
    /// Another process serves the database.
    #[error(
        "{place} is in use: an engine or a server holds its lease; stop that one, or connect to it"
    )]
    InUse {
        /// The database, without user and password.
        place: String,
    },
    /// The program was built without this kind of store.
    #[error(
        "this program was built without {what}: enable the feature `{feature}` of the crate `abide`"
    )]
    Unsupported {
        /// The kind of store.
        what: &'static str,
        /// The feature that adds it.
        feature: &'static str,
    },
    /// The task that opens the store did not end.
    #[error("the store was not opened: {0}")]
    Aborted(#[from] tokio::task::JoinError),
}

/// Opens the store at this place, and starts an engine on it.
pub(crate) async fn open(mut options: Options, place: &Path) -> Result<Embedded, OpenError> {
    // Nothing outside a process reaches the engine in it, and one process at a time has the store.
    options.limits.workers_outlive_owner = false;
    match place.to_str().filter(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme))) {
        Some(address) => open_database(options, address).await,
        None => open_file(options, place).await,
    }
}

#[cfg(feature = "sqlite")]
async fn open_file(options: Options, path: &Path) -> Result<Embedded, OpenError> {
    let file = abide_store_sqlite::Options::new(path);
    let open = move || abide_store_sqlite::SqliteStore::open(&file);
    let store = tokio::task::spawn_blocking(open).await??;
    Ok(Embedded::start(Arc::new(store), options).await)
}

#[cfg(not(feature = "sqlite"))]
#[expect(clippy::unused_async, reason = "it is awaited like the one that opens a file")]
async fn open_file(_: Options, _: &Path) -> Result<Embedded, OpenError> {
    Err(OpenError::Unsupported { what: "SQLite", feature: "embedded" })
}

/// The engine is the only one on its database, by a lease: others could reach its runs only through a
/// server.
#[cfg(feature = "postgres")]
async fn open_database(options: Options, address: &str) -> Result<Embedded, OpenError> {
    let database = abide_store_postgres::Options::new(address)?.for_lease(LeaseOptions::LEASE);
    let place = database.place();
    let open = move || abide_store_postgres::PostgresStore::open(&database);
    let store = Arc::new(tokio::task::spawn_blocking(open).await??);
    let membership = Some(Membership::only(NODE));
    let starting = Embedded::start(store, Options { membership, ..options });
    // An engine that is dropped before it has the lease has changed nothing.
    tokio::time::timeout(LEASE_PATIENCE, starting).await.map_err(|_| OpenError::InUse { place })
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "it is awaited like the one that opens a database")]
async fn open_database(_: Options, _: &str) -> Result<Embedded, OpenError> {
    Err(OpenError::Unsupported { what: "PostgreSQL", feature: "postgres" })
}
