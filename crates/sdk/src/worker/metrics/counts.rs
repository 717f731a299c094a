//! The counts of one type.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::{ActivityMetrics, LocalMetrics, WorkflowMetrics, count, histogram::Histogram};

/// How a workflow task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskResult {
    Completed,
    Failed,
    /// Code does not fit history.
    Blocked,
}

#[derive(Default)]
pub(crate) struct WorkflowCounts {
    completed: AtomicU64,
    failed: AtomicU64,
    blocked: AtomicU64,
    pub(crate) replays: AtomicU64,
    queries: AtomicU64,
    failed_queries: AtomicU64,
    pub(crate) latency: Histogram,
    pub(crate) schedule_to_start: Histogram,
}

impl WorkflowCounts {
    pub(crate) fn task(&self, result: TaskResult, latency: Duration) {
        count(match result {
            TaskResult::Completed => &self.completed,
            TaskResult::Failed => &self.failed,
            TaskResult::Blocked => &self.blocked,
        });
        self.latency.record(latency);
    }

    pub(crate) fn query(&self, answered: bool) {
        count(if answered { &self.queries } else { &self.failed_queries });
    }

    pub(super) fn figures(&self) -> WorkflowMetrics {
        WorkflowMetrics {
            completed: self.completed.load(Relaxed),
            failed: self.failed.load(Relaxed),
            blocked: self.blocked.load(Relaxed),
            replays: self.replays.load(Relaxed),
            queries: self.queries.load(Relaxed),
            failed_queries: self.failed_queries.load(Relaxed),
            latency: self.latency.figures(),
            schedule_to_start: self.schedule_to_start.figures(),
        }
    }
}

#[derive(Default)]
pub(crate) struct ActivityCounts {
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) left: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) latency: Histogram,
    pub(crate) schedule_to_start: Histogram,
}

impl ActivityCounts {
    pub(super) fn figures(&self) -> ActivityMetrics {
        ActivityMetrics {
            completed: self.completed.load(Relaxed),
            failed: self.failed.load(Relaxed),
            cancelled: self.cancelled.load(Relaxed),
            left: self.left.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            latency: self.latency.figures(),
            schedule_to_start: self.schedule_to_start.figures(),
        }
    }
}

#[derive(Default)]
pub(crate) struct LocalCounts {
    completed: AtomicU64,
    failed: AtomicU64,
    latency: Histogram,
}

impl LocalCounts {
    pub(crate) fn attempt(&self, completed: bool, latency: Duration) {
        count(if completed { &self.completed } else { &self.failed });
        self.latency.record(latency);
    }

    #[cfg(feature = "opentelemetry")]
    pub(super) const fn latency(&self) -> &Histogram {
        &self.latency
    }

    pub(super) fn figures(&self) -> LocalMetrics {
        LocalMetrics {
            completed: self.completed.load(Relaxed),
            failed: self.failed.load(Relaxed),
            latency: self.latency.figures(),
        }
    }
}
