//! What an approver sends, and the receipt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{self, Choice, Decision};
use crate::{Timestamp, error::Error};

/// An answer to a request: a decision, a delegation to another person, or a withdrawal.
///
/// As JSON: `{"request": "expense", "decision": "approve", "approver": "ada", "comment": "fine"}`.
/// Name and roles are what the sender claims; the system that authenticates people must check them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub(super) request: String,
    pub(super) approver: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) roles: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(flatten)]
    pub(super) step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Decision(Value),
    DelegateTo(String),
    Withdraw,
}

impl Answer {
    /// An answer with this choice. Fails only for a type that has no JSON form.
    pub fn choose<C: Choice>(
        request: impl Into<String>,
        approver: impl Into<String>,
        choice: &C,
    ) -> Result<Self, Error> {
        let value = choice::written(choice).map_err(Error::new)?;
        Ok(Self::new(request.into(), approver.into(), Step::Decision(value)))
    }

    /// An answer with one of the usual decisions.
    pub fn decide(
        request: impl Into<String>,
        approver: impl Into<String>,
        decision: Decision,
    ) -> Self {
        let name = match decision {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
            Decision::Escalate => "escalate",
        };
        Self::new(request.into(), approver.into(), Step::Decision(name.into()))
    }

    /// An answer that approves the request.
    pub fn approve(request: impl Into<String>, approver: impl Into<String>) -> Self {
        Self::decide(request, approver, Decision::Approve)
    }

    /// An answer that rejects the request.
    pub fn reject(request: impl Into<String>, approver: impl Into<String>) -> Self {
        Self::decide(request, approver, Decision::Reject)
    }

    /// An answer that delegates the decision to another person.
    pub fn delegate(
        request: impl Into<String>,
        approver: impl Into<String>,
        to: impl Into<String>,
    ) -> Self {
        Self::new(request.into(), approver.into(), Step::DelegateTo(to.into()))
    }

    /// An answer by which the requester withdraws the request.
    pub fn withdraw(request: impl Into<String>, requester: impl Into<String>) -> Self {
        Self::new(request.into(), requester.into(), Step::Withdraw)
    }

    const fn new(request: String, approver: String, step: Step) -> Self {
        Self { request, approver, roles: Vec::new(), comment: None, key: None, step }
    }

    /// Adds a role of the approver.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Sets a comment, such as the reason. It has at most 16 KiB.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// Sets the idempotency key: a repeated answer with the same key changes nothing and gets the
    /// receipt of the first.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The id of the request that is answered.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The name of the person who answers.
    pub fn approver(&self) -> &str {
        &self.approver
    }

    /// The comment, if one was given.
    pub fn reason(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// The name of the choice, if the answer makes one.
    pub fn decision(&self) -> Option<&str> {
        match &self.step {
            Step::Decision(value) => choice::name(value),
            Step::DelegateTo(_) | Step::Withdraw => None,
        }
    }

    /// The choice as a value, if the answer makes one that can be decoded.
    pub fn choice<C: Choice>(&self) -> Option<C> {
        match &self.step {
            Step::Decision(value) => C::deserialize(value).ok(),
            Step::DelegateTo(_) | Step::Withdraw => None,
        }
    }

    /// The person who decides instead, if the answer delegates.
    pub fn delegate_to(&self) -> Option<&str> {
        match &self.step {
            Step::DelegateTo(to) => Some(to),
            Step::Decision(_) | Step::Withdraw => None,
        }
    }

    /// The approver and the key, which repeated answers share.
    pub(super) fn identity(&self) -> Option<(String, String)> {
        Some((self.approver.clone(), self.key.clone()?))
    }
}

/// The receipt of an answer that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The id of the request within the run.
    pub request: String,
    /// When the answer reached the run, by the run's time.
    pub at: Timestamp,
    /// What the answer changed.
    pub effect: Effect,
}

/// The effect of an accepted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// It counts as a vote; the request needs more votes.
    Counted,
    /// It was the last vote needed: the request is decided.
    Decided,
    /// Another person decides in the approver's place.
    Delegated,
    /// The requester has withdrawn the request.
    Withdrawn,
    /// It came after the deadline, and there is no fallback. It is kept, and counts if the request
    /// is asked again.
    Late,
}
