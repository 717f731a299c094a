//! Large objects as files of a folder, named by their hash.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use bytes::Bytes;
use uuid::Uuid;

use super::{BlobError, BlobId, BlobStore};
use crate::future::BoxFuture;

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
        if !touched(&file, content)? {
            create_folder(&folder)?;
            // Random, because processes in containers on several machines have the same id.
            let unfinished = folder.join(format!(".{id}.{}", Uuid::new_v4().simple()));
            let created = create_new(&unfinished)?;
            let written = write_all(created, content).and_then(|()| fs::rename(&unfinished, &file));
            if let Err(error) = written {
                // What is left is as harmless as after a crash.
                let _ = fs::remove_file(&unfinished);
                return Err(error);
            }
        }
        // Also for a file that was there: who wrote it may not have come to this yet.
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

/// Whether the object is there, which then counts as stored now. A file of other content is damaged and
/// is written again.
fn touched(file: &Path, content: &[u8]) -> io::Result<bool> {
    let mut file = match OpenOptions::new().read(true).append(true).open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if usize::try_from(file.metadata()?.len()) != Ok(content.len()) {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(content.len());
    file.read_to_end(&mut found)?;
    if found != content {
        return Ok(false);
    }
    file.set_modified(SystemTime::now())?;
    file.sync_all()?;
    Ok(true)
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn write_all(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a folder that only this user can read, and those above it, and makes them durable.
fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    create_folder(parent)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        created => created?,
    }
    sync_folder(parent)
}

/// Makes the names in a folder durable, where that can be done.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
