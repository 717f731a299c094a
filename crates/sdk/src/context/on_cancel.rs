//! What happens to an activity or a child when the wait for it is cancelled.

/// What a cancelled wait does with the activity or child that it waits for.
///
/// A wait is cancelled by a cancel request to the run or to its scope, or alone, by
/// [`Pending::cancel`](super::Pending::cancel). Dropping a wait, as a losing branch of `select!`
/// does, cancels it too, but then no code sees how it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnCancel {
    /// Asks it to cancel itself, and continues at once with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    #[default]
    Cancel,
    /// Asks it to cancel itself, and waits for its end: its result if it completes all the same,
    /// else its failure. A cancellation is a failure for which
    /// [`Error::is_cancelled`](crate::Error::is_cancelled) holds, with the details that it gave.
    CancelAndWait,
    /// Leaves it running, and continues at once with [`Error::Cancelled`](crate::Error::Cancelled).
    Abandon,
}
