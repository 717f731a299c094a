//! A failure and what led to it.

use abide_core::failure::Failure;
use serde_json::{Value, json};

use super::payload::payloads;

/// For programs: nested as it is.
pub(crate) fn failure(failure: &Failure) -> Value {
    json!({
        "message": failure.message,
        "type": (!failure.error_type.is_empty()).then_some(&failure.error_type),
        "non_retryable": failure.non_retryable,
        "details": payloads(&failure.details),
        "cause": failure.cause.as_deref().map(self::failure),
    })
}

/// For people: the message, and one line per cause.
pub(crate) fn failure_lines(failure: &Failure) -> String {
    let causes = std::iter::successors(failure.cause.as_deref(), |cause| cause.cause.as_deref());
    let causes: String = causes.map(|cause| format!("\n  because: {}", cause.message)).collect();
    format!("{}{causes}", failure.message)
}
