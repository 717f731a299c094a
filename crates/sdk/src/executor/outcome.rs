//! The outcomes of activities, children and updates, in the types of the executor.

use abide_core::{
    event::{self, DeliveryFailure},
    failure::{Failure, FailureKind, TimeoutKind},
    payload::Payloads,
    replay::{ActivityClose, ChildClose},
    retry::RetryState,
};

use super::waits::ChildClosed;
use crate::failure;

pub(super) fn of_activity(close: ActivityClose<'_>) -> Result<Payloads, (Failure, RetryState)> {
    match close {
        ActivityClose::Completed(completed) => Ok(completed.result.clone()),
        ActivityClose::Failed(failed) => Err((failed.failure.clone(), failed.retry_state)),
        ActivityClose::TimedOut(timed_out) => {
            Err((timed_out.failure.clone(), timed_out.retry_state))
        }
        ActivityClose::Cancelled(cancelled) => {
            let failure = Failure::server(FailureKind::Cancelled, "the activity was cancelled");
            let failure = Failure { details: cancelled.details.clone(), ..failure };
            Err((failure, RetryState::CancelRequested))
        }
    }
}

pub(super) fn of_child(close: ChildClose<'_>) -> Result<Payloads, Box<ChildClosed>> {
    let closed = |failure, retry_state| {
        Err(Box::new(ChildClosed { failure, retry_state, not_started: None }))
    };
    match close {
        ChildClose::Completed(completed) => Ok(completed.result.clone()),
        ChildClose::Failed(failed) => closed(failed.failure.clone(), failed.retry_state),
        ChildClose::TimedOut(timed_out) => {
            let failure = Failure::timeout(TimeoutKind::StartToClose);
            let failure = Failure { message: "it timed out".into(), ..failure };
            closed(failure, timed_out.retry_state)
        }
        ChildClose::Cancelled(cancelled) => {
            let failure = Failure::server(FailureKind::Cancelled, "it was cancelled");
            let failure = Failure { details: cancelled.details.clone(), ..failure };
            closed(failure, RetryState::CancelRequested)
        }
        ChildClose::Terminated(terminated) => {
            let message = format!("it was terminated: {}", terminated.reason);
            let failure = Failure::server(FailureKind::Terminated, message);
            closed(failure, RetryState::NonRetryableFailure)
        }
        ChildClose::StartFailed(cause) => Err(not_started(cause)),
    }
}

fn not_started(cause: DeliveryFailure) -> Box<ChildClosed> {
    let message = format!("it was not started: {}", failure::DeliveryFailure::from(cause));
    let failure = Failure::server(FailureKind::Server, message);
    let failure = Failure { non_retryable: true, ..failure };
    let retry_state = RetryState::NonRetryableFailure;
    Box::new(ChildClosed { failure, retry_state, not_started: Some(cause) })
}

pub(super) fn of_update(result: Result<Payloads, Failure>) -> event::UpdateOutcome {
    result.map_or_else(event::UpdateOutcome::Failed, event::UpdateOutcome::Completed)
}
