//! Replacements for results that the engine refuses because they are too large. The attempt has
//! ended and needs a result, or it would stay open until its timeout; and the caller of a query
//! waits for an answer.

use abide_core::{
    failure::{Failure, FailureKind},
    limits::InvalidField,
    run::Resolution,
};

/// How many characters of a text are kept.
const KEPT_CHARS: usize = 200;

/// The replacement for a refused result; none if a replacement was refused already.
pub(super) fn instead_of(refused: Resolution, problem: &InvalidField) -> Option<Resolution> {
    let failure = match refused {
        Resolution::Failed(failure) => shortened(&failure, problem)?,
        Resolution::Completed(_) | Resolution::Cancelled(_) => not_stored(problem),
    };
    Some(Resolution::Failed(failure))
}

/// The failure of an activity whose result is refused. A retry would be refused again, so it is not
/// retryable.
pub(super) fn not_stored(problem: &InvalidField) -> Failure {
    let message = format!("the result cannot be stored: {problem}");
    Failure { non_retryable: true, ..Failure::server(FailureKind::Application, message) }
}

/// The failure that the caller of a query gets if the answer cannot be sent.
pub(super) fn query_failure(name: &str, problem: &InvalidField) -> Failure {
    let name = beginning(name);
    let message = format!("query {name} was answered, but the answer cannot be sent: {problem}");
    Failure::server(FailureKind::Application, message)
}

/// The failure without its parts that can be too large; it is retried as the original would be.
pub(super) fn shortened(failure: &Failure, problem: &InvalidField) -> Option<Failure> {
    let message = beginning(&failure.message);
    let short = Failure {
        message: format!("{message} (shortened: the failure cannot be stored: {problem})"),
        error_type: beginning(&failure.error_type),
        kind: failure.kind,
        non_retryable: failure.non_retryable,
        next_retry_delay: failure.next_retry_delay,
        ..Failure::default()
    };
    (short.size().memory() < failure.size().memory() || !failure.causes.is_empty()).then_some(short)
}

fn beginning(text: &str) -> String {
    text.chars().take(KEPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn problem() -> InvalidField {
        InvalidField::new("failure", "is too large")
    }

    #[test]
    fn a_failure_that_is_too_large_keeps_its_type_and_whether_it_is_retried() {
        let large = Failure {
            message: "x".repeat(10_000),
            error_type: "Declined".into(),
            next_retry_delay: Some(Duration::from_secs(7)),
            non_retryable: true,
            causes: Failure::default().into(),
            ..Failure::default()
        };
        let Some(Resolution::Failed(short)) =
            instead_of(Resolution::Failed(large.clone()), &problem())
        else {
            panic!("there is no failure instead");
        };
        assert!(short.message.len() < 400 && short.message.contains("failure is too large"));
        assert_eq!(short.error_type, large.error_type);
        assert_eq!(short.next_retry_delay, large.next_retry_delay);
        assert!(short.non_retryable);
        assert!(short.causes.is_empty());
        assert_eq!(
            instead_of(Resolution::Failed(short), &problem()),
            None,
            "there is an end to it"
        );
    }

    #[test]
    fn a_result_that_cannot_be_stored_is_not_computed_again() {
        let instead = instead_of(Resolution::Completed(Vec::new()), &problem());
        assert!(matches!(instead, Some(Resolution::Failed(failure)) if failure.non_retryable));
    }
}
