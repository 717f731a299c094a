//! The files of a disk, and the faults that are injected.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::ffi;

use crate::{file::File, layer, shared::FileState};

/// Result of a file operation; an error is a result code of SQLite.
pub(crate) type FileResult<T> = Result<T, i32>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// All operations succeed.
    On,
    /// Fails after this many more writes and syncs.
    OnFor(u64),
    Off,
}

/// A disk in memory. Clones share it.
#[derive(Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

struct State {
    files: BTreeMap<String, File>,
    /// Number of unnamed files so far.
    nameless: u64,
    shared: BTreeMap<String, Arc<FileState>>,
    power: Power,
    syncs_lie: bool,
    /// The next sync of a file with this suffix fails.
    failing_sync: Option<String>,
    /// The next write to a file with this suffix fails.
    failing_write: Option<String>,
    bytes_max: usize,
}

impl Disk {
    /// Creates an empty disk and registers it with SQLite as the VFS `name`. It is never freed, so
    /// reuse one for many rounds.
    ///
    /// # Panics
    /// If the name contains a zero byte, or SQLite rejects the VFS.
    pub fn register(name: &str) -> Self {
        let state = State {
            files: BTreeMap::new(),
            nameless: 0,
            shared: BTreeMap::new(),
            power: Power::On,
            syncs_lie: false,
            failing_sync: None,
            failing_write: None,
            bytes_max: usize::MAX,
        };
        let disk = Self { state: Arc::new(Mutex::new(state)) };
        layer::register(name, disk.clone());
        disk
    }

    /// Removes all files and faults. No file may be open.
    pub fn erase(&self) {
        let mut state = self.state();
        state.files.clear();
        state.repair();
    }

    pub fn set_power(&self, power: Power) {
        self.state().power = power;
    }

    pub fn power(&self) -> Power {
        self.state().power
    }

    /// From now on syncs succeed without effect, as on a broken disk or with careless settings.
    pub fn let_syncs_lie(&self) {
        self.state().syncs_lie = true;
    }

    /// Makes the next sync of a file with this suffix fail.
    pub fn fail_next_sync_of(&self, suffix: &str) {
        self.state().failing_sync = Some(suffix.to_owned());
    }

    /// Makes the next write to a file with this suffix fail.
    pub fn fail_next_write_of(&self, suffix: &str) {
        self.state().failing_write = Some(suffix.to_owned());
    }

    /// Limits the total size of all files, in bytes.
    pub fn set_capacity(&self, bytes: usize) {
        self.state().bytes_max = bytes;
    }

    /// Total size of all files, in bytes.
    pub fn used(&self) -> usize {
        self.state().used()
    }

    /// Restarts after a power failure: discards unsynced sectors, except those that `survives`
    /// picks, and turns the power on. No file may be open.
    pub fn restart(&self, mut survives: impl FnMut() -> bool) {
        let mut state = self.state();
        state.files.values_mut().for_each(|file| file.lose(&mut survives));
        state.repair();
    }

    /// Ends the process without a power failure: shared memory is lost, but writes stay, synced or
    /// not. No file may be open.
    pub fn end_process(&self) {
        self.state().shared.clear();
    }

    /// Rewrites all files with this suffix as the process sees them, and syncs them. This saves
    /// writes that a failed sync had left unsaved.
    pub fn rewrite(&self, suffix: &str) {
        let mut state = self.state();
        let files = state.files.iter_mut().filter(|(name, _)| name.ends_with(suffix));
        files.for_each(|(_, file)| file.rewrite());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, name: &str) -> FileResult<()> {
        let mut state = self.state();
        state.running(ffi::SQLITE_CANTOPEN)?;
        state.files.entry(name.to_owned()).or_default();
        Ok(())
    }

    /// Generates a name for a file that was opened without one.
    pub(crate) fn nameless(&self) -> String {
        let mut state = self.state();
        state.nameless += 1;
        format!("nameless-{}", state.nameless)
    }

