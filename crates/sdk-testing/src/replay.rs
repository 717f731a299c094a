//! Replays recorded histories with the current code.

use std::{
    fs, io,
    marker::PhantomData,
    path::{Path, PathBuf},
};

use abide_core::codec::{self, DecodeError};
use abide_sdk::{
    Codecs, Registry, Workflow, client::HistoryEvent, codec::CodecError, interceptor::Interceptor,
    replay,
};
use bytes::Bytes;

pub use abide_sdk::replay::ReplayError;

/// A recorded history: events from a client, or the bytes of [`record`].
pub trait History {
    /// Its events.
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError>;
}

impl History for Vec<HistoryEvent> {
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        Ok(self)
    }
}

impl History for &[HistoryEvent] {
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        Ok(self.to_vec())
    }
}

impl History for Bytes {
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        Ok(codec::decode_events(self)?.into_iter().map(HistoryEvent::new).collect())
    }
}

impl History for Vec<u8> {
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        Bytes::from(self).events()
    }
}

impl History for &[u8] {
    fn events(self) -> Result<Vec<HistoryEvent>, DecodeError> {
        Bytes::copy_from_slice(self).events()
    }
}

/// Replays histories as a worker with interceptors does: the result of a run may depend on them.
///
/// ```no_run
/// # use abide_sdk::{Workflow, interceptor::Interceptor};
/// # use abide_sdk_testing::{FolderError, Replayer};
/// # fn check<Order: Workflow>(audit: impl Interceptor) -> Result<(), FolderError> {
/// Replayer::<Order>::new().interceptor(audit).folder("tests/histories/order")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Replayer<W> {
    registry: Registry,
    workflow: PhantomData<W>,
}

impl<W: Workflow> Default for Replayer<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Workflow> Replayer<W> {
    /// Replays with the current code of `W`.
    pub fn new() -> Self {
        let mut registry = Registry::new();
        // An empty registry has no conflicting name.
        let _registered = registry.workflow::<W>();
        Self { registry, workflow: PhantomData }
    }

    /// Adds an interceptor inside those that were added before.
    #[must_use]
    pub fn interceptor(mut self, interceptor: impl Interceptor) -> Self {
        self.registry.interceptor(interceptor);
        self
    }

    /// Does what [`replay_history`] does.
    pub fn history(&self, history: impl History) -> Result<(), ReplayError> {
        replay::replay(&self.registry, HistoryEvent::all_recorded(history.events()?))
    }

    /// Does what [`replay_file`] does.
    pub fn file(&self, path: impl AsRef<Path>) -> Result<(), FolderError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(unreadable(path))?;
        let broken = |error| FolderError::Broken(vec![(path.to_owned(), error)]);
        self.history(bytes).map_err(broken)
    }

    /// Does what [`replay_folder`] does.
    pub fn folder(&self, folder: impl AsRef<Path>) -> Result<usize, FolderError> {
        let folder = folder.as_ref();
        let files = files(folder)?;
        let mut broken = Vec::new();
        for path in &files {
            let bytes = fs::read(path).map_err(unreadable(path))?;
            if let Err(error) = self.history(bytes) {
                broken.push((path.clone(), error));
            }
        }
        match (files.len(), broken.is_empty()) {
            (0, _) => Err(FolderError::Empty(folder.to_owned())),
            (count, true) => Ok(count),
            (_, false) => Err(FolderError::Broken(broken)),
        }
    }
}

/// Encodes a history, to be kept beside the tests. Every later version can decode it.
pub fn record(events: &[HistoryEvent]) -> Bytes {
    codec::encode_events(events.iter().map(HistoryEvent::recorded))
}

/// Checks that the current code of `W` takes the steps of a recorded history:
/// `replay_history::<Order>(include_bytes!("order.history").as_slice())?`.
///
/// The history may be of an open run. Payloads are not compared.
pub fn replay_history<W: Workflow>(history: impl History) -> Result<(), ReplayError> {
    Replayer::<W>::new().history(history)
}

/// The events of a history whose data is encoded, as `abide workflow history --record` writes it:
/// `replay_history::<Order>(decode_history(bytes, &codecs).await?)?`.
pub async fn decode_history(
    history: impl History,
    codecs: &Codecs,
) -> Result<Vec<HistoryEvent>, CodecError> {
    let events = history.events();
    let events = events.map_err(|error| CodecError::refused("history", error.to_string()))?;
    let mut events = HistoryEvent::all_recorded(events);
    codecs.decode_history(&mut events).await?;
    Ok(events.into_iter().map(HistoryEvent::new).collect())
}

/// Checks the current code of `W` against the history in a file:
/// `replay_file::<Order>("tests/order-7.history")?`.
pub fn replay_file<W: Workflow>(path: impl AsRef<Path>) -> Result<(), FolderError> {
    Replayer::<W>::new().file(path)
}

/// Why replaying a file or a folder failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    Replayer::<W>::new().folder(folder)
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
