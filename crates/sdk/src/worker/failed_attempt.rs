//! The log line about an attempt that failed: its number, and whether another follows.

use abide_core::{
    failure::Failure,
    ids::WorkflowKey,
    retry::{RetryDecision, RetryPolicy, RetryState},
    run::ActivityGiven,
};

use super::notice;

/// What is logged about the failure of an attempt, kept while the attempt runs.
pub(super) struct FailedAttempt {
    name: String,
    attempt: u32,
    retry: Option<RetryPolicy>,
}

impl FailedAttempt {
    pub(super) fn of(given: &ActivityGiven) -> Self {
        let spec = &given.spec;
        let (name, retry) = (spec.activity_type.clone(), spec.retry.clone());
        Self { name, attempt: given.attempt, retry }
    }

    /// Logs the failure. One that is never retried is a result that workflow code gets at once and
    /// may expect, so it is no warning.
    pub(super) fn log(&self, workflow: &WorkflowKey, failure: &Failure) {
        let line = self.line(failure);
        match self.decision(failure) {
            RetryDecision::Stop(RetryState::NonRetryableFailure) => {
                notice::info(workflow, format_args!("{line}"));
            }
            _ => notice::warn(workflow, format_args!("{line}")),
        }
    }

    fn line(&self, failure: &Failure) -> String {
        let next = match self.decision(failure) {
            RetryDecision::After(delay) => format!("next in {delay:?} if its time allows"),
            RetryDecision::Stop(RetryState::NonRetryableFailure) => {
                "not retried: the error is not retryable".into()
            }
            RetryDecision::Stop(RetryState::MaximumAttemptsReached) => {
                "not retried: it was the last".into()
            }
            RetryDecision::Stop(_) => "not retried".to_owned(),
        };
        let Self { name, attempt, .. } = self;
        format!("attempt {attempt} of {name} failed ({next}): {}", failure.message)
    }

    fn decision(&self, failure: &Failure) -> RetryDecision {
        let none = RetryDecision::Stop(RetryState::PolicyNotSet);
        self.retry.as_ref().map_or(none, |policy| policy.judge(self.attempt, failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_number_and_what_follows() {
        let policy = RetryPolicy { maximum_attempts: 2, ..RetryPolicy::default() };
        let line = |attempt, retry: Option<&RetryPolicy>, non_retryable| {
            let failed = FailedAttempt { name: "ship".into(), attempt, retry: retry.cloned() };
            failed.line(&Failure { message: "lost".into(), non_retryable, ..Failure::default() })
        };
        assert_eq!(
            line(1, Some(&policy), false),
            "attempt 1 of ship failed (next in 1s if its time allows): lost"
        );
        assert_eq!(
            line(2, Some(&policy), false),
            "attempt 2 of ship failed (not retried: it was the last): lost"
        );
        assert_eq!(
            line(1, Some(&policy), true),
            "attempt 1 of ship failed (not retried: the error is not retryable): lost"
        );
        assert_eq!(line(1, None, false), "attempt 1 of ship failed (not retried): lost");
    }
}
