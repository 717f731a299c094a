//! Passes each measured duration on, for metrics whose histograms cannot be read from a snapshot.

use std::{
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{OTHER, Types, histogram::Histogram};
use crate::lock::lock;

/// What took a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurationOf {
    WorkflowTask,
    WorkflowTaskWait,
    Activity,
    ActivityWait,
    LocalActivity,
}

/// Takes the durations of a worker.
pub(crate) trait DurationObserver: Send + Sync {
    /// Returns what takes durations of this kind, of one type of workflow or activity.
    fn of(&self, what: DurationOf, queue: &str, type_name: &str) -> TakeDuration;
}

/// Takes durations of one kind and type.
pub(crate) type TakeDuration = Box<dyn Fn(Duration) + Send + Sync>;

/// The observers of a worker.
#[derive(Default)]
pub(super) struct Observers(Mutex<Vec<Arc<dyn DurationObserver>>>);

impl Observers {
    /// Adds an observer of a worker whose types may be known already. Durations before this are lost
    /// to it.
    pub(super) fn add<'a>(
        &self,
        observer: Arc<dyn DurationObserver>,
        types: impl FnOnce() -> Option<&'a Types>,
    ) {
        // Locked before the types are read, so that either this or `begin` attaches it.
        let mut observers = lock(&self.0);
        if let Some(types) = types() {
            attach(&*observer, types);
        }
        observers.push(observer);
    }

    /// The types become known.
    pub(super) fn begin<'a>(&self, types: impl FnOnce(&dyn Fn(&Types)) -> &'a Types) {
        let observers = lock(&self.0);
        types(&|types| observers.iter().for_each(|observer| attach(&**observer, types)));
    }
}

fn attach(observer: &dyn DurationObserver, types: &Types) {
    let observe = |histogram: &Histogram, what, name: &str| {
        histogram.observed.add(observer.of(what, &types.queue, name));
    };
    let other = || std::iter::once(OTHER);
    let names = types.workflows.keys().map(String::as_str).chain(other());
    for (name, counts) in names.zip(types.workflows.values().chain([&types.other_workflow])) {
        observe(&counts.latency, DurationOf::WorkflowTask, name);
        observe(&counts.schedule_to_start, DurationOf::WorkflowTaskWait, name);
    }
    let names = types.activities.keys().map(String::as_str).chain(other());
    for (name, counts) in names.zip(types.activities.values().chain([&types.other_activity])) {
        observe(&counts.latency, DurationOf::Activity, name);
        observe(&counts.schedule_to_start, DurationOf::ActivityWait, name);
    }
    let names = types.locals.keys().map(String::as_str).chain(other());
    for (name, counts) in names.zip(types.locals.values().chain([&types.other_local])) {
        observe(counts.latency(), DurationOf::LocalActivity, name);
    }
}

/// Who takes the durations of one histogram.
#[derive(Default)]
pub(super) struct Observed {
    /// Set if there are any, so that a worker without them does not lock.
    any: AtomicBool,
    all: RwLock<Vec<TakeDuration>>,
}

impl Observed {
    fn add(&self, take: TakeDuration) {
        self.all.write().unwrap_or_else(PoisonError::into_inner).push(take);
        self.any.store(true, Relaxed);
    }

    pub(super) fn record(&self, duration: Duration) {
        if self.any.load(Relaxed) {
            let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
            all.iter().for_each(|take| take(duration));
        }
    }
}
