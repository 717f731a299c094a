//! Five synchronous machines that together are the server: shard, commit pipeline, queue, node, lease.
//!
//! - [`message`]: everything that can happen to a shard and everything that it can ask for.
//! - [`shard`]: the machine that owns runs; [`cache`], [`alarm`] and [`rows`] are its parts.
//! - [`pipeline`]: one commit in flight per shard; nothing leaves before what it rests on is durable.
//! - [`borders`]: which namespaces take commands of which others.
//! - [`queue`]: matches offers with workers' credit.
//! - [`node`]: what the shards of one process share: queues, workers' streams, the links to other nodes.
//! - [`lease`]: which node owns which shard.
//!
//! Nothing here performs I/O, awaits, reads a clock or draws a random number. A driver (the engine, or
//! the simulator) carries messages between these machines, stores and workers, and decides nothing.

#![warn(missing_docs)]

pub mod alarm;
pub mod borders;
pub mod cache;
pub mod lease;
pub mod message;
pub mod node;
pub mod pipeline;
pub mod queue;
pub mod rows;
pub mod shard;
mod validate;
