//! The figures of a worker as instruments of OpenTelemetry.

use std::sync::Arc;

use opentelemetry::{KeyValue, metrics::Meter};

use super::durations::Durations;
use crate::worker::{
    WorkerMetrics,
    metrics::{ActivityMetrics, LocalMetrics, MetricsSnapshot, WorkflowMetrics},
};

/// A value with its labels besides the queue.
type Value = (Vec<KeyValue>, u64);

/// The name of an instrument, and what it shows.
type Shown = (&'static str, fn(&MetricsSnapshot) -> Vec<Value>);

/// Registers the counters, gauges and histograms of a worker with this meter, under the names that
/// [`WorkerMetrics::to_prometheus`] has, without `_total` and `_seconds`, which exporters add. The
/// histograms are in seconds, have the same buckets, and begin with this call: call it before the
/// worker runs.
pub fn observe(metrics: &WorkerMetrics, meter: &Meter) {
    metrics.add_observer(Arc::new(Durations::new(meter)));
    let counters: [Shown; 11] = [
        ("abide_worker_workflow_tasks", tasks),
        ("abide_worker_activity_attempts", attempts),
        ("abide_worker_local_activity_attempts", local_attempts),
        ("abide_worker_replays", replays),
        ("abide_worker_cache_hits", |it| vec![(Vec::new(), it.cache.hits)]),
        ("abide_worker_cache_misses", |it| vec![(Vec::new(), it.cache.misses)]),
        ("abide_worker_cache_evictions", |it| vec![(Vec::new(), it.cache.evictions)]),
        ("abide_worker_connects", |it| vec![(Vec::new(), it.connection.connects)]),
        ("abide_worker_connect_failures", |it| vec![(Vec::new(), it.connection.failures)]),
        ("abide_worker_disconnects", |it| vec![(Vec::new(), it.connection.disconnects)]),
        ("abide_worker_queries", queries),
    ];
    for (name, read) in counters {
        let metrics = metrics.clone();
        meter
            .u64_observable_counter(name)
            .with_callback(move |observer| {
                let figures = metrics.snapshot();
                for (labels, value) in labelled(&figures, read(&figures)) {
                    observer.observe(value, &labels);
                }
            })
            .build();
    }
    let gauges: [Shown; 3] = [
        ("abide_worker_cached_runs", |it| vec![(Vec::new(), it.cache.runs)]),
        ("abide_worker_slots_used", used),
        ("abide_worker_slots", slots),
    ];
    for (name, read) in gauges {
        let metrics = metrics.clone();
        meter
            .u64_observable_gauge(name)
            .with_callback(move |observer| {
                let figures = metrics.snapshot();
                for (labels, value) in labelled(&figures, read(&figures)) {
                    observer.observe(value, &labels);
                }
            })
            .build();
    }
}

/// Adds the queue to the labels.
fn labelled(figures: &MetricsSnapshot, values: Vec<Value>) -> impl Iterator<Item = Value> {
    let queue = KeyValue::new("queue", figures.queue.clone());
    values.into_iter().map(move |(mut labels, value)| {
        labels.push(queue.clone());
        (labels, value)
    })
}

fn results<const N: usize>(
    key: &'static str,
    of: &str,
    results: [(&'static str, u64); N],
) -> Vec<Value> {
    let of = KeyValue::new(key, of.to_owned());
    let labels = |result| vec![of.clone(), KeyValue::new("result", result)];
    results.into_iter().map(|(result, value)| (labels(result), value)).collect()
}

fn tasks(figures: &MetricsSnapshot) -> Vec<Value> {
    let of = |(name, it): (&String, &WorkflowMetrics)| {
        let all = [("completed", it.completed), ("failed", it.failed), ("blocked", it.blocked)];
        results("workflow_type", name, all)
    };
    figures.workflows.iter().flat_map(of).collect()
}

fn attempts(figures: &MetricsSnapshot) -> Vec<Value> {
    let of = |(name, it): (&String, &ActivityMetrics)| {
        let all = [
            ("completed", it.completed),
            ("failed", it.failed),
            ("cancelled", it.cancelled),
            ("left", it.left),
            ("dropped", it.dropped),
        ];
        results("activity_type", name, all)
    };
    figures.activities.iter().flat_map(of).collect()
}

fn local_attempts(figures: &MetricsSnapshot) -> Vec<Value> {
    let of = |(name, it): (&String, &LocalMetrics)| {
        results("activity_type", name, [("completed", it.completed), ("failed", it.failed)])
    };
    figures.local_activities.iter().flat_map(of).collect()
}

fn queries(figures: &MetricsSnapshot) -> Vec<Value> {
    let of = |(name, it): (&String, &WorkflowMetrics)| {
        let all = [("answered", it.queries), ("failed", it.failed_queries)];
        results("workflow_type", name, all)
    };
    figures.workflows.iter().flat_map(of).collect()
}

fn replays(figures: &MetricsSnapshot) -> Vec<Value> {
    let of = |(name, it): (&String, &WorkflowMetrics)| {
        (vec![KeyValue::new("workflow_type", name.clone())], it.replays)
    };
    figures.workflows.iter().map(of).collect()
}

fn used(figures: &MetricsSnapshot) -> Vec<Value> {
    let it = &figures.slots;
    kinds([it.tasks_used, it.activities_used, it.local_activities_used])
}

fn slots(figures: &MetricsSnapshot) -> Vec<Value> {
    let it = &figures.slots;
    kinds([it.tasks, it.activities, it.local_activities])
}

fn kinds(values: [u64; 3]) -> Vec<Value> {
    let kinds = ["task", "activity", "local_activity"];
    kinds
        .into_iter()
        .zip(values)
        .map(|(kind, value)| (vec![KeyValue::new("kind", kind)], value))
        .collect()
}
