//! What a wait with a deadline comes to.

/// What a wait with a deadline came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it may have timed out"]
pub enum Outcome<T> {
    /// What was waited for came before the deadline.
    InTime(T),
    /// It did not.
    TimedOut,
}

impl<T> Outcome<T> {
    /// The deadline came first.
    pub const fn timed_out(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    /// What came in time.
    pub fn in_time(self) -> Option<T> {
        match self {
            Self::InTime(value) => Some(value),
            Self::TimedOut => None,
        }
    }
}
