//! Large answers are built a few at a time. The caller of the engine says when the next one's turn is, and
//! the engine asks for it when it has all that it needs from others: a node that does not answer holds up
//! only those who ask for its runs. An answer made of several reads takes a turn for each, so that no turn is
//! long.

use futures_util::future::BoxFuture;

/// The turn of one answer. The next one's comes when this is dropped, after the answer was built.
pub type Turn = Box<dyn Send>;

/// Waits for the next turn.
pub type Turns<'a> = &'a (dyn Fn() -> BoxFuture<'a, Turn> + Send + Sync);

/// Turns for callers that build any number of answers at once.
pub(crate) fn at_once<'a>() -> BoxFuture<'a, Turn> {
    Box::pin(std::future::ready(Box::new(()) as Turn))
}
