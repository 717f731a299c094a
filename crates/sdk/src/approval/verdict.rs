//! The result of a request.

use serde_json::Value;

use super::choice::{Choice, Decision};
use crate::{Timestamp, error::Error};

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the request may have been rejected or may have timed out"]
pub enum Verdict<C = Decision> {
    /// There are enough votes for a decision.
    Decided {
        /// The choice that won.
        choice: C,
        /// All votes, in order of arrival.
        votes: Vec<Vote<C>>,
    },
    /// The deadline came before a decision.
    TimedOut {
        /// The choice that applies then, if the request sets one.
        fallback: Option<C>,
        /// The votes so far, too few to decide.
        votes: Vec<Vote<C>>,
    },
    /// The requester or code has withdrawn the request.
    Withdrawn {
        /// The requester who withdrew it; none if the workflow's own code did.
        by: Option<String>,
        /// The comment of the withdrawal, if there is one.
        comment: Option<String>,
    },
}

/// The vote of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vote<C = Decision> {
    /// The choice that the approver made.
    pub choice: C,
    /// The name of the person who voted.
    pub approver: String,
    /// The person who delegated the vote to the approver, if any.
    pub on_behalf_of: Option<String>,
    /// The comment of the answer, if there is one.
    pub comment: Option<String>,
    /// When the vote reached the run, by the run's time.
    pub at: Timestamp,
}

impl<C> Verdict<C> {
    /// The choice that applies: the decision, or the fallback if the deadline came first.
    pub const fn choice(&self) -> Option<&C> {
        match self {
            Self::Decided { choice, .. } => Some(choice),
            Self::TimedOut { fallback, .. } => fallback.as_ref(),
            Self::Withdrawn { .. } => None,
        }
    }

    /// Whether the deadline came before a decision.
    pub const fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// All votes, in order of arrival.
    pub fn votes(&self) -> &[Vote<C>] {
        match self {
            Self::Decided { votes, .. } | Self::TimedOut { votes, .. } => votes,
            Self::Withdrawn { .. } => &[],
        }
    }
}

impl<C: PartialEq> Verdict<C> {
    /// The people who voted for the decision. Empty if people did not decide.
    pub fn decided_by(&self) -> Vec<&str> {
        match self {
            Self::Decided { choice, votes } => {
                let agree = votes.iter().filter(|vote| vote.choice == *choice);
                agree.map(|vote| vote.approver.as_str()).collect()
            }
            Self::TimedOut { .. } | Self::Withdrawn { .. } => Vec::new(),
        }
    }
}

impl Verdict {
    /// Whether the request was approved, by people or by the fallback.
    pub fn is_approved(&self) -> bool {
        self.choice() == Some(&Decision::Approve)
    }
}

impl<C: Choice> Verdict<C> {
    /// The same with choices of type `C`; answers were checked for that type on arrival.
    pub(super) fn read(verdict: Verdict<Value>) -> Result<Self, Error> {
        let choice = |value: Value| C::deserialize(value).map_err(Error::from_source);
        let vote = |Vote { choice: value, approver, on_behalf_of, comment, at }| {
            Ok(Vote { choice: choice(value)?, approver, on_behalf_of, comment, at })
        };
        let all =
            |votes: Vec<Vote<Value>>| votes.into_iter().map(vote).collect::<Result<_, Error>>();
        Ok(match verdict {
            Verdict::Decided { choice: value, votes } => {
                Self::Decided { choice: choice(value)?, votes: all(votes)? }
            }
            Verdict::TimedOut { fallback, votes } => {
                Self::TimedOut { fallback: fallback.map(choice).transpose()?, votes: all(votes)? }
            }
            Verdict::Withdrawn { by, comment } => Self::Withdrawn { by, comment },
        })
    }
}
