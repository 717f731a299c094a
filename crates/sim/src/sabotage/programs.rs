//! Bugs in how code is run: it does the same in every life, so only what it leaves behind shows them.

use super::{Bug, Saboteur};
use crate::programs::Quirk;

impl Saboteur {
    /// What is wrong with the way that all programs are run.
    pub const fn quirk(&self) -> Option<Quirk> {
        match self.bug {
            Some(Bug::CleanupCutShort) => Some(Quirk::CleanupCutShort),
            Some(Bug::CleanupTwice) => Some(Quirk::CleanupTwice),
            Some(Bug::Unshielded) => Some(Quirk::Unshielded),
            Some(Bug::StepNotUndone) => Some(Quirk::StepNotUndone),
            Some(Bug::UndoneAtOnce) => Some(Quirk::UndoneAtOnce),
            Some(Bug::BoundIgnored) => Some(Quirk::BoundIgnored),
            Some(Bug::FiringBeatsMove) => Some(Quirk::MoveIgnored),
            _ => None,
        }
    }
}
