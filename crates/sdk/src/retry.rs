//! How failed attempts are retried, as user code says it.

use std::time::Duration;

use abide_core::retry;
use serde::{Deserialize, Serialize};

use crate::returned::{BoxError, type_name_of};

/// The largest factor between consecutive delays. A larger one would only skip to the longest delay.
const BACKOFF_MAX: f64 = 1000.0;

/// How failed attempts are retried: `RetryPolicy::default().maximum_attempts(5).backoff(1.5)`.
///
/// By default the first retry follows after a second, each delay is twice as long as the one before, up
/// to 100 seconds, and there is no limit to the number of attempts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RetryPolicy(retry::RetryPolicy);

impl RetryPolicy {
    /// No retries.
    #[must_use]
    pub fn once() -> Self {
        Self::default().maximum_attempts(1)
    }

    /// The delay before the second attempt.
    #[must_use]
    pub fn initial_interval(mut self, interval: Duration) -> Self {
        self.0.initial_interval = interval;
        self
    }

    /// The factor between consecutive delays: 1.0 keeps the delay, 2.0 doubles it. It is rounded to
    /// thousandths. A factor below 1.0, or one that is no number, counts as 1.0; one above 1000.0
    /// counts as 1000.0.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the factor is between its bounds"
    )]
    pub fn backoff(mut self, factor: f64) -> Self {
        let factor = if factor.is_nan() { 1.0 } else { factor.clamp(1.0, BACKOFF_MAX) };
        self.0.backoff_permille = (factor * 1000.0).round() as u32;
        self
    }

    /// The longest delay.
    #[must_use]
    pub fn maximum_interval(mut self, interval: Duration) -> Self {
        self.0.maximum_interval = interval;
        self
    }

    /// The number of attempts, the first included; zero means no limit.
    #[must_use]
    pub fn maximum_attempts(mut self, attempts: u32) -> Self {
        self.0.maximum_attempts = attempts;
        self
    }

    /// Errors of this type are not retried: `RetryPolicy::default().no_retry_on::<CardExpired>()`. The
    /// type is known by its name without its path, so that it may move to another module.
    #[must_use]
    pub fn no_retry_on<E: Into<BoxError> + 'static>(self) -> Self {
        self.no_retry_on_type(type_name_of::<E>())
    }

    /// Failures of the type with this name are not retried: for errors of workers in other languages,
    /// and for timeouts, such as `Timeout:Heartbeat`.
    #[must_use]
    pub fn no_retry_on_type(mut self, error_type: impl Into<String>) -> Self {
        self.0.non_retryable_types.push(error_type.into());
        self
    }

    /// Makes retries timers in history, which the worker starts.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.0.recorded = true;
        self
    }
}

impl From<RetryPolicy> for retry::RetryPolicy {
    fn from(policy: RetryPolicy) -> Self {
        policy.0
    }
}

impl From<retry::RetryPolicy> for RetryPolicy {
    fn from(policy: retry::RetryPolicy) -> Self {
        Self(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("declined")]
    struct Declined;

    #[test]
    fn a_policy_is_written_word_by_word() {
        let written = RetryPolicy::default()
            .initial_interval(Duration::from_secs(3))
            .backoff(1.5)
            .maximum_interval(Duration::from_secs(30))
            .maximum_attempts(5)
            .no_retry_on::<Declined>()
            .no_retry_on_type("Unknown")
            .recorded();
        let policy = retry::RetryPolicy {
            initial_interval: Duration::from_secs(3),
            backoff_permille: 1500,
            maximum_interval: Duration::from_secs(30),
            maximum_attempts: 5,
            non_retryable_types: vec!["Declined".into(), "Unknown".into()],
            recorded: true,
        };
        assert_eq!(written.0, policy);
        assert_eq!(RetryPolicy::once().0.maximum_attempts, 1);
    }

    #[test]
    fn a_factor_out_of_bounds_counts_as_the_nearest() {
        let permille = |factor| RetryPolicy::default().backoff(factor).0.backoff_permille;
        assert_eq!([permille(-1.0), permille(0.5), permille(f64::NAN)], [1000; 3]);
        assert_eq!([permille(1e9), permille(f64::INFINITY)], [1_000_000; 2]);
        assert_eq!(permille(2.0004), 2000);
    }
}