    /// Removes a temporary file when it is closed.
    pub(crate) fn forget(&self, name: &str) {
        let mut state = self.state();
        state.files.remove(name);
        state.shared.remove(name);
    }

    /// A deletion is durable at once, as after a sync of the directory. The store deletes only the
    /// rollback journal of a file that is being created.
    pub(crate) fn delete(&self, name: &str) -> FileResult<()> {
        let mut state = self.state();
        state.spend(ffi::SQLITE_IOERR_DELETE)?;
        match state.files.remove(name) {
            Some(_) => Ok(()),
            None => Err(ffi::SQLITE_IOERR_DELETE_NOENT),
        }
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.state().files.contains_key(name)
    }

    pub(crate) fn size(&self, name: &str) -> FileResult<usize> {
        let mut state = self.state();
        state.running(ffi::SQLITE_IOERR_FSTAT)?;
        Ok(state.file(name)?.size())
    }

    pub(crate) fn read(&self, name: &str, offset: usize, buffer: &mut [u8]) -> FileResult<usize> {
        let mut state = self.state();
        state.running(ffi::SQLITE_IOERR_READ)?;
        Ok(state.file(name)?.read(offset, buffer))
    }

    pub(crate) fn write(&self, name: &str, offset: usize, bytes: &[u8]) -> FileResult<()> {
        let mut state = self.state();
        state.spend(ffi::SQLITE_IOERR_WRITE)?;
        if state.failing_write.take_if(|suffix| name.ends_with(suffix.as_str())).is_some() {
            return Err(ffi::SQLITE_IOERR_WRITE);
        }
        let grown = (offset + bytes.len()).saturating_sub(state.file(name)?.size());
        if grown > 0 && state.used() + grown > state.bytes_max {
            return Err(ffi::SQLITE_FULL);
        }
        state.file(name)?.write(offset, bytes);
        Ok(())
    }

    pub(crate) fn resize(&self, name: &str, size: usize) -> FileResult<()> {
        let mut state = self.state();
        state.spend(ffi::SQLITE_IOERR_TRUNCATE)?;
        state.file(name)?.resize(size);
        Ok(())
    }

    pub(crate) fn sync(&self, name: &str) -> FileResult<()> {
        let mut state = self.state();
        state.spend(ffi::SQLITE_IOERR_FSYNC)?;
        if state.failing_sync.take_if(|suffix| name.ends_with(suffix.as_str())).is_some() {
            state.file(name)?.fail_sync();
            return Err(ffi::SQLITE_IOERR_FSYNC);
        }
        if !state.syncs_lie {
            state.file(name)?.sync();
        }
        Ok(())
    }

    pub(crate) fn shared(&self, name: &str) -> Arc<FileState> {
        Arc::clone(self.state().shared.entry(name.to_owned()).or_default())
    }
}

impl State {
    /// Starts a new process on a disk without faults.
    fn repair(&mut self) {
        self.shared.clear();
        (self.power, self.syncs_lie) = (Power::On, false);
        (self.failing_sync, self.failing_write) = (None, None);
        self.bytes_max = usize::MAX;
    }

    fn file(&mut self, name: &str) -> FileResult<&mut File> {
        self.files.get_mut(name).ok_or(ffi::SQLITE_IOERR)
    }

    fn used(&self) -> usize {
        self.files.values().map(File::size).sum()
    }

    fn running(&self, failure: i32) -> FileResult<()> {
        if self.power == Power::Off { Err(failure) } else { Ok(()) }
    }

    /// Counts an operation that changes something, and fails once the power is off.
    fn spend(&mut self, failure: i32) -> FileResult<()> {
        self.power = match self.power {
            Power::OnFor(0) => Power::Off,
            Power::OnFor(left) => Power::OnFor(left - 1),
            power => power,
        };
        self.running(failure)
    }
}
