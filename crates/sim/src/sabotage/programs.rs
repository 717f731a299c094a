//! Bugs in how code runs. It behaves the same on every replay, so only its effects reveal them.

use super::{Bug, Saboteur};
use crate::programs::Quirk;

impl Saboteur {
    /// Deliberate bug in how all programs are run.
    pub const fn quirk(&self) -> Option<Quirk> {
        match self.bug {
            Some(Bug::CleanupCutShort) => Some(Quirk::CleanupCutShort),
            Some(Bug::CleanupTwice) => Some(Quirk::CleanupTwice),
            Some(Bug::Unshielded) => Some(Quirk::Unshielded),
            Some(Bug::StepNotUndone) => Some(Quirk::StepNotUndone),
            Some(Bug::UndoneAtOnce) => Some(Quirk::UndoneAtOnce),
            Some(Bug::BoundIgnored) => Some(Quirk::BoundIgnored),
            Some(Bug::FiringBeatsMove) => Some(Quirk::MoveIgnored),
            Some(Bug::LaterClock) => Some(Quirk::LaterClock),
            _ => None,
        }
    }
}
