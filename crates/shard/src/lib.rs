//! Four synchronous machines that together are the server: shard, commit pipeline, lease, queue.
//!
//! - [`message`]: everything that can happen to a shard and everything that it can ask for.
//!
//! Nothing here performs I/O, awaits, reads a clock or draws a random number. A driver (the engine, or
//! the simulator) carries messages between these machines, stores and workers, and decides nothing.

#![warn(missing_docs)]

pub mod lease;
pub mod message;
pub mod queue;
