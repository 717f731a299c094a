//! Measures a fresh SQLite store, which is removed again.

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
    /// The store was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A batch was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The store was not removed.
    #[error("{} cannot be removed: {error}", .path.display())]
    Remove { path: PathBuf, error: io::Error },
}

/// Lets so many clients work on a new store in this directory.
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
