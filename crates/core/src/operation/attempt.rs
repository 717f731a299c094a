//! Speaking for an attempt of an activity from outside.

use super::{AnyAnswer, Done, Misplaced};
use crate::attempt::{AttemptName, AttemptReport};

/// A report on an attempt by a caller that is no worker.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportAttempt {
    pub attempt: AttemptName,
    /// What is said for it.
    pub report: AttemptReport,
}

/// What comes of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The attempt ended.
    Ended(Done),
    /// The attempt goes on.
    Alive(Alive),
}

/// An attempt that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Code asked for the activity to be cancelled.
    pub cancel_requested: bool,
}

impl TryFrom<AnyAnswer> for Reported {
    type Error = Misplaced;

    #[expect(clippy::wildcard_enum_match_arm, reason = "any other answers something else")]
    fn try_from(answer: AnyAnswer) -> Result<Self, Misplaced> {
        match answer {
            AnyAnswer::Done(done) => Ok(Self::Ended(done)),
            AnyAnswer::Alive(alive) => Ok(Self::Alive(alive)),
            _ => Err(Misplaced),
        }
    }
}
