//! Bounds on what a request accepts from outside. Names of people are part of the details of the
//! wait, which have a limit: without these bounds, a person who may answer could block the run.

/// The longest name of an approver or a delegate, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// The longest comment, in bytes. It stays in history and in the state; longer texts belong
/// elsewhere.
pub(super) const COMMENT_BYTES_MAX: usize = 16 << 10;

/// How often one request can be delegated.
pub(super) const HANDOVERS_MAX: usize = 100;

/// How much a request may show, in bytes: half of what the engine accepts, to leave room for the
/// names of delegates.
pub(super) const SHOWN_BYTES_MAX: usize = 32 << 10;

/// How many answers by signal are kept for requests that have not been asked: the newest ones.
pub(super) const EARLY_MAX: usize = 100;
