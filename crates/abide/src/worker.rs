//! What belongs to a [`Worker`](crate::Worker): the names of queues, and how it is stopped.

pub use abide_sdk::worker::{DEFAULT_QUEUE, ShutdownOutput, own_queue};
