//! What the query tells: every request of the run, and everything that was said to it.

use abide_core::ids::TimerId;
use serde::{Deserialize, Serialize};

use super::{Answer, Receipt, Refusal};
use crate::Timestamp;

/// All requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Every request, in the order in which they were first asked.
    pub requests: Vec<Standing>,
    /// Answers by signal to requests that have not been asked, the newest 100. They are judged when
    /// these are asked.
    pub early: Vec<Entry>,
}

/// How one request stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its id within the run.
    pub request: String,
    /// What it is about.
    pub subject: String,
    /// Who asks, if that was said.
    pub requester: Option<String>,
    /// Who may act by name, those included whom somebody handed over to; see also `roles`.
    pub approvers: Vec<String>,
    /// Who may act by role. Without names and roles, anyone may.
    pub roles: Vec<String>,
    /// What can be decided.
    pub choices: Vec<String>,
    /// Whether it is over, and how.
    pub status: Status,
    /// What holds, once it is over: the decision, or the fallback.
    pub decision: Option<String>,
    /// Why it was withdrawn, if it was and that was said.
    pub reason: Option<String>,
    /// When it was last asked.
    pub asked_at: Timestamp,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// When it ends at the latest, while it is open.
    pub deadline: Option<Timestamp>,
    /// The timer of the deadline, by which clients and operators move it.
    pub timer: Option<TimerId>,
    /// Everything that was said to it and reached the run, in order.
    pub entries: Vec<Entry>,
}

/// Whether a request is over, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits.
    Open,
    /// Enough people have decided.
    Decided,
    /// The deadline came first.
    TimedOut,
    /// It was withdrawn.
    Withdrawn,
}

/// One answer, and what was made of it. What the update's validator refused is not here: its sender
/// knows, and it is no part of history; see [`Request::record_refusals`](super::Request::record_refusals).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it reached the run, by the run's time.
    pub at: Timestamp,
    /// How it came.
    pub way: Way,
    /// What was said.
    pub answer: Answer,
    /// What was made of it.
    pub judgement: Judgement,
}

/// How an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By the update.
    Update,
    /// By the signal.
    Signal,
    /// From code of the workflow.
    Code,
}

/// What was made of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It was taken.
    Taken(Receipt),
    /// It was not.
    Refused(Refusal),
    /// It repeats an earlier one.
    Repeated,
    /// The request has not been asked yet.
    Early,
}
