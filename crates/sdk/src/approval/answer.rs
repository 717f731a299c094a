//! What an approver sends, and what he is told.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::choice::{self, Choice, Decision};
use crate::{Timestamp, error::Error};

/// What somebody says to a request: a decision, a handover to somebody else, or its withdrawal.
///
/// As JSON: `{"request": "expense", "decision": "approve", "approver": "ada", "comment": "fine"}`. Name
/// and roles are what the sender says they are; who lets people in must check them.
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

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Decision(Value),
    DelegateTo(String),
    Withdraw,
}

impl Answer {
    /// The approver makes this choice. Fails only for a type that has no form as JSON.
    pub fn choose<C: Choice>(
        request: impl Into<String>,
        approver: impl Into<String>,
        choice: &C,
    ) -> Result<Self, Error> {
        let value = choice::written(choice).map_err(Error::fail)?;
        Ok(Self::new(request.into(), approver.into(), Step::Decision(value)))
    }

    /// The approver makes one of the usual decisions.
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

    /// The approver says yes.
    pub fn approve(request: impl Into<String>, approver: impl Into<String>) -> Self {
        Self::decide(request, approver, Decision::Approve)
    }

    /// The approver says no.
    pub fn reject(request: impl Into<String>, approver: impl Into<String>) -> Self {
        Self::decide(request, approver, Decision::Reject)
    }

    /// The approver hands over to somebody else, who decides in his place.
    pub fn delegate(
        request: impl Into<String>,
        approver: impl Into<String>,
        to: impl Into<String>,
    ) -> Self {
        Self::new(request.into(), approver.into(), Step::DelegateTo(to.into()))
    }

    /// Whoever asked needs no answer any more.
    pub fn withdraw(request: impl Into<String>, requester: impl Into<String>) -> Self {
        Self::new(request.into(), requester.into(), Step::Withdraw)
    }

    const fn new(request: String, approver: String, step: Step) -> Self {
        Self { request, approver, roles: Vec::new(), comment: None, key: None, step }
    }

    /// A role that the approver has.
    #[must_use]
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Why.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// Repeats of the same answer have the same key: they change nothing, and are told what the first
    /// was told.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The request that is answered.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// Who answers.
    pub fn approver(&self) -> &str {
        &self.approver
    }

    /// Why, if it was said.
    pub fn reason(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// The name of the choice, if one is made.
    pub fn decision(&self) -> Option<&str> {
        match &self.step {
            Step::Decision(value) => choice::name(value),
            Step::DelegateTo(_) | Step::Withdraw => None,
        }
    }

    /// The choice as a value, if one is made and can be read as such.
    pub fn choice<C: Choice>(&self) -> Option<C> {
        match &self.step {
            Step::Decision(value) => C::deserialize(value).ok(),
            Step::DelegateTo(_) | Step::Withdraw => None,
        }
    }

    /// Who decides instead, if the approver hands over.
    pub fn delegate_to(&self) -> Option<&str> {
        match &self.step {
            Step::DelegateTo(to) => Some(to),
            Step::Decision(_) | Step::Withdraw => None,
        }
    }

    /// What repeats of the answer have in common: the person and the key.
    pub(super) fn identity(&self) -> Option<(String, String)> {
        Some((self.approver.clone(), self.key.clone()?))
    }
}

/// What an approver is told whose answer was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The request.
    pub request: String,
    /// When the answer reached the run, by the run's time.
    pub at: Timestamp,
    /// What came of it.
    pub effect: Effect,
}

/// What came of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// It counts, and the request waits for more.
    Counted,
    /// The request is decided.
    Decided,
    /// Somebody else decides.
    Delegated,
    /// The request is withdrawn.
    Withdrawn,
    /// The deadline had passed, without a fallback. It is kept, and counts if the request is asked again.
    Late,
}
