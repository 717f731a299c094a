//! Replays recorded histories with the current code.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use abide_core::{
    codec::{self, DecodeError},
    event::Event,
};
use abide_sdk::{Codecs, Registry, Workflow, codec::CodecError, replay};
use bytes::Bytes;

pub use abide_sdk::replay::ReplayError;

/// A recorded history: events from a client, or the bytes of [`record`].
pub trait History {
    fn events(self) -> Result<Vec<Event>, DecodeError>;
}

impl History for Vec<Event> {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        Ok(self)
    }
}

impl History for &[Event] {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        Ok(self.to_vec())
    }
}

impl History for Bytes {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(self)
    }
}

impl History for Vec<u8> {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(self.into())
    }
}

impl History for &[u8] {
    fn events(self) -> Result<Vec<Event>, DecodeError> {
        codec::decode_events(Bytes::copy_from_slice(self))
    }
}

/// Encodes a history, to be kept beside the tests. Every later version can decode it.
pub fn record(events: &[Event]) -> Bytes {
    codec::encode_events(events)
}

/// Checks that the current code of `W` takes the steps of a recorded history:
/// `replay_history::<Order>(include_bytes!("order.history").as_slice())?`.
///
/// The history may be of an open run. Payloads are not compared.
pub fn replay_history<W: Workflow>(history: impl History) -> Result<(), ReplayError> {
    replay::replay(&only::<W>(), history.events()?)
}

/// The events of a history whose data is encoded, as `abide workflow history --record` writes it:
/// `replay_history::<Order>(decode_history(bytes, &codecs).await?)?`.
pub async fn decode_history(
    history: impl History,
    codecs: &Codecs,
) -> Result<Vec<Event>, CodecError> {
    let mut events =
        history.events().map_err(|error| CodecError::refused("history", error.to_string()))?;
    codecs.decode_history(&mut events).await?;
    Ok(events)
}

/// Checks the current code of `W` against the history in a file:
/// `replay_file::<Order>("tests/order-7.history")?`.
pub fn replay_file<W: Workflow>(path: impl AsRef<Path>) -> Result<(), FolderError> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(unreadable(path))?;
    replay_history::<W>(bytes).map_err(|error| FolderError::Broken(vec![(path.to_owned(), error)]))
}

/// Why replaying a file or a folder failed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder, or a file of it, cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The folder or the file.
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The folder has no history, so nothing was checked.
    #[error("{} has no file whose name ends in .history", .0.display())]
    Empty(PathBuf),
    /// Some histories do not replay; the others do.
    #[error("{}", shown(.0))]
    Broken(Vec<(PathBuf, ReplayError)>),
}

/// Replays every file of a folder whose name ends in `.history` with the code of `W`, and returns
/// their number: `replay_folder::<Order>("tests/histories/order")?`.
pub fn replay_folder<W: Workflow>(folder: impl AsRef<Path>) -> Result<usize, FolderError> {
    let folder = folder.as_ref();
    let (registry, files) = (only::<W>(), files(folder)?);
    let mut broken = Vec::new();
    for path in &files {
        let bytes = fs::read(path).map_err(unreadable(path))?;
        let replayed = bytes.events().map_err(ReplayError::from);
        if let Err(error) = replayed.and_then(|events| replay::replay(&registry, events)) {
            broken.push((path.clone(), error));
        }
    }
    match (files.len(), broken.is_empty()) {
        (0, _) => Err(FolderError::Empty(folder.to_owned())),
        (count, true) => Ok(count),
        (_, false) => Err(FolderError::Broken(broken)),
    }
}

/// Histories of a folder, sorted by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
        let path = entry.map_err(unreadable(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "history") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |error| FolderError::Unreadable { path, error }
}

fn shown(broken: &[(PathBuf, ReplayError)]) -> String {
    let shown = |(path, error): &(PathBuf, ReplayError)| format!("{}: {error}", path.display());
    broken.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// A registry with one workflow.
fn only<W: Workflow>() -> Registry {
    let mut registry = Registry::new();
    // An empty registry has no conflicting name.
    let _registered = registry.workflow::<W>();
    registry
}
