//! The five synchronous state machines of the server: shard, commit pipeline, queue, node, lease.
//!
//! - [`message`]: a shard's inputs and outputs.
//! - [`shard`]: the machine that owns runs; [`cache`], [`alarm`] and [`rows`] are its parts.
//! - [`pipeline`]: one commit in flight per shard; an output is held until the batch that it
//!   depends on is durable.
//! - [`borders`]: which namespaces accept commands from which others.
//! - [`queue`]: matches offered work with workers' credit.
//! - [`node`]: what the shards of one process share: queues, workers' streams, links to other
//!   nodes.
//! - [`lease`]: which node owns which shard.
//!
//! Nothing here performs I/O, awaits, reads a clock or draws a random number. A driver (the engine,
//! or the simulator) carries messages between these machines, stores and workers, and decides
//! nothing.

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
