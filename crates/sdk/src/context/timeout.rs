//! A wait or a shielded future with a deadline.

use std::fmt;

use super::terms::Limit;

/// A wait or a shielded future with a deadline, made by its methods `timeout` and `until`. Its output
/// is an [`Outcome`](super::Outcome).
#[must_use = "nothing happens until it is awaited"]
pub struct Timeout<T> {
    pub(super) wait: T,
    pub(super) limit: Limit,
}

impl<T: fmt::Debug> fmt::Debug for Timeout<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.wait, self.limit)
    }
}
