//! What came of activities, children and updates, in the words of the executor.

use abide_core::{
    event::{self, DeliveryFailure},
    failure::{Failure, FailureKind},
    payload::Payloads,
    replay::{ActivityClose, ChildClose},
    retry::RetryState,
};

use super::waits::ChildClosed;
use crate::error::delivery_message;

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
    let closed = |failure| Err(Box::new(ChildClosed { failure, not_started: None }));
    match close {
        ChildClose::Completed(completed) => Ok(completed.result.clone()),
        ChildClose::Failed(failed) => closed(failed.failure.clone()),
        ChildClose::TimedOut(_) => closed(Failure::server(FailureKind::Child, "its time was up")),
        ChildClose::Cancelled(cancelled) => {
            let failure = Failure::server(FailureKind::Cancelled, "it was cancelled");
            closed(Failure { details: cancelled.details.clone(), ..failure })
        }
        ChildClose::Terminated(terminated) => {
            let message = format!("it was terminated: {}", terminated.reason);
            closed(Failure::server(FailureKind::Terminated, message))
        }
        ChildClose::StartFailed(cause) => Err(not_started(cause)),
    }
}

fn not_started(cause: DeliveryFailure) -> Box<ChildClosed> {
    let message = format!("it was not started: {}", delivery_message(cause));
    let failure = Failure::server(FailureKind::Server, message);
    let failure = Failure { non_retryable: true, ..failure };
    Box::new(ChildClosed { failure, not_started: Some(cause) })
}

pub(super) fn of_update(result: Result<Payloads, Failure>) -> event::Outcome {
    result.map_or_else(event::Outcome::Failed, event::Outcome::Completed)
}
