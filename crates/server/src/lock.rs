//! Locks a mutex, also a poisoned one: what a mutex of this crate guards is consistent whenever the lock
//! is released, even by a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
