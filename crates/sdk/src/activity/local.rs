//! Local activities: activities that run in the worker of the workflow, within its workflow task,
//! without a queue and without a task of their own.
//!
//! Workflow code requests one; the driver of the code (a worker, a test) runs the attempts beside
//! it, judges failures with [`LocalActivity::judge`], and delivers the end to the code as a marker.
//! Code records the marker in history and continues, so on replay the end is read from history and
//! nothing runs again.
//!
//! Until its marker is committed, history does not know of a local activity: if the worker dies,
//! the task fails or its completion is refused, it runs again. It runs at least once.

use std::time::Duration;

use abide_core::{
    event::{Marker, MarkerKind},
    failure::Failure,
    ids::ExecutionId,
    payload::{PayloadMap, Payloads},
    retry::{RetryDecision, RetryPolicy, RetryState},
};
use serde::{Deserialize, Serialize};

use crate::payload;

/// The key of a marker's result.
const VALUE: &str = "value";

/// The key of a marker's ending.
const ENDING: &str = "ending";

/// A local activity that workflow code requests.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalActivity {
    /// The id of the activity within the run, and of its marker.
    pub id: String,
    /// The registered name of the activity.
    pub activity_type: String,
    /// The execution id: the same for all attempts, also after a durable delay or a crash.
    pub execution: ExecutionId,
    /// The encoded arguments, one payload each.
    pub input: Payloads,
    /// What travels beside the arguments.
    pub header: PayloadMap,
    /// The number of its first attempt, from 1; higher after a durable delay.
    pub attempt: u32,
    /// The longest duration of one attempt.
    pub start_to_close: Option<Duration>,
    /// The remaining time for all attempts.
    pub schedule_to_close: Option<Duration>,
    /// How failed attempts are retried.
    pub retry: RetryPolicy,
    /// The longest delay between attempts within a task; a longer one becomes a durable timer.
    pub longest_delay: Duration,
}

/// How a local activity ended, from its driver's view.
#[derive(Clone, Debug, PartialEq)]
pub enum LocalEnd {
    /// An attempt succeeded with this result.
    Completed(Payloads),
    /// The last attempt failed, and why there is no retry.
    Failed(Failure, RetryState),
    /// An attempt failed, and the delay before the next one is too long to wait within a task.
    TryLater {
        /// Why this attempt failed.
        failure: Failure,
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The delay before the next attempt.
        after: Duration,
    },
}

/// What follows the failure of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum LocalVerdict {
    /// The next attempt follows after this delay, within the task.
    Again(Duration),
    /// No attempt follows within this task.
    Ends(LocalEnd),
}

/// The part of a marker that only this SDK reads.
#[derive(Default, Serialize, Deserialize)]
struct MarkerDetails {
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl LocalActivity {
    /// Judges the failure of attempt number `attempt`; `elapsed` is the time since the first
    /// attempt began.
    pub fn judge(&self, attempt: u32, failure: Failure, elapsed: Duration) -> LocalVerdict {
        let delay = match self.retry.judge(attempt, &failure) {
            RetryDecision::Stop(state) => {
                return LocalVerdict::Ends(LocalEnd::Failed(failure, state));
            }
            RetryDecision::After(delay) => delay,
        };
        let left = self.schedule_to_close.map(|limit| limit.saturating_sub(elapsed));
        if left.is_some_and(|left| left <= delay) {
            return LocalVerdict::Ends(LocalEnd::Failed(failure, RetryState::Timeout));
        }
        if delay > self.longest_delay {
            let later = LocalEnd::TryLater { failure, attempt, after: delay };
            return LocalVerdict::Ends(later);
        }
        LocalVerdict::Again(delay)
    }

    /// The marker that tells code, now and on every replay, how the attempt of this number ended.
    pub fn marker(&self, attempt: u32, end: LocalEnd) -> Marker {
        let (value, failure, ending) = match end {
            LocalEnd::Completed(result) => {
                (Some(result), None, MarkerDetails { attempt, ..MarkerDetails::default() })
            }
            LocalEnd::Failed(failure, state) => {
                let retry_state = Some(state_name(state).to_owned());
                (None, Some(failure), MarkerDetails { attempt, retry_state, retry_after_ms: None })
            }
            LocalEnd::TryLater { failure, attempt, after } => {
                let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                let ending =
                    MarkerDetails { attempt, retry_state: None, retry_after_ms: Some(after) };
                (None, Some(failure), ending)
            }
        };
        let mut details = std::collections::BTreeMap::new();
        details.extend(value.map(|value| (VALUE.to_owned(), value)));
        // Encoding numbers and names cannot fail.
        details.extend(payload::encode(&ending).ok().map(|ending| (ENDING.to_owned(), ending)));
        let (kind, id, header) = (MarkerKind::LocalActivity, self.id.clone(), PayloadMap::new());
        Marker { kind, id, details, failure, header }
    }
}

impl LocalEnd {
    /// The end that a marker records.
    pub(crate) fn of_marker(marker: &Marker) -> Self {
        let Some(failure) = marker.failure.clone() else {
            return Self::Completed(marker.details.get(VALUE).cloned().unwrap_or_default());
        };
        let ending = marker.details.get(ENDING).map(Vec::as_slice).unwrap_or_default();
        match payload::decode::<MarkerDetails>(ending) {
            Ok(MarkerDetails { attempt, retry_after_ms: Some(after), .. }) => {
                Self::TryLater { failure, attempt, after: Duration::from_millis(after) }
            }
            Ok(MarkerDetails { retry_state: Some(name), .. }) => {
                Self::Failed(failure, state_named(&name))
            }
            Ok(_) | Err(_) => Self::Failed(failure, RetryState::PolicyNotSet),
        }
    }
}

const fn state_name(state: RetryState) -> &'static str {
    match state {
        RetryState::InProgress => "in-progress",
        RetryState::NonRetryableFailure => "non-retryable-failure",
        RetryState::Timeout => "timeout",
        RetryState::MaximumAttemptsReached => "maximum-attempts-reached",
        RetryState::PolicyNotSet => "policy-not-set",
        RetryState::CancelRequested => "cancel-requested",
    }
}

