//! What a request comes to.

use serde_json::Value;

use super::choice::{Choice, Decision};
use crate::{Timestamp, error::Error};

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may have been rejected, or nobody may have answered"]
pub enum Verdict<C = Decision> {
    /// Enough people have decided.
    Decided {
        /// What they chose.
        choice: C,
        /// All votes, in the order in which they came.
        votes: Vec<Vote<C>>,
    },
    /// The deadline came first.
    TimedOut {
        /// What holds then, if the request says so.
        fallback: Option<C>,
        /// The votes that had come, too few to decide.
        votes: Vec<Vote<C>>,
    },
    /// No answer is needed any more.
    Withdrawn {
        /// Who said so; none if the workflow's own code did.
        by: Option<String>,
        /// Why, if it was said.
        comment: Option<String>,
    },
}

/// The vote of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote<C = Decision> {
    /// What was chosen.
    pub choice: C,
    /// By whom.
    pub approver: String,
    /// Who had handed over to the approver.
    pub on_behalf_of: Option<String>,
    /// Why, if it was said.
    pub comment: Option<String>,
    /// When it reached the run, by the run's time.
    pub at: Timestamp,
}

impl<C> Verdict<C> {
    /// What holds: the decision, or the fallback when the deadline came first.
    pub const fn choice(&self) -> Option<&C> {
        match self {
            Self::Decided { choice, .. } => Some(choice),
            Self::TimedOut { fallback, .. } => fallback.as_ref(),
            Self::Withdrawn { .. } => None,
        }
    }

    /// The deadline came first.
    pub const fn timed_out(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }

    /// All votes, in the order in which they came.
    pub fn votes(&self) -> &[Vote<C>] {
        match self {
            Self::Decided { votes, .. } | Self::TimedOut { votes, .. } => votes,
            Self::Withdrawn { .. } => &[],
        }
    }
}

impl<C: PartialEq> Verdict<C> {
    /// Those who voted for what was decided. Empty if it was not people who decided.
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
    /// It was approved, by people or by the fallback.
    pub fn approved(&self) -> bool {
        self.choice() == Some(&Decision::Approve)
    }
}

impl<C: Choice> Verdict<C> {
    /// The same with choices of type `C`, which they were checked for when they came.
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
