//! Measures a fresh PostgreSQL store in its own schema.

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
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Measures a new store in this database with this many clients. Its schema stays: the owner of the
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
