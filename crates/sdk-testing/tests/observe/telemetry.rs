//! One trace through client, workflows, activities and children, whatever is replayed.

use std::collections::BTreeSet;

use abide::{
    prelude::*,
    telemetry::{OpenTelemetry, SpanIds},
};
use abide_sdk_testing::TestEnvironment;
use opentelemetry::{
    metrics::MeterProvider as _,
    trace::{Status, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_sdk::{
    metrics::{
        InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
        data::{AggregatedMetrics, MetricData, SumDataPoint},
    },
    trace::{InMemorySpanExporter, SdkTracerProvider, SpanData},
};

#[activity]
async fn charge() {}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, child: bool) -> abide::Result<()> {
        ctx.activity(charge, ()).await?;
        ctx.sleep(days(1)).await?;
        if child {
            ctx.child::<Self>("the-child", false).await?;
            ctx.receive(Order::CLOSE).await?;
        }
        Ok(())
    }

    #[signal]
    fn close();

    #[update]
    fn add(&mut self, number: u32) -> u32 {
        number + 1
    }

    #[query]
    fn total(&self) -> u32 {
        5
    }
}

fn traced() -> (SdkTracerProvider, InMemorySpanExporter, OpenTelemetry) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_id_generator(SpanIds::default())
        .with_simple_exporter(exporter.clone())
        .build();
    let telemetry = OpenTelemetry::new(&provider);
    (provider, exporter, telemetry)
}

/// The spans of this name.
fn named<'a>(spans: &'a [SpanData], name: &str) -> Vec<&'a SpanData> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// The one span of this name.
fn one<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    let found = named(spans, name);
    assert_eq!(found.len(), 1, "{name} in {:?}", names(spans));
    found[0]
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    let mut names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    names.sort_unstable();
    names
}

fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|it| it.key.as_str() == key);
    found.map(|it| it.value.to_string()).unwrap_or_default()
}

/// Everything that a run can do, with a worker that restarts all the time.
async fn long_life() -> Vec<SpanData> {
    let (provider, exporter, telemetry) = traced();
    let env = TestEnvironment::new().await;
    let its = telemetry.clone();
    let set_up = |worker: Worker| worker.workflow::<Order>().activity(charge).interceptor(its);
    let worker = env.worker(set_up).await.expect("it works");
    env.fail_attempt(charge, 1, "busy");
    let client = env.client().with_interceptor(telemetry);

    // What calls the client is part of the trace too.
    let tracer = provider.tracer("test");
    let root = tracer.start("request");
    let context = opentelemetry::Context::current_with_span(root);
    let order = {
        use opentelemetry::trace::FutureExt as _;
        let start = client.start::<Order>("order", true);
        start.into_future().with_context(context.clone()).await.expect("it works")
    };
    context.span().end();
    env.skip(hours(1)).await;
    worker.restart().await.expect("it works");
    env.skip(hours(40)).await;
    env.crash().await.expect("it works");
    assert_eq!(order.update(Order::ADD, 1).await.expect("it works"), 2);
    worker.restart().await.expect("it works");
    assert_eq!(order.query(Order::TOTAL, ()).await.expect("it works"), 5);
    order.signal(Order::CLOSE, ()).await.expect("it works");
    order.result().await.expect("it works");
    // A query replays the closed run.
    worker.restart().await.expect("it works");
    assert_eq!(order.query(Order::TOTAL, ()).await.expect("it works"), 5);
    exporter.get_finished_spans().expect("it works")
}

/// The attempts of activities: whether the child's, their number, and whether they failed.
fn check_attempts(spans: &[SpanData], run: &SpanData, child: &SpanData) {
    let mut attempts = Vec::new();
    for span in named(spans, "activity charge") {
        assert_eq!(span.span_context.trace_id(), run.span_context.trace_id());
        let of_child = span.parent_span_id == child.span_context.span_id();
        assert!(of_child || span.parent_span_id == run.span_context.span_id());
        let failed = matches!(&span.status, Status::Error { .. });
        attempts.push((of_child, attribute(span, "abide.attempt"), failed));
    }
    attempts.sort();
    let attempt = |of_child, number: &str, failed| (of_child, number.to_owned(), failed);
    assert_eq!(
        attempts,
        [
            attempt(false, "1", true),
            attempt(false, "2", false),
            attempt(true, "1", true),
            attempt(true, "2", false),
        ]
    );
}

