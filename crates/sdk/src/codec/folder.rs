//! Large objects as files of a folder, named by their hash.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;

use super::{BlobError, BlobId, BlobStore};
use crate::future::BoxFuture;

/// Tells apart the files that this process writes at the same time.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A folder of this machine, or one that several machines share, as a store of large objects.
///
/// An object is a file, written and synced under another name first, so that it is never there in
/// part. Only the user of this process can read it. The time of its last change is that of the last
/// time that it was stored, so that old files can be removed by age.
#[derive(Clone, Debug)]
pub struct LocalFolder {
    path: Arc<Path>,
}

impl LocalFolder {
    /// The folder at this path, which is created if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        create_folder(&path)?;
        Ok(Self { path: path.canonicalize()?.into() })
    }

    /// The file of an object, in a folder of 256 so that none becomes too full.
    fn file(&self, id: BlobId) -> (PathBuf, PathBuf) {
        let name = id.to_string();
        let folder = self.path.join(&name[..2]);
        (folder.join(&name), folder)
    }

    fn write(&self, id: BlobId, content: &[u8]) -> io::Result<()> {
        let (file, folder) = self.file(id);
        if touched(&file, content.len())? {
            return Ok(());
        }
        create_folder(&folder)?;
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let unfinished = folder.join(format!(".{id}.{}.{number}", std::process::id()));
        let written = write_new(&unfinished, content).and_then(|()| fs::rename(&unfinished, &file));
        if let Err(error) = written {
            // What is left is as harmless as after a crash.
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        sync_folder(&folder)
    }

    fn read(&self, id: BlobId, size: usize) -> Result<Bytes, BlobError> {
        let unavailable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => BlobError::Missing,
            _ => BlobError::Unavailable(error.to_string()),
        };
        let file = File::open(self.file(id).0).map_err(unavailable)?;
        let bound = u64::try_from(size).unwrap_or(u64::MAX);
        let mut content = Vec::with_capacity(size);
        file.take(bound).read_to_end(&mut content).map_err(unavailable)?;
        Ok(content.into())
    }
}

impl BlobStore for LocalFolder {
    fn put(&self, id: BlobId, content: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let folder = self.clone();
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || folder.write(id, &content)).await;
            let written = written.map_err(io::Error::from).and_then(|written| written);
            written.map_err(|error| BlobError::Unavailable(error.to_string()))
        })
    }

    fn get(&self, id: BlobId, size: usize) -> BoxFuture<'_, Result<Bytes, BlobError>> {
        let folder = self.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || folder.read(id, size)).await;
            read.map_err(|error| BlobError::Unavailable(error.to_string())).and_then(|read| read)
        })
    }
}

/// Whether the object is there, which then counts as stored now. A file of another length is damaged
/// and is written again.
fn touched(file: &Path, length: usize) -> io::Result<bool> {
    let file = match OpenOptions::new().append(true).open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if usize::try_from(file.metadata()?.len()) != Ok(length) {
        return Ok(false);
    }
    file.set_modified(SystemTime::now())?;
    Ok(true)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a folder that only this user can read, and makes it durable.
fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), sync_folder)
}

/// Makes the names in a folder durable, where that can be done.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
