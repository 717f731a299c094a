//! Shared parts of the benchmarks; the command `abide bench` uses them too.
//!
//! - [`workload`]: the batches that are committed.
//! - [`recording`]: the transitions that they repeat, as the production machines make them.
//! - [`clients`]: many closed-loop clients on one thread.
//! - [`sqlite`], [`postgres`]: a fresh store under load; [`disk`]: the cost of a sync.
//! - [`latencies`]: latency statistics; [`report`]: output.
//! - [`raw_log`]: the upper bound to compare with, an append-only file with group commit.
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
