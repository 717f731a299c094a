//! What the benchmarks share.
//!
//! - [`workload`]: the batches that are committed.
//! - [`recording`]: the transitions they repeat, as the true machines make them.
//! - [`clients`]: many closed-loop clients on one thread.
//! - [`raw_log`]: the limit to compare with, an append-only file with group commit.
//! - [`random`]: a small seeded generator.

pub mod clients;
pub mod random;
pub mod raw_log;
pub mod recording;
pub mod workload;
