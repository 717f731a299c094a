//! Measures a fresh PostgreSQL store, in a schema of its own.

use std::time::{SystemTime, UNIX_EPOCH};

use abide_store::CommitError;
use abide_store_postgres::{Counts, OpenError, Options, PostgresStore};

use crate::{
    clients::{Measured, Until, drive},
    workload::{Workload, crowd},
};

/// Why a store could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A batch was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Lets so many clients work on a new store in this database. Its schema stays: whoever made the
/// database drops it.
pub fn fresh(
    options: &Options,
    workload: Workload,
    clients: usize,
    until: Until,
) -> Result<(Measured, Counts), Error> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut options = options.clone();
    options.schema = format!("bench_{}", since_epoch.as_micros());
    let store = PostgresStore::open(&options)?;
    let measured = drive(&store, &mut crowd(clients, workload), until)?;
    Ok((measured, store.counts()))
}
