//! An engine in your own process: on one SQLite file, on a PostgreSQL database, or in memory.

pub use abide_embedded::{Builder, Embedded, OpenError};
