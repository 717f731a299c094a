//! Retry policies. Pure arithmetic: from a policy, the number of the failed attempt and its
//! failure, compute a delay or the reason why no retry follows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind, TimeoutKind};

/// Lower bound for every delay, so that attempts that fail immediately do not fill the log.
pub const MINIMUM_INTERVAL: Duration = Duration::from_millis(10);

/// Policy for failed attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Delay before the second attempt.
    pub initial_interval: Duration,
    /// Factor between consecutive delays, in thousandths: 2000 doubles.
    pub backoff_permille: u32,
    /// Upper bound for the delay.
    pub maximum_interval: Duration,
    /// Maximum number of attempts; zero means no limit.
    pub maximum_attempts: u32,
    /// Failures of these types are not retried.
    pub non_retryable_types: Vec<String>,
    /// Retries are timers in history that the worker starts; otherwise the server retries.
    pub recorded: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial_interval: Duration::from_secs(1),
            backoff_permille: 2000,
            maximum_interval: Duration::from_secs(100),
            maximum_attempts: 0,
            non_retryable_types: Vec::new(),
            recorded: false,
        }
    }
}

/// Builder methods: `RetryPolicy::default().maximum_attempts(5).initial_interval(second)`.
impl RetryPolicy {
    /// No retries.
    #[must_use]
    pub fn once() -> Self {
        Self::default().maximum_attempts(1)
    }

    /// Sets the delay before the second attempt.
    #[must_use]
    pub fn initial_interval(mut self, interval: Duration) -> Self {
        self.initial_interval = interval;
        self
    }

    /// Sets the upper bound for the delay.
    #[must_use]
    pub fn maximum_interval(mut self, interval: Duration) -> Self {
        self.maximum_interval = interval;
        self
    }

    /// Limits the number of attempts, the first included; zero means no limit.
    #[must_use]
    pub fn maximum_attempts(mut self, attempts: u32) -> Self {
        self.maximum_attempts = attempts;
        self
    }

    /// Adds a type of failures that are not retried.
    #[must_use]
    pub fn non_retryable(mut self, error_type: impl Into<String>) -> Self {
        self.non_retryable_types.push(error_type.into());
        self
    }

    /// Makes retries timers in history, which the worker starts.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.recorded = true;
        self
    }
}

/// Whether a retry follows, or why not; part of the closing event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RetryState {
    InProgress,
    /// The failure is marked as not retryable.
    NonRetryableFailure,
    /// No time is left for another attempt.
    Timeout,
    /// The policy allows no further attempt.
    MaximumAttemptsReached,
    /// There is no policy, or its retries are recorded by the workflow that started the run.
    #[default]
    PolicyNotSet,
    CancelRequested,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    After(Duration),
    Stop(RetryState),
}

impl RetryPolicy {
    /// Decides about the failure of attempt number `attempt`, from 1.
    pub fn judge(&self, attempt: u32, failure: &Failure) -> RetryDecision {
        if self.forbids(failure) {
            return RetryDecision::Stop(RetryState::NonRetryableFailure);
        }
        if self.maximum_attempts != 0 && attempt >= self.maximum_attempts {
            return RetryDecision::Stop(RetryState::MaximumAttemptsReached);
        }
        RetryDecision::After(failure.next_retry_delay.unwrap_or_else(|| self.delay_after(attempt)))
    }

    /// Delay after attempt number `attempt`: exponential, capped.
    pub fn delay_after(&self, attempt: u32) -> Duration {
        let mut delay = self.initial_interval;
        for _ in 1..attempt {
            if delay >= self.maximum_interval || self.backoff_permille <= 1000 {
                break;
            }
            let next = delay.saturating_mul(self.backoff_permille) / 1000;
            if next == delay {
                break;
            }
            delay = next;
        }
        let delay =
            if self.maximum_interval.is_zero() { delay } else { delay.min(self.maximum_interval) };
        delay.max(MINIMUM_INTERVAL)
    }

    fn forbids(&self, failure: &Failure) -> bool {
        let final_kind = matches!(
            failure.kind,
            FailureKind::Cancelled
                | FailureKind::Terminated
                | FailureKind::Timeout(TimeoutKind::ScheduleToStart | TimeoutKind::ScheduleToClose)
        );
        // A failure that was passed on has the original one as its cause.
        let excluded = |cause: &Failure| self.non_retryable_types.contains(&cause.error_type);
        failure.non_retryable || final_kind || failure.chain().any(excluded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RetryPolicy {
        RetryPolicy { maximum_attempts: 5, ..RetryPolicy::default() }
    }

    #[test]
    fn a_policy_is_said_word_by_word() {
        let said = RetryPolicy::default()
            .initial_interval(Duration::from_secs(3))
            .maximum_interval(Duration::from_secs(30))
            .maximum_attempts(5)
            .non_retryable("Declined")
            .non_retryable("Unknown")
            .recorded();
        let policy = RetryPolicy {
            initial_interval: Duration::from_secs(3),
            backoff_permille: 2000,
            maximum_interval: Duration::from_secs(30),
            maximum_attempts: 5,
            non_retryable_types: vec!["Declined".into(), "Unknown".into()],
            recorded: true,
        };
        assert_eq!(said, policy);
        assert_eq!(RetryPolicy::once().maximum_attempts, 1);
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let seconds: Vec<_> = (1..=9).map(|n| policy().delay_after(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
        assert_eq!(policy().delay_after(u32::MAX).as_secs(), 100);
    }

    #[test]
    fn a_flat_policy_ends_at_once_for_any_attempt() {
        let flat = RetryPolicy { backoff_permille: 1000, ..policy() };
        assert_eq!(flat.delay_after(u32::MAX).as_secs(), 1);
    }

    #[test]
    fn the_reasons_to_stop() {
        let plain = Failure::default();
        assert_eq!(policy().judge(4, &plain), RetryDecision::After(Duration::from_secs(8)));
        assert_eq!(
            policy().judge(5, &plain),
            RetryDecision::Stop(RetryState::MaximumAttemptsReached)
        );

        let fatal = Failure { non_retryable: true, ..Failure::default() };
        assert_eq!(policy().judge(1, &fatal), RetryDecision::Stop(RetryState::NonRetryableFailure));

        let mut picky = policy();
        picky.non_retryable_types.push("Timeout:Heartbeat".into());
        let silent = Failure::timeout(TimeoutKind::Heartbeat);
        assert_eq!(picky.judge(1, &silent), RetryDecision::Stop(RetryState::NonRetryableFailure));
        assert_eq!(policy().judge(1, &silent), RetryDecision::After(Duration::from_secs(1)));
    }

    #[test]
    fn an_excluded_type_is_found_among_the_causes() {
        let cause = Failure { error_type: "CardExpired".into(), ..Failure::default() };
        let passed_on = Failure { causes: cause.into(), ..Failure::default() };
        let picky = policy().non_retryable("CardExpired");
        let stop = RetryDecision::Stop(RetryState::NonRetryableFailure);
        assert_eq!(picky.judge(1, &passed_on), stop);
        assert_ne!(policy().judge(1, &passed_on), stop);
    }

    #[test]
    fn a_failure_can_choose_its_own_delay() {
        let delay = Duration::from_secs(3600);
        let failure = Failure { next_retry_delay: Some(delay), ..Failure::default() };
        assert_eq!(policy().judge(1, &failure), RetryDecision::After(delay));
    }
}
