//! What belongs to a [`Worker`](crate::Worker): the names of queues, how it is stopped, and what it
//! counts.

pub use abide_sdk::worker::{
    DEFAULT_QUEUE, ShutdownOutput, WorkerMetrics,
    metrics::{
        ActivityFigures, CacheFigures, ConnectionFigures, HistogramFigures, LocalFigures,
        MetricsSnapshot, SlotFigures, WorkflowFigures,
    },
    own_queue,
};
