//! What may happen to other runs: when a start finds a run of the same id, and when a parent closes before its
//! child.

use abide_core::{event, operation};

/// What a start does if a run of the workflow is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictPolicy {
    /// It is refused.
    #[default]
    Reject,
    /// It returns the open run.
    UseExisting,
    /// It terminates the open run and starts a new one.
    TerminateExisting,
}

impl From<ConflictPolicy> for operation::ConflictPolicy {
    fn from(policy: ConflictPolicy) -> Self {
        match policy {
            ConflictPolicy::Reject => Self::Reject,
            ConflictPolicy::UseExisting => Self::UseExisting,
            ConflictPolicy::TerminateExisting => Self::TerminateExisting,
        }
    }
}

/// Whether the id of a closed workflow may be used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReusePolicy {
    /// It may.
    #[default]
    Allow,
    /// Only if the last run did not complete.
    AllowIfFailed,
    /// It may not.
    Reject,
}

impl From<ReusePolicy> for event::ReusePolicy {
    fn from(policy: ReusePolicy) -> Self {
        match policy {
            ReusePolicy::Allow => Self::Allow,
            ReusePolicy::AllowIfFailed => Self::AllowIfFailed,
            ReusePolicy::Reject => Self::Reject,
        }
    }
}

/// What happens to a child when its parent closes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParentClosePolicy {
    /// It is terminated.
    #[default]
    Terminate,
    /// It continues without its parent.
    Abandon,
    /// It is asked to cancel itself.
    RequestCancel,
}

impl From<ParentClosePolicy> for event::ParentClosePolicy {
    fn from(policy: ParentClosePolicy) -> Self {
        match policy {
            ParentClosePolicy::Terminate => Self::Terminate,
            ParentClosePolicy::Abandon => Self::Abandon,
            ParentClosePolicy::RequestCancel => Self::RequestCancel,
        }
    }
}
