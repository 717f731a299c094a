//! Measures a fresh SQLite store, which is removed afterwards.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use abide_store::CommitError;
use abide_store_sqlite::{OpenError, Options, SqliteStore};

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
    #[error("{} cannot be removed: {error}", .path.display())]
    Remove { path: PathBuf, error: io::Error },
}

/// Measures a new store in this directory with this many clients.
pub fn fresh(
    directory: &Path,
    workload: Workload,
    clients: usize,
    until: Until,
) -> Result<Measured, Error> {
    let store = SqliteStore::open(&Options::new(directory.join("fresh")))?;
    let measured = drive(&store, &mut crowd(clients, workload), until)?;
    drop(store);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let path = directory.join(format!("fresh{suffix}"));
        if path.exists() {
            fs::remove_file(&path).map_err(|error| Error::Remove { path, error })?;
        }
    }
    Ok(measured)
}
