//! OpenTelemetry: one trace from the client through workflows, activities and children.
//!
//! [`OpenTelemetry`] is an interceptor for clients and workers. The context of a trace travels in
//! headers, in the form of W3C (`traceparent`).
//!
//! | span | parent | from, to |
//! |---|---|---|
//! | `start Order`, `signal pay`, `query total`, `update add`, `cancel`, `terminate` | what is current in the client's code | the call |
//! | `run Order` | the start, or the run of the parent | from the start of the run to its end |
//! | `activity charge`, one for each attempt | the run | the attempt; it is current in the activity |
//! | `handle pay` | the signal, query or update | the moment in which it reached the run, with a link to the run |
//!
//! Workflow code runs again on replay, perhaps on another machine and months later. So the ids of its
//! spans follow from the run's id, and a span is exported once, by the worker that brings the run to
//! that point. The span of a run that is terminated or times out is missing, because none of its code
//! runs then. If a worker dies between the export and the acknowledgement of the engine, the next one
//! exports the same span, with the same id, again.
//!
//! The exporter must take these ids from [`SpanIds`]:
//!
//! ```
//! # extern crate abide_sdk as abide;
//! use abide::telemetry::{OpenTelemetry, SpanIds};
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//!
//! let provider = SdkTracerProvider::builder().with_id_generator(SpanIds::default()).build();
//! let telemetry = OpenTelemetry::new(&provider);
//! // client.with_interceptor(telemetry.clone()), and workers that are made of this client have it too
//! # drop(telemetry);
//! ```

mod carrier;
mod durations;
mod ids;
mod meter;
mod spans;

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use abide_core::time::Timestamp;
use opentelemetry::{
    Context, KeyValue,
    propagation::TextMapPropagator,
    trace::{
        Span as _, SpanBuilder, SpanContext, TraceContextExt as _, TraceFlags, Tracer as _,
        TracerProvider as _,
    },
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider, Span},
};

use self::{
    carrier::{Carrier, HeaderTexts},
    ids::Ids,
};
pub use self::{ids::SpanIds, meter::observe};
use crate::{
    executor,
    interceptor::{Headers, RunInfo},
};
use abide_core::payload::PayloadMap;

/// The name of the instrumentation scope.
const SCOPE: &str = "abide";

/// Traces clients and workers. Clones are the same.
#[derive(Clone, Debug)]
pub struct OpenTelemetry {
    tracer: SdkTracer,
    propagator: Arc<dyn TextMapPropagator + Send + Sync>,
    warned: Arc<AtomicBool>,
}

/// A span of workflow code that is over.
struct Past<'a> {
    name: Cow<'static, str>,
    ids: Ids,
    parent: &'a Context,
    times: (Timestamp, Timestamp),
    builder: SpanBuilder,
}

impl OpenTelemetry {
    /// Traces with this provider, which must have [`SpanIds`] as its generator of ids.
    pub fn new(provider: &SdkTracerProvider) -> Self {
        Self {
            tracer: provider.tracer(SCOPE),
            propagator: Arc::new(TraceContextPropagator::new()),
            warned: Arc::default(),
        }
    }

    /// Carries the context in another form than `traceparent`, or with baggage too.
    #[must_use]
    pub fn with_propagator(
        mut self,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) -> Self {
        self.propagator = Arc::new(propagator);
        self
    }

    /// The context that these headers carry; empty if they carry none.
    fn extract(&self, headers: &PayloadMap) -> Context {
        self.propagator.extract_with_context(&Context::new(), &HeaderTexts::of(headers))
    }

    fn inject(&self, context: &Context, headers: &mut Headers) {
        self.propagator.inject_context(context, &mut Carrier(headers));
    }

    /// The context whose span is that of the run, whether it is exported yet or not, and the context
    /// of the run's parent.
    fn of_run(&self, run: &RunInfo) -> (Context, Context) {
        let parent = self.extract(run.header_map());
        let ids = Ids::of_run(run.run_id());
        let above = parent.span().span_context().clone();
        let (trace, flags) = match above.is_valid() {
            true => (above.trace_id(), above.trace_flags()),
            false => (ids.trace, TraceFlags::SAMPLED),
        };
        let state = above.trace_state().clone();
        let own = SpanContext::new(trace, ids.span, flags, true, state);
        (parent.with_remote_span_context(own), parent)
    }

    /// Exports a span of workflow code with its own ids.
    fn export(&self, past: Past<'_>) {
        let Past { name, ids, parent, times: (began, ended), builder } = past;
        let builder = SpanBuilder { name, start_time: Some(system(began)), ..builder };
        // What exporters do is not part of the run.
        executor::outside(|| {
            let mut span = ids.forced(|| self.tracer.build_with_context(builder, parent));
            self.check(&span, &ids);
            span.end_with_timestamp(system(ended));
        });
    }

    /// Warns once if the provider makes up ids of its own.
    fn check(&self, span: &Span, ids: &Ids) {
        let context = span.span_context();
        let own = context.is_valid() && context.span_id() != ids.span;
        if own && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "spans of workflows have no fixed ids, so traces fall apart: build the provider \
                 with `with_id_generator(abide::telemetry::SpanIds::default())`"
            );
        }
    }
}

/// Attributes that all spans about a workflow have.
fn attributes(namespace: &str, workflow: &str, run: Option<String>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("abide.namespace", namespace.to_owned()),
        KeyValue::new("abide.workflow_id", workflow.to_owned()),
    ];
    attributes.extend(run.map(|run| KeyValue::new("abide.run_id", run)));
    attributes
}

fn system(time: Timestamp) -> SystemTime {
    let since = time.saturating_since(Timestamp::EPOCH);
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}
