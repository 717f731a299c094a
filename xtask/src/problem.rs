//! A problem, its place and its fix. Every failure of a chore has all three.

use std::fmt;

/// A failure for a person to act on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// A file, `file:line`, package or command.
    pub(crate) place: String,
    /// What is wrong there.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) fix: String,
}

impl Problem {
    /// A problem from its three parts.
    pub(crate) fn new(
        place: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, fix } = self;
        write!(f, "{place}: {what}\n  fix: {fix}")
    }
}

impl From<Problem> for Vec<Problem> {
    fn from(problem: Problem) -> Self {
        vec![problem]
    }
}