#[tokio::test]
async fn one_trace_leads_through_everything_and_replay_adds_nothing() {
    let spans = long_life().await;
    assert_eq!(
        names(&spans),
        [
            "activity charge",
            "activity charge",
            "activity charge",
            "activity charge",
            "handle add",
            "handle close",
            "handle total",
            "handle total",
            "query total",
            "query total",
            "request",
            "run Order",
            "run Order",
            "signal close",
            "start Order",
            "update add",
        ]
    );
    let ids: BTreeSet<_> =
        spans.iter().map(|span| span.span_context.span_id().to_string()).collect();
    assert_eq!(ids.len(), spans.len(), "no two spans have the same id");

    let (request, start) = (one(&spans, "request"), one(&spans, "start Order"));
    assert_eq!(start.parent_span_id, request.span_context.span_id());
    let trace = request.span_context.trace_id();
    let runs = named(&spans, "run Order");
    let by_id =
        |id: &str| *runs.iter().find(|span| attribute(span, "abide.workflow_id") == id).unwrap();
    let (run, child) = (by_id("order"), by_id("the-child"));
    assert_eq!(run.parent_span_id, start.span_context.span_id());
    assert_eq!(child.parent_span_id, run.span_context.span_id());
    for span in [start, run, child] {
        assert_eq!(span.span_context.trace_id(), trace);
    }
    assert_eq!(attribute(run, "abide.outcome"), "completed");
    let took = run.end_time.duration_since(run.start_time).unwrap();
    assert!(took >= days(2), "the span of the run has the times of the run: {took:?}");

    check_attempts(&spans, run, child);
    for (name, of) in [("handle add", "update add"), ("handle close", "signal close")] {
        let handled = one(&spans, name);
        assert_eq!(handled.parent_span_id, one(&spans, of).span_context.span_id());
        let link = &handled.links.links[0];
        assert_eq!(link.span_context.span_id(), run.span_context.span_id());
    }
}

#[tokio::test]
async fn without_a_traced_client_the_run_begins_the_trace() {
    let (_provider, exporter, telemetry) = traced();
    let env = TestEnvironment::new().await;
    let set_up =
        |worker: Worker| worker.workflow::<Order>().activity(charge).interceptor(telemetry);
    env.worker(set_up).await.unwrap();
    let order = env.client().start::<Order>("order", false).await.unwrap();
    order.result().await.unwrap();
    let spans = exporter.get_finished_spans().unwrap();
    let (run, activity) = (one(&spans, "run Order"), one(&spans, "activity charge"));
    assert_eq!(activity.parent_span_id, run.span_context.span_id());
    assert_eq!(activity.span_context.trace_id(), run.span_context.trace_id());
    let run_id = order.run_id().unwrap().to_string().replace('-', "");
    assert_eq!(run.span_context.trace_id().to_string(), run_id);
    assert_eq!(run.parent_span_id, opentelemetry::trace::SpanId::INVALID);
}

#[tokio::test]
async fn a_meter_observes_what_a_worker_counts() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let env = TestEnvironment::with(|worker| {
        let worker = worker.workflow::<Order>().activity(charge);
        abide::telemetry::observe(&worker.metrics(), &provider.meter("test"));
        worker
    });
    let env = env.await.unwrap();
    env.fail_attempt(charge, 1, "busy");
    env.start::<Order>(false).await.unwrap().result().await.unwrap();
    // Not on this thread: the reader waits for its own.
    tokio::task::spawn_blocking(move || provider.force_flush().unwrap()).await.unwrap();

    let metrics = exporter.get_finished_metrics().unwrap();
    let metrics: Vec<_> = metrics.iter().flat_map(|it| it.scope_metrics()).collect();
    let metrics: Vec<_> = metrics.iter().flat_map(|scope| scope.metrics()).collect();
    let attempts = metrics.iter().find(|it| it.name() == "abide_worker_activity_attempts").unwrap();
    let AggregatedMetrics::U64(MetricData::Sum(attempts)) = attempts.data() else {
        panic!("{attempts:?}");
    };
    let value = |result: &str| {
        let labels = [("activity_type", "charge"), ("queue", "default"), ("result", result)];
        let labelled = |point: &&SumDataPoint<u64>| {
            let of = |key: &str| point.attributes().find(|it| it.key.as_str() == key);
            labels.iter().all(|(key, value)| of(key).is_some_and(|it| it.value.as_str() == *value))
        };
        attempts.data_points().find(labelled).map(SumDataPoint::value)
    };
    assert_eq!([value("completed"), value("failed"), value("left")], [1, 1, 0].map(Some));
    assert!(metrics.iter().any(|it| it.name() == "abide_worker_slots"));
}