/// An unknown name comes from a later version, which had a reason to stop that this version lacks.
fn state_named(name: &str) -> RetryState {
    [
        RetryState::InProgress,
        RetryState::NonRetryableFailure,
        RetryState::Timeout,
        RetryState::MaximumAttemptsReached,
        RetryState::PolicyNotSet,
        RetryState::CancelRequested,
    ]
    .into_iter()
    .find(|state| state_name(*state) == name)
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity() -> LocalActivity {
        LocalActivity {
            id: "local-1/charge".into(),
            activity_type: "charge".into(),
            execution: "run:local-1".into(),
            input: Vec::new(),
            header: PayloadMap::new(),
            attempt: 1,
            start_to_close: None,
            schedule_to_close: None,
            retry: RetryPolicy::default(),
            longest_delay: Duration::from_secs(3),
        }
    }

    fn failure() -> Failure {
        Failure { message: "no".into(), ..Failure::default() }
    }

    #[test]
    fn a_short_delay_is_waited_for_in_the_task_and_a_long_one_by_a_timer() {
        let after = |attempt| activity().judge(attempt, failure(), Duration::ZERO);
        assert_eq!(after(1), LocalVerdict::Again(Duration::from_secs(1)));
        let later =
            LocalEnd::TryLater { failure: failure(), attempt: 3, after: Duration::from_secs(4) };
        assert_eq!(after(3), LocalVerdict::Ends(later));
    }

    #[test]
    fn an_attempt_that_would_come_too_late_is_not_made() {
        let limited =
            LocalActivity { schedule_to_close: Some(Duration::from_secs(5)), ..activity() };
        let after = |elapsed| limited.judge(1, failure(), Duration::from_secs(elapsed));
        assert_eq!(after(3), LocalVerdict::Again(Duration::from_secs(1)));
        let ends = LocalVerdict::Ends(LocalEnd::Failed(failure(), RetryState::Timeout));
        assert_eq!(after(4), ends);
    }

    #[test]
    fn a_marker_tells_the_end_that_it_was_made_of() {
        let later = LocalEnd::TryLater {
            failure: failure(),
            attempt: 7,
            after: Duration::from_millis(1500),
        };
        let ends = [
            LocalEnd::Completed(Vec::new()),
            LocalEnd::Completed(payload::encode(&5).unwrap()),
            LocalEnd::Failed(failure(), RetryState::MaximumAttemptsReached),
            later,
        ];
        for end in ends {
            let marker = activity().marker(7, end.clone());
            assert_eq!((marker.id.as_str(), LocalEnd::of_marker(&marker)), ("local-1/charge", end));
        }
    }
}
