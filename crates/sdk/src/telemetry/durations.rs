//! The durations that a worker measures, as histograms of OpenTelemetry. Those have no observable
//! form, so each duration is recorded when it is measured.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter},
};

use crate::worker::metrics::{BOUNDS_MS, DurationObserver, DurationOf, TakeDuration};

/// Histograms of one worker.
pub(super) struct Durations {
    workflow_task: Histogram<f64>,
    workflow_task_wait: Histogram<f64>,
    activity: Histogram<f64>,
    activity_wait: Histogram<f64>,
    local_activity: Histogram<f64>,
}

impl Durations {
    pub(super) fn new(meter: &Meter) -> Self {
        let histogram = |name: &'static str, description: &'static str| {
            let bounds = BOUNDS_MS.iter().map(|ms| Duration::from_millis(*ms).as_secs_f64());
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(bounds.collect())
                .build()
        };
        Self {
            workflow_task: histogram(
                "abide_worker_workflow_task",
                "From arrival to end of a workflow task.",
            ),
            workflow_task_wait: histogram(
                "abide_worker_workflow_task_schedule_to_start",
                "How long workflow tasks waited for a worker.",
            ),
            activity: histogram("abide_worker_activity", "How long the code of attempts ran."),
            activity_wait: histogram(
                "abide_worker_activity_schedule_to_start",
                "How long first attempts waited for a worker.",
            ),
            local_activity: histogram(
                "abide_worker_local_activity",
                "How long attempts of local activities took.",
            ),
        }
    }
}

impl DurationObserver for Durations {
    fn of(&self, what: DurationOf, queue: &str, type_name: &str) -> TakeDuration {
        let (histogram, key) = match what {
            DurationOf::WorkflowTask => (&self.workflow_task, "workflow_type"),
            DurationOf::WorkflowTaskWait => (&self.workflow_task_wait, "workflow_type"),
            DurationOf::Activity => (&self.activity, "activity_type"),
            DurationOf::ActivityWait => (&self.activity_wait, "activity_type"),
            DurationOf::LocalActivity => (&self.local_activity, "activity_type"),
        };
        let histogram = histogram.clone();
        let labels =
            [KeyValue::new(key, type_name.to_owned()), KeyValue::new("queue", queue.to_owned())];
        Box::new(move |duration| histogram.record(duration.as_secs_f64(), &labels))
    }
}
