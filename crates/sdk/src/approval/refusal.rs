//! Why an answer is refused, returned to the approver at once.

use abide_core::failure;
use serde::{Deserialize, Serialize};

use crate::{failure::Failure, payload};

/// The error type of the failure that carries a refusal.
const ERROR_TYPE: &str = "ApprovalRefusal";

/// Why an answer is refused.
///
/// The sender of an update gets it inside the failure; see [`Refusal::of`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// The run has no such request, or has not asked it yet.
    #[error("no such request: {request}; {}", open_ones(.open))]
    NoSuchRequest {
        /// The id in the answer.
        request: String,
        /// The ids of the open requests.
        open: Vec<String>,
    },
    /// The sender is not among the people and roles that may act.
    #[error("not allowed: {approver:?} may not act on request {request}")]
    NotAllowed {
        /// The id of the request within the run.
        request: String,
        /// The name of the sender.
        approver: String,
    },
    /// The sender has delegated the decision to another person.
    #[error("not allowed: {approver} has delegated request {request} to {to}")]
    HandedOver {
        /// The id of the request within the run.
        request: String,
        /// The name of the sender.
        approver: String,
        /// The person who decides instead.
        to: String,
    },
    /// The sender has voted already.
    #[error("already voted: {approver} has already decided on request {request}")]
    AlreadyVoted {
        /// The id of the request within the run.
        request: String,
        /// The name of the sender.
        approver: String,
    },
    /// The delegate has, or had, a vote of their own.
    #[error("cannot be delegated: {to} already takes part in request {request}")]
    CannotDelegate {
        /// The id of the request within the run.
        request: String,
        /// The name of the delegate.
        to: String,
    },
    /// The request has been delegated too often.
    #[error("cannot be delegated: request {request} has been delegated {limit} times, the maximum")]
    TooManyHandovers {
        /// The id of the request within the run.
        request: String,
        /// The largest number of delegations.
        limit: usize,
    },
    /// A text of the answer is too long.
    #[error(
        "too long: {part} of an answer to request {request} has {bytes} bytes of at most {limit}"
    )]
    TooLong {
        /// The id of the request within the run.
        request: String,
        /// Which text: `approver`, `delegate_to` or `comment`.
        part: String,
        /// Its length in bytes.
        bytes: usize,
        /// The largest length in bytes.
        limit: usize,
    },
    /// The request does not offer this choice.
    #[error("no such decision: request {request} accepts {}, not {decision}", .choices.join(", "))]
    NoSuchDecision {
        /// The id of the request within the run.
        request: String,
        /// The name of the choice in the answer.
        decision: String,
        /// The names of the choices that the request offers.
        choices: Vec<String>,
    },
    /// The request offers this choice, but its data cannot be decoded.
    #[error("no such decision: {decision} of request {request} cannot be read: {problem}")]
    UnreadableDecision {
        /// The id of the request within the run.
        request: String,
        /// The name of the choice in the answer.
        decision: String,
        /// Why its data cannot be decoded.
        problem: String,
    },
    /// The request was decided before, or its deadline came first and the fallback applies.
    #[error("already decided: request {request} was decided with {decision}")]
    AlreadyDecided {
        /// The id of the request within the run.
        request: String,
        /// The name of the decision or fallback.
        decision: String,
    },
    /// The request was withdrawn, or its deadline has passed and the answer cannot be accepted
    /// late.
    #[error("closed: request {request} is no longer open")]
    Closed {
        /// The id of the request within the run.
        request: String,
    },
}

impl Refusal {
    /// Extracts the refusal from the failure of an update, if it carries one.
    pub fn of(failure: &Failure) -> Option<Self> {
        let told = failure.error_type() == ERROR_TYPE;
        told.then(|| payload::decode(failure.details()).ok()).flatten()
    }

    /// The failure that the caller of an update gets.
    pub(crate) fn to_failure(&self) -> failure::Failure {
        failure::Failure {
            message: self.to_string(),
            error_type: ERROR_TYPE.into(),
            non_retryable: true,
            // The message has the same information, so details that cannot be encoded are left out.
            details: payload::encode(self).unwrap_or_default(),
            ..failure::Failure::default()
        }
    }
}

fn open_ones(open: &[String]) -> String {
    if open.is_empty() { "none is open".into() } else { format!("open: {}", open.join(", ")) }
}
