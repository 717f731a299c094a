//! A failure and its causes.

use abide_core::failure::Failure;
use serde_json::{Value, json};

use super::payload::payloads;

/// Causes that are shown: more than an engine stores, and fewer levels than JSON readers accept.
const CAUSES_MAX: usize = 100;

/// For programs: each failure with its cause inside.
pub(crate) fn failure(failure: &Failure) -> Value {
    let causes = failure.causes.iter().take(CAUSES_MAX).rev();
    causes.chain([failure]).fold(Value::Null, |cause, failure| {
        json!({
            "message": failure.message,
            "type": (!failure.error_type.is_empty()).then_some(&failure.error_type),
            "non_retryable": failure.non_retryable,
            "details": payloads(&failure.details),
            "cause": cause,
        })
    })
}

/// For people: the message, and one line per cause.
pub(crate) fn failure_lines(failure: &Failure) -> String {
    let causes: String =
        failure.causes.iter().map(|cause| format!("\n  because: {}", cause.message)).collect();
    format!("{}{causes}", failure.message)
}
