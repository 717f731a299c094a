//! Ids of spans that follow from the run: the same on every replay, on every machine.

use std::{cell::Cell, hash::Hasher};

use abide_core::ids::RunId;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use siphasher::sip::SipHasher24;

thread_local! {
    /// The ids of the span that this thread is building.
    static FORCED: Cell<Option<Ids>> = const { Cell::new(None) };
}

/// The ids of a span of workflow code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    /// For a trace that begins with the run.
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
}

impl Ids {
    /// The span of the whole run.
    pub(super) fn of_run(run: RunId) -> Self {
        Self::of(run, "run", "")
    }

    /// The span of something within the run.
    pub(super) fn of(run: RunId, kind: &str, id: &str) -> Self {
        let mut hasher = SipHasher24::new();
        hasher.write(run.as_bytes());
        // Lengths keep neighbours apart.
        for part in [kind, id] {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part.as_bytes());
        }
        // Zero is no id.
        let span = SpanId::from(hasher.finish().max(1));
        Self { trace: TraceId::from(u128::from_be_bytes(*run.as_bytes())), span }
    }

    /// Builds a span with these ids.
    pub(super) fn forced<T>(self, build: impl FnOnce() -> T) -> T {
        let _until_built = Forcing(FORCED.replace(Some(self)));
        build()
    }
}

struct Forcing(Option<Ids>);

impl Drop for Forcing {
    fn drop(&mut self) {
        FORCED.set(self.0);
    }
}

/// Generates random ids, and for spans of workflow code those that follow from the run. For
/// `with_id_generator` of a tracer provider.
#[derive(Clone, Debug, Default)]
pub struct SpanIds(RandomIdGenerator);

impl IdGenerator for SpanIds {
    fn new_trace_id(&self) -> TraceId {
        FORCED.get().map_or_else(|| self.0.new_trace_id(), |ids| ids.trace)
    }

    fn new_span_id(&self) -> SpanId {
        FORCED.get().map_or_else(|| self.0.new_span_id(), |ids| ids.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinned: a run may live longer than the version of this crate that began it.
    #[test]
    fn ids_follow_from_the_run_and_stay_the_same() {
        let run = RunId::new(uuid::Uuid::from_bytes([7; 16]));
        let ids = Ids::of_run(run);
        assert_eq!(ids.trace.to_string(), "07".repeat(16));
        assert_eq!(ids, Ids::of_run(run));
        let others =
            [Ids::of(run, "signal", "3"), Ids::of(run, "signal", "4"), Ids::of(run, "update", "3")];
        assert!(others.iter().all(|other| other.span != ids.span));
        assert_ne!(others[0].span, others[1].span);
        assert_ne!(others[0].span, others[2].span);
        assert_eq!(ids.span.to_string(), "a37aae15e5adaa13");
    }

    #[test]
    fn other_spans_have_random_ids() {
        let generator = SpanIds::default();
        let ids = Ids::of_run(RunId::new(uuid::Uuid::from_bytes([7; 16])));
        let forced = ids.forced(|| (generator.new_trace_id(), generator.new_span_id()));
        assert_eq!(forced, (ids.trace, ids.span));
        assert_ne!(generator.new_span_id(), ids.span);
        assert_ne!(generator.new_trace_id(), ids.trace);
    }
}
