//! What the query returns: every request of the run, and all answers to it.

use abide_core::ids::TimerId;
use serde::{Deserialize, Serialize};

use super::{Answer, Receipt, Refusal};
use crate::Timestamp;

/// All requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Every request, in the order in which they were first asked.
    pub requests: Vec<RequestState>,
    /// The newest 100 answers by signal to requests that have not been asked. They are judged when
    /// their requests are asked.
    pub early: Vec<Entry>,
}

/// The state of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestState {
    /// The id of the request within the run.
    pub request: String,
    /// What is asked, in a few words for people.
    pub subject: String,
    /// The person who asks, if the request names one.
    pub requester: Option<String>,
    /// The people who may act, delegates included; see also `roles`.
    pub approvers: Vec<String>,
    /// The roles that may act. Without people and roles, anyone may.
    pub roles: Vec<String>,
    /// The names of the choices.
    pub choices: Vec<String>,
    /// Whether the request has ended, and how.
    pub status: Status,
    /// The name of the decision or the fallback, once the request has ended.
    pub decision: Option<String>,
    /// The comment of the withdrawal, if the request was withdrawn with one.
    pub reason: Option<String>,
    /// When the request was last asked.
    pub asked_at: Timestamp,
    /// When the request ended; none while it is open.
    pub ended_at: Option<Timestamp>,
    /// The current deadline, while the request is open.
    pub deadline: Option<Timestamp>,
    /// The timer of the deadline, by which clients and operators move it.
    pub timer: Option<TimerId>,
    /// All answers that reached the run, in order.
    pub entries: Vec<Entry>,
}

/// Whether a request has ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It waits for answers.
    Open,
    /// There are enough votes for a decision.
    Decided,
    /// The deadline came before a decision.
    TimedOut,
    /// The requester or code has withdrawn it.
    Withdrawn,
}

/// One answer, and how it was judged. Answers that the update's validator refused are missing:
/// their senders got the refusal, and history does not record them; see
/// [`Request::record_refusals`](super::Request::record_refusals).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// When the answer reached the run, by the run's time.
    pub at: Timestamp,
    /// The channel on which the answer came.
    #[serde(rename = "way")]
    pub channel: AnswerChannel,
    /// The answer as it was sent.
    pub answer: Answer,
    /// Whether the answer was accepted.
    #[serde(rename = "judgement")]
    pub result: AnswerResult,
}

/// The channel on which an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerChannel {
    /// The update `decide`; its sender gets a receipt or a refusal.
    Update,
    /// The signal `decision`; its sender gets no reply.
    Signal,
    /// Code of the workflow called [`Context::decide`](crate::Context::decide).
    Code,
}

/// How an answer was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerResult {
    /// It was accepted, with this receipt.
    Taken(Receipt),
    /// It was refused, for this reason.
    Refused(Refusal),
    /// It repeats an earlier answer with the same key, and changes nothing.
    Repeated,
    /// The request has not been asked yet; the answer is judged when it is.
    Early,
}
