//! A store in a PostgreSQL database. It interprets batches and answers reads; it decides nothing.
//!
//! - [`Options`]: which database and how it is used; each has a default with its reason.
//! - [`PostgresStore`]: the handle. Dropping it finishes what is queued.
//! - `address`, `hosts`, `tls`: where the database is, which of its hosts can be written to, and how to be
//!   sure of it.
//! - `open`: looks before it touches, then brings the schema up to date. A schema that is not ours, or
//!   newer than we are, keeps its content.
//! - `session`: one connection with its settings and prepared statements; it is made anew when lost.
//! - `writer`: group commit. Batches that wait, of whatever shard, go into one transaction, which
//!   locks and checks the epochs of its shards first and then writes each table with one statement.
//! - `readers`: connections that only read; `registrar`: the one for the registry.
//! - `tables`: one file per table with its SQL.
//! - `values`: how times, ids and texts stand in columns.
//! - [`Counts`]: what was committed.
//! - `fault`: what an error of PostgreSQL means to a caller.
//!
//! Several stores, of several processes, may be open on one schema: what keeps them apart is the epoch
//! of each shard. Nothing here needs advisory locks, notifications or other features that databases
//! which only speak PostgreSQL's protocol leave out.

#![warn(missing_docs)]

mod address;
mod fault;
mod hosts;
mod open;
mod options;
mod readers;
mod registrar;
mod session;
mod store;
mod tables;
mod tls;
mod values;
mod writer;

pub use abide_store::counts::Counts;
pub use open::OpenError;
pub use options::Options;
pub use store::PostgresStore;
