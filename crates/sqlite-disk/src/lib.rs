//! A disk in memory for tests of SQLite. It knows which writes were synced, so it can lose the others
//! as a power cut would; it can fail a write or a sync, and it can be full. `kill -9` tests none of
//! that, because the cache of the operating system outlives a process.
//!
//! - [`Disk`]: the files and the faults, in safe code.
//! - `layer`: the table of C functions through which SQLite uses it, and the only unsafe code.
//! - `shared`: the memory and the locks that the connections to one file share.

#![warn(missing_docs)]

mod disk;
mod file;
mod layer;
mod shared;

pub use disk::{Disk, Power};
