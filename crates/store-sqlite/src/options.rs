//! Where the store's file is and how it is kept. The defaults are what the benchmark measures.

use std::path::PathBuf;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file. Beside it stand `-wal` and `-shm` (which belong to SQLite), `.lock` and `.mark`.
    pub path: PathBuf,
    /// Bytes of a page, a power of two up to 65,536; counts only when the file is made. Default 16,384:
    /// a transition writes a few rows at the edges of a few tables, and larger pages mean fewer of
    /// them in each commit.
    pub page_bytes: u32,
    /// Memory for pages of the writer. Default 24 MiB: new rows stand at the edges of their tables, so
    /// few pages change often; the others are in the memory of the operating system.
    pub writer_cache_bytes: u32,
    /// Memory for pages of each reader. Default 2 MiB.
    pub reader_cache_bytes: u32,
    /// Size of the write-ahead log at which its pages are copied into the file. Default 256 MiB: a page
    /// that changes often is copied once for all its changes. More would make opening after a crash
    /// slow, since the log is read then. At twice this size commits wait for reads to end, so that the
    /// log can start over; it grows further only by one group, or if a read takes longer than 5 s.
    pub checkpoint_bytes: u32,
    /// Connections that read at one time, each with a thread. Default 4. One more reads lists and
    /// counts.
    pub readers: usize,
    /// Most batches in one transaction. Default 4,096: bounds how long the first one waits for the
    /// last.
    pub group_batches_max: usize,
    /// Name of a file layer (VFS) that is registered with SQLite, instead of that of the operating
    /// system. Default none.
    pub file_layer: Option<String>,
}

impl Options {
    /// The defaults, for the file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            page_bytes: 16 << 10,
            writer_cache_bytes: 24 << 20,
            reader_cache_bytes: 2 << 20,
            checkpoint_bytes: 256 << 20,
            readers: 4,
            group_batches_max: 4096,
            file_layer: None,
        }
    }
}
