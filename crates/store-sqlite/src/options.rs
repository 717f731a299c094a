//! The path of the store's file and its tuning. The defaults are what the benchmark measures.

use std::path::PathBuf;

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Path of the file. Beside it are `-wal` and `-shm` (which belong to SQLite), `.lock` and
    /// `.mark`.
    pub path: PathBuf,
    /// Bytes of a page, a power of two up to 65,536; only used when the file is created. Default
    /// 16,384: a transition writes a few rows at the edges of a few tables, and larger pages mean
    /// fewer of them in each commit.
    pub page_bytes: u32,
    /// Bytes of the writer's page cache. Default 24 MiB: new rows are at the edges of their tables,
    /// so few pages change often; the others are in the operating system's cache.
    pub writer_cache_bytes: u32,
    /// Bytes of each reader's page cache. Default 2 MiB.
    pub reader_cache_bytes: u32,
    /// Size of the write-ahead log at which its pages are copied into the file. Default 256 MiB: a
    /// page that changes often is copied once for all its changes. A larger log would slow down
    /// opening after a crash, which reads it. At twice this size commits wait for reads to end, so
    /// that the log can restart; it grows further only by one group, or if a read takes longer than
    /// 5 s.
    pub checkpoint_bytes: u32,
    /// Number of connections that read, each with a thread. Default 4. One more serves lists, and
    /// one more counts.
    pub readers: usize,
    /// Most batches in one transaction. Default 4,096: bounds how long the first batch waits for
    /// the last.
    pub group_batches_max: usize,
    /// Name of a file layer (VFS) registered with SQLite, instead of the operating system's.
    /// Default none.
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
