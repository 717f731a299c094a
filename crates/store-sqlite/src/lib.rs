//! A store in one SQLite file. It executes batches and answers reads; it decides nothing.
//!
//! - [`Options`]: the path of the file and its tuning; each option has a default with its reason.
//! - [`SqliteStore`]: the handle. One thread writes, a few read; dropping it finishes queued work.
//! - `open`: lock, checks, migrations. A file of another program, or of a newer version, is not
//!   changed.
//! - `mark`: distinguishes a store that lost its files from a new one.
//! - `writer`: group commit. All queued batches, of any shard, go into one transaction.
//! - `readers`: connections that only read, each on its own thread.
//! - `tables`: one file per table with its SQL.
//! - `upkeep`: chores beside the commits, and how their failures are reported.
//! - `values`: encoding of times, ids and numbers in columns.
//! - [`Counts`]: counters of what was committed.
//! - `fault`: what an error of SQLite means to a caller.

mod fault;
mod mark;
mod open;
mod options;
mod readers;
mod store;
mod tables;
mod upkeep;
mod values;
mod writer;

pub use abide_store::counts::Counts;
pub use open::OpenError;
pub use options::Options;
pub use store::SqliteStore;
