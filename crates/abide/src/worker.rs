//! What belongs to a [`Worker`](crate::Worker): the names of queues, how it is stopped, and what it
//! counts.

pub use abide_sdk::registry::RegistryError;
pub use abide_sdk::worker::{
    DEFAULT_QUEUE, ShutdownOutput, WorkerMetrics,
    metrics::{
        ActivityMetrics, CacheMetrics, ConnectionMetrics, HistogramSnapshot, LocalMetrics,
        MetricsSnapshot, SlotMetrics, WorkflowMetrics,
    },
    own_queue,
};
