//! The durations that a worker measures, as histograms of OpenTelemetry.

use abide::{prelude::*, telemetry::observe};
use abide_sdk_testing::TestEnvironment;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData},
};

#[activity]
async fn charge() {}

#[activity]
async fn check() {}

#[workflow]
async fn order(ctx: &Context) -> abide::Result<()> {
    ctx.call(charge).await?;
    ctx.call_local(check).await
}

/// A meter whose histograms can be read.
struct Meter {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Meter {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { exporter, provider: SdkMeterProvider::builder().with_reader(reader).build() }
    }

    /// Each histogram with its count, sorted: `workflow_task order default: 2`.
    async fn histograms(self) -> Vec<String> {
        // Not on this thread: the reader waits for its own.
        let flush = tokio::task::spawn_blocking(move || self.provider.force_flush());
        flush.await.expect("a thread").expect("an export");
        let mut shown = Vec::new();
        let exported = self.exporter.get_finished_metrics().expect("metrics").pop();
        let exported = exported.expect("one export");
        for metric in exported.scope_metrics().flat_map(|scope| scope.metrics()) {
            let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
                continue;
            };
            assert_eq!(metric.unit(), "s");
            for point in histogram.data_points() {
                assert_eq!(point.bounds().next(), Some(0.001), "the snapshot's buckets");
                let labels = point.attributes().map(|label| label.value.to_string());
                let mut labels: Vec<_> = labels.collect();
                labels.sort();
                let name = metric.name().trim_start_matches("abide_worker_");
                shown.push(format!("{name} {}: {}", labels.join(" "), point.count()));
            }
        }
        shown.sort();
        shown
    }
}

#[tokio::test]
async fn meters_get_each_duration_once_also_of_a_worker_that_runs() {
    let (early, late) = (Meter::new(), Meter::new());
    let mut metrics = None;
    let env = TestEnvironment::with(|worker| {
        let worker = worker.workflow::<order>().activity(charge).activity(check);
        observe(&worker.metrics(), &early.provider.meter("early"));
        metrics = Some(worker.metrics());
        worker
    });
    let env = env.await.unwrap();
    observe(&metrics.unwrap(), &late.provider.meter("late"));
    env.fail_attempt(charge, 1, "busy");
    env.start::<order>(()).await.unwrap().result().await.unwrap();

    let expected = [
        // The second attempt waited for its time, not for a worker.
        "activity charge default: 2",
        "activity_schedule_to_start charge default: 1",
        "local_activity check default: 1",
        "workflow_task default order: 2",
        "workflow_task_schedule_to_start default order: 2",
    ];
    assert_eq!(early.histograms().await, expected);
    assert_eq!(late.histograms().await, expected);
}
