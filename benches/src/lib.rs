//! What the benchmarks share; the command `abide bench` uses it too.
//!
//! - [`workload`]: the batches that are committed.
//! - [`recording`]: the transitions they repeat, as the true machines make them.
//! - [`clients`]: many closed-loop clients on one thread.
//! - [`sqlite`], [`postgres`]: a fresh store under their load; [`disk`]: what a sync costs.
//! - [`latencies`]: how long things took; [`report`]: what is printed.
//! - [`raw_log`]: the limit to compare with, an append-only file with group commit.
//! - [`random`]: a small seeded generator.

pub mod clients;
pub mod disk;
pub mod latencies;
pub mod postgres;
pub mod random;
pub mod raw_log;
pub mod recording;
pub mod report;
pub mod sqlite;
pub mod workload;
