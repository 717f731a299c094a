//! The figures of a worker at one moment.

use std::collections::BTreeMap;

use super::HistogramSnapshot;

/// The figures of a worker at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// The queue that the worker serves; empty before it runs.
    pub queue: String,
    /// Workflow tasks by the type of their workflow.
    pub workflows: BTreeMap<String, WorkflowMetrics>,
    /// Attempts by the type of their activity.
    pub activities: BTreeMap<String, ActivityMetrics>,
    /// Attempts of local activities by type.
    pub local_activities: BTreeMap<String, LocalMetrics>,
    /// The runs in memory.
    pub cache: CacheMetrics,
    /// Work in flight; all zero while the worker does not run.
    pub slots: SlotMetrics,
    /// The connection to the engine.
    pub connection: ConnectionMetrics,
}

/// Workflow tasks of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowMetrics {
    /// Tasks that were completed.
    pub completed: u64,
    /// Tasks that failed: code panicked, or broke a rule of workflow code.
    pub failed: u64,
    /// Tasks that failed because the code does not fit the history.
    pub blocked: u64,
    /// How often a run was rebuilt from its history.
    pub replays: u64,
    /// Queries that were answered.
    pub queries: u64,
    /// Queries that failed.
    pub failed_queries: u64,
    /// From the arrival of a task at the worker to its end.
    pub latency: HistogramSnapshot,
    /// How long tasks waited for a worker, by the engine's clock.
    pub schedule_to_start: HistogramSnapshot,
}

/// Attempts of one activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActivityMetrics {
    /// Attempts that succeeded.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that ended because they were asked to stop.
    pub cancelled: u64,
    /// Attempts that another process completes.
    pub left: u64,
    /// Attempts that the engine had given up, and that did not stop by themselves.
    pub dropped: u64,
    /// How long the code of attempts ran.
    pub latency: HistogramSnapshot,
    /// How long first attempts waited for a worker: from the engine's clock to that of this machine.
    pub schedule_to_start: HistogramSnapshot,
}

/// Attempts of one local activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalMetrics {
    /// Attempts that succeeded.
    pub completed: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// How long attempts took, with the wait for a free place.
    pub latency: HistogramSnapshot,
}

/// The runs that a worker keeps in memory between their tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheMetrics {
    /// Runs in memory now.
    pub runs: u64,
    /// Tasks that went on in memory.
    pub hits: u64,
    /// Tasks of runs that were not in memory, or were out of date there: the history had to be read.
    pub misses: u64,
    /// Runs that were removed to make room.
    pub evictions: u64,
}

/// Work in flight, and the most that there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotMetrics {
    /// Workflow tasks and queries in flight.
    pub tasks_used: u64,
    /// The most of them.
    pub tasks: u64,
    /// Attempts of activities in flight, those of the worker's own workflows included.
    pub activities_used: u64,
    /// The most of them.
    pub activities: u64,
    /// Local activities that run.
    pub local_activities_used: u64,
    /// The most of them.
    pub local_activities: u64,
}

/// The connection of a worker to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionMetrics {
    /// How often the worker has connected.
    pub connects: u64,
    /// How often it could not connect.
    pub failures: u64,
    /// How often a connection has ended before the worker did.
    pub disconnects: u64,
}
