//! What becomes of an activity or a child when the wait for it is cancelled.

/// What a cancelled wait does with the activity or child that it waits for.
///
/// A wait is cancelled by a cancel request of the run or of its scope, or alone, by
/// [`Pending::cancel`](super::Pending::cancel). To drop a wait, as the loss of a `select!` does, is to
/// cancel it too, only that nobody is left to see how it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnCancel {
    /// Asks it to cancel itself, and goes on at once with [`Error::Cancelled`](crate::Error::Cancelled).
    #[default]
    TryCancel,
    /// Asks it to cancel itself, and waits for how it ends: with its result if it completes all the
    /// same, else with its failure. That it was cancelled is a failure for which
    /// [`Error::is_cancelled`](crate::Error::is_cancelled) holds, and which has the details that it gave.
    WaitForCancel,
    /// Leaves it alone, and goes on at once with [`Error::Cancelled`](crate::Error::Cancelled).
    Abandon,
}
