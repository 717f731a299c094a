//! An in-memory disk for tests of SQLite. It tracks which writes were synced, so it can lose the
//! others as a power failure would; it can fail a write or a sync, and it can be full. `kill -9`
//! tests none of that, because the operating system's cache outlives a process.
//!
//! - [`Disk`]: the files and the injected faults, in safe code.
//! - `layer`: the VFS, a table of C functions through which SQLite uses it; the only unsafe code.
//! - `shared`: the memory and the locks that the connections to one file share.

mod disk;
mod file;
mod layer;
mod shared;

pub use disk::{Disk, Power};
