//! What a request takes from outside at most. Names of people stand in the details of the wait, which
//! have a limit: without bounds, whoever may answer could stop the run.

/// The bytes of an approver's name, and of the name of somebody to hand over to.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// The bytes of a comment. It stays in history and in the state; longer texts belong elsewhere.
pub(super) const COMMENT_BYTES_MAX: usize = 16 << 10;

/// How often one request can be handed over.
pub(super) const HANDOVERS_MAX: usize = 100;

/// The bytes that a request shows. Half of what the engine takes, so that there is room for the names
/// of those whom it is handed over to.
pub(super) const SHOWN_BYTES_MAX: usize = 32 << 10;

/// How many answers by signal are kept for requests that have not been asked: the newest.
pub(super) const EARLY_MAX: usize = 100;
