//! The result of a wait with a deadline.

/// The result of a wait with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it may have timed out"]
pub enum Outcome<T> {
    /// The wait ended with this value before the deadline.
    InTime(T),
    /// The deadline came first.
    TimedOut,
}

impl<T> Outcome<T> {
    /// Whether the deadline came first.
    pub const fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    /// The value, if the wait ended before the deadline.
    pub fn ok(self) -> Option<T> {
        match self {
            Self::InTime(value) => Some(value),
            Self::TimedOut => None,
        }
    }
}
