//! State that the connections to one file share besides the file: the memory in which SQLite keeps
//! the index of its write-ahead log, and its locks. Both are lost when the process ends.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicPtr, Ordering::Relaxed},
};

use rusqlite::ffi;

use crate::disk::FileResult;

const LOCKS: usize = 8;

#[derive(Default)]
pub(crate) struct FileState {
    /// SQLite keeps the addresses, so a region is never moved or freed: regions are small, and
    /// there is about one per round of a test.
    regions: Mutex<Vec<AtomicPtr<u8>>>,
    locks: Mutex<[Lock; LOCKS]>,
}

#[derive(Clone, Copy, Default)]
enum Lock {
    #[default]
    Free,
    FileState(u32),
    Exclusive,
}

/// Locks of one connection.
#[derive(Default)]
pub(crate) struct LocksHeld([Mode; LOCKS]);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    None,
    FileState,
    Exclusive,
}

impl FileState {
    /// Address of a region, which is created if `make` is set.
    pub(crate) fn region(&self, index: usize, bytes: usize, make: bool) -> Option<*mut u8> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        while make && regions.len() <= index {
            regions.push(AtomicPtr::new(vec![0_u8; bytes].leak().as_mut_ptr()));
        }
        regions.get(index).map(|region| region.load(Relaxed))
    }

    /// Changes a range of a connection's locks to `mode`, all of them or none.
    pub(crate) fn lock(
        &self,
        held: &mut LocksHeld,
        range: std::ops::Range<usize>,
        mode: Mode,
    ) -> FileResult<()> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let free = |index: usize| match (mode, locks[index], held.0[index]) {
            (Mode::None, _, _) | (_, Lock::Free, _) => true,
            (Mode::FileState, Lock::FileState(_), _) => true,
            (Mode::FileState, Lock::Exclusive, own) => own == Mode::Exclusive,
            (Mode::Exclusive, Lock::FileState(count), own) => count == 1 && own == Mode::FileState,
            (Mode::Exclusive, Lock::Exclusive, own) => own == Mode::Exclusive,
        };
        if !range.clone().all(free) {
            return Err(ffi::SQLITE_BUSY);
        }
        for index in range {
            locks[index] = locks[index].without(held.0[index]).with(mode);
            held.0[index] = mode;
        }
        Ok(())
    }

    /// Releases all locks of a connection.
    pub(crate) fn release(&self, held: &mut LocksHeld) {
        // Releasing a lock never fails.
        let _ = self.lock(held, 0..LOCKS, Mode::None);
    }
}

impl Lock {
    fn without(self, own: Mode) -> Self {
        match (self, own) {
            (lock, Mode::None) => lock,
            (Self::FileState(count), Mode::FileState) if count > 1 => Self::FileState(count - 1),
            _ => Self::Free,
        }
    }

    fn with(self, own: Mode) -> Self {
        match (self, own) {
            (lock, Mode::None) => lock,
            (_, Mode::Exclusive) => Self::Exclusive,
            (Self::FileState(count), Mode::FileState) => Self::FileState(count + 1),
            (_, Mode::FileState) => Self::FileState(1),
        }
    }
}
