//! OpenTelemetry: one trace from the client through workflows, activities and children.

pub use abide_sdk::telemetry::{OpenTelemetry, SpanIds, observe};
