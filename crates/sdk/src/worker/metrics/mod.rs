//! What a worker counts: its tasks and attempts by type and result, how long they take and how long
//! they waited, its cache, its slots and its connection.
//!
//! Labels are names that are registered with the worker, so their number is bounded; work of other
//! types counts as [`OTHER`]. Counting is a few atomic additions for each task.

mod counts;
mod histogram;
#[cfg(feature = "opentelemetry")]
mod observer;
mod prometheus;
mod snapshot;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub(super) use self::counts::{ActivityCounts, LocalCounts, TaskResult, WorkflowCounts};
#[cfg(feature = "opentelemetry")]
pub(crate) use self::{
    histogram::BOUNDS_MS,
    observer::{DurationObserver, DurationOf, TakeDuration},
};
pub use self::{
    histogram::HistogramSnapshot,
    snapshot::{
        ActivityMetrics, CacheMetrics, ConnectionMetrics, LocalMetrics, MetricsSnapshot,
        SlotMetrics, WorkflowMetrics,
    },
};
use super::shared::WorkerCore;
use crate::{lock::lock, registry::Registry};

/// The label of work whose type is not registered with the worker.
pub const OTHER: &str = "other";

/// What a worker counts. Clones are of the same worker, and of all that were cloned from it; the
/// counts go on while they exist, also when the worker has ended.
#[derive(Clone, Default)]
pub struct WorkerMetrics(Arc<MetricsState>);

#[derive(Default)]
struct MetricsState {
    /// Set when the worker begins: its queue, and counts for each type that it has.
    types: OnceLock<Types>,
    others: Types,
    cache: CacheCounts,
    connection: ConnectionCounts,
    /// The worker that runs, for its slots.
    running: Mutex<Weak<WorkerCore>>,
    #[cfg(feature = "opentelemetry")]
    observers: observer::Observers,
}

#[derive(Default)]
struct Types {
    queue: String,
    workflows: BTreeMap<String, WorkflowCounts>,
    activities: BTreeMap<String, ActivityCounts>,
    locals: BTreeMap<String, LocalCounts>,
    other_workflow: WorkflowCounts,
    other_activity: ActivityCounts,
    other_local: LocalCounts,
}

#[derive(Default)]
pub(super) struct CacheCounts {
    /// Runs in memory now.
    pub(super) runs: AtomicU64,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) evictions: AtomicU64,
}

#[derive(Default)]
pub(super) struct ConnectionCounts {
    pub(super) connects: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) disconnects: AtomicU64,
}

impl WorkerMetrics {
    /// The counts as they are now.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let types = self.types();
        let MetricsState { cache, connection, .. } = &*self.0;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        MetricsSnapshot {
            queue: types.queue.clone(),
            workflows: figures(&types.workflows, &types.other_workflow, WorkflowCounts::figures),
            activities: figures(&types.activities, &types.other_activity, ActivityCounts::figures),
            local_activities: figures(&types.locals, &types.other_local, LocalCounts::figures),
            cache: CacheMetrics {
                runs: read(&cache.runs),
                hits: read(&cache.hits),
                misses: read(&cache.misses),
                evictions: read(&cache.evictions),
            },
            connection: ConnectionMetrics {
                connects: read(&connection.connects),
                failures: read(&connection.failures),
                disconnects: read(&connection.disconnects),
            },
            slots: self.running().map(|running| running.slot_figures()).unwrap_or_default(),
        }
    }

    /// The counts as they are now, in the text format of Prometheus.
    pub fn to_prometheus(&self) -> String {
        self.snapshot().to_prometheus()
    }

    /// A worker with this registry begins.
    pub(super) fn begin(&self, queue: &str, registry: &Registry) {
        fn each<T: Default>(names: impl Iterator<Item = impl Into<String>>) -> BTreeMap<String, T> {
            names.map(|name| (name.into(), T::default())).collect()
        }
        let types = || Types {
            queue: queue.to_owned(),
            workflows: each(registry.workflow_types()),
            activities: each(registry.activity_types()),
            locals: each(registry.activity_types()),
            ..Types::default()
        };
        #[cfg(not(feature = "opentelemetry"))]
        self.0.types.get_or_init(types);
        #[cfg(feature = "opentelemetry")]
        self.0.observers.begin(|attach| {
            self.0.types.get_or_init(|| {
                let types = types();
                attach(&types);
                types
            })
        });
    }

    /// Passes each duration on from now on.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn add_observer(&self, observer: Arc<dyn DurationObserver>) {
        self.0.observers.add(observer, || self.0.types.get());
    }

    /// The worker runs: its slots can be read.
    pub(super) fn runs(&self, running: &Arc<WorkerCore>) {
        *lock(&self.0.running) = Arc::downgrade(running);
    }

    /// The worker has ended: it has no slots any more.
    pub(super) fn ended(&self, worker: &Arc<WorkerCore>) {
        let mut running = lock(&self.0.running);
        // Another worker may have taken its place.
        if running.as_ptr() == Arc::as_ptr(worker) {
            *running = Weak::new();
        }
    }

    pub(super) fn workflow(&self, workflow_type: Option<&str>) -> &WorkflowCounts {
        let types = self.types();
        let counts = workflow_type.and_then(|name| types.workflows.get(name));
        counts.unwrap_or(&types.other_workflow)
    }

    pub(super) fn activity(&self, activity_type: &str) -> &ActivityCounts {
        let types = self.types();
        types.activities.get(activity_type).unwrap_or(&types.other_activity)
    }

    pub(super) fn local(&self, activity_type: &str) -> &LocalCounts {
        let types = self.types();
        types.locals.get(activity_type).unwrap_or(&types.other_local)
    }

    pub(super) fn cache(&self) -> &CacheCounts {
        &self.0.cache
    }

    pub(super) fn connection(&self) -> &ConnectionCounts {
        &self.0.connection
    }

    fn types(&self) -> &Types {
        self.0.types.get().unwrap_or(&self.0.others)
    }

    fn running(&self) -> Option<Arc<WorkerCore>> {
        lock(&self.0.running).upgrade()
    }
}

/// The figures of each type, and of the others if there are any.
fn figures<C, F: PartialEq + Default>(
    types: &BTreeMap<String, C>,
    other: &C,
    read: fn(&C) -> F,
) -> BTreeMap<String, F> {
    let mut all: BTreeMap<_, _> =
        types.iter().map(|(name, counts)| (name.clone(), read(counts))).collect();
    let other = read(other);
    if other != F::default() {
        all.insert(OTHER.to_owned(), other);
    }
    all
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl fmt::Debug for WorkerMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics of a worker of queue {}", self.types().queue)
    }
}
