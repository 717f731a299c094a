//! Why an answer is not taken, told to the approver at once.

use abide_core::failure::Failure;
use serde::{Deserialize, Serialize};

use crate::payload;

/// The type of the failure that carries a refusal.
const ERROR_TYPE: &str = "ApprovalRefusal";

/// Why an answer is not taken.
///
/// Whoever sends an update gets it within the failure; see [`Refusal::of`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such request in the run, or not yet.
    #[error("no such request: {request}; {}", open_ones(.open))]
    NoSuchRequest {
        /// What was answered.
        request: String,
        /// The requests that are open.
        open: Vec<String>,
    },
    /// The sender may not do this.
    #[error("not allowed: {approver:?} may not act on request {request}")]
    NotAllowed {
        /// The request.
        request: String,
        /// The sender.
        approver: String,
    },
    /// The sender has handed over to somebody else.
    #[error("not allowed: {approver} has handed over request {request} to {to}")]
    HandedOver {
        /// The request.
        request: String,
        /// The sender.
        approver: String,
        /// Who decides instead.
        to: String,
    },
    /// The sender has a vote, and has given it.
    #[error("already voted: {approver} has decided on request {request}")]
    AlreadyVoted {
        /// The request.
        request: String,
        /// The sender.
        approver: String,
    },
    /// The person to hand over to has a vote already, or had one.
    #[error("cannot be delegated: {to} has a part in request {request} already")]
    CannotDelegate {
        /// The request.
        request: String,
        /// Who was to decide.
        to: String,
    },
    /// The request has been handed over too often.
    #[error("cannot be delegated: request {request} was handed over {limit} times already")]
    TooManyHandovers {
        /// The request.
        request: String,
        /// How often it can be.
        limit: usize,
    },
    /// A part of the answer is too long.
    #[error(
        "too long: {part} of an answer to request {request} has {bytes} bytes of at most {limit}"
    )]
    TooLong {
        /// The request.
        request: String,
        /// Which part: `approver`, `delegate_to` or `comment`.
        part: String,
        /// How long it is.
        bytes: usize,
        /// How long it can be.
        limit: usize,
    },
    /// The request does not offer this.
    #[error("no such decision: request {request} takes {}, not {decision}", .choices.join(", "))]
    NoSuchDecision {
        /// The request.
        request: String,
        /// What was sent.
        decision: String,
        /// What can be decided.
        choices: Vec<String>,
    },
    /// The request offers this, but not with such data, or not without.
    #[error("no such decision: {decision} of request {request} cannot be read: {problem}")]
    UnreadableDecision {
        /// The request.
        request: String,
        /// The name of what was sent.
        decision: String,
        /// What is wrong with its data.
        problem: String,
    },
    /// Others were faster, or the deadline was, and the fallback holds.
    #[error("already decided: request {request} is over with {decision}")]
    AlreadyDecided {
        /// The request.
        request: String,
        /// What was decided.
        decision: String,
    },
    /// The request was withdrawn, or its deadline has passed and this cannot be done late.
    #[error("closed: request {request} waits no more")]
    Closed {
        /// The request.
        request: String,
    },
}

impl Refusal {
    /// The refusal within the failure of an update, if it is one.
    pub fn of(failure: &Failure) -> Option<Self> {
        let told = failure.error_type == ERROR_TYPE;
        told.then(|| payload::decode(&failure.details).ok()).flatten()
    }

    /// What the caller of an update gets.
    pub(crate) fn to_failure(&self) -> Failure {
        Failure {
            message: self.to_string(),
            error_type: ERROR_TYPE.into(),
            non_retryable: true,
            // The message says it too, so a failure without details is better than none.
            details: payload::encode(self).unwrap_or_default(),
            ..Failure::default()
        }
    }
}

fn open_ones(open: &[String]) -> String {
    if open.is_empty() { "none is open".into() } else { format!("open: {}", open.join(", ")) }
}
