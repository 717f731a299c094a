//! A store in one SQLite file. It interprets batches and answers reads; it decides nothing.
//!
//! - [`Options`]: where the file is and how it is kept; each has a default with its reason.
//! - [`SqliteStore`]: the handle. One thread writes, a few read; dropping it finishes what is queued.
//! - `open`: lock, checks, migrations. A file that is not ours, or newer than we are, keeps its content.
//! - `mark`: what tells a store that lost its files from a new one.
//! - `writer`: group commit. All batches that wait, of whatever shard, go into one transaction.
//! - `readers`: connections that only read, each on its own thread.
//! - `tables`: one file per table with its SQL.
//! - `upkeep`: what is done beside the commits, and how its failures are told.
//! - `values`: how times, ids and numbers stand in columns.
//! - [`Counts`]: what was committed.
//! - `fault`: what an error of SQLite means to a caller.

#![warn(missing_docs)]

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
