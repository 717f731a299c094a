//! A store in a PostgreSQL database. It applies batches and answers reads; it makes no decisions.
//!
//! - [`Options`]: which database to use and how; the doc of each option gives the reason for its
//!   default.
//! - [`PostgresStore`]: the handle. Dropping it first writes what is queued.
//! - `address`, `hosts`, `tls`: where the database is, which of its hosts accepts writes, and how
//!   to authenticate it.
//! - `open`: inspects the schema before it changes anything, then migrates it. A schema of another
//!   program or of a newer version is left untouched. `indexes`: what is built while others write.
//! - `session`: one connection with its settings and prepared statements, replaced when it is lost.
//! - `writer`: group commit. Queued batches of all shards share a transaction, which first locks
//!   and checks the epochs of its shards and then writes each table with one statement.
//! - `readers`: connections that only read; `registrar`: the connection for the registry.
//! - `tables`: one file per table with its SQL.
//! - `values`: how times, ids and texts are encoded in columns.
//! - [`Counts`]: counters of what was committed.
//! - `fault`: classifies errors of PostgreSQL by what a caller can do.
//!
//! Several stores, in several processes, may share one schema: the epoch of each shard keeps them
//! apart. The store avoids advisory locks, notifications and other features that databases which
//! merely speak PostgreSQL's protocol lack.

mod address;
mod fault;
mod hosts;
mod indexes;
mod open;
mod options;
mod prepared;
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
