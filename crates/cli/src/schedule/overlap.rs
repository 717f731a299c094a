//! What happens if a start is due while an earlier run is open, as typed on the command line.

use abide_core::schedule::Overlap;
use clap::ValueEnum;

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Policy {
    /// Leave the start out
    Skip,
    /// Let one start wait for the end of the open run
    BufferOne,
    /// Let starts wait, and follow one by one
    BufferAll,
    /// Start beside the others
    AllowAll,
    /// Ask the open runs to cancel themselves, then start
    CancelOther,
    /// Terminate the open runs, then start
    TerminateOther,
}

impl From<Policy> for Overlap {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Skip => Self::Skip,
            Policy::BufferOne => Self::BufferOne,
            Policy::BufferAll => Self::BufferAll,
            Policy::AllowAll => Self::AllowAll,
            Policy::CancelOther => Self::CancelOther,
            Policy::TerminateOther => Self::TerminateOther,
        }
    }
}

/// The word for a policy on the command line.
pub(super) fn word(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "skip",
        Overlap::BufferOne => "buffer-one",
        Overlap::BufferAll => "buffer-all",
        Overlap::AllowAll => "allow-all",
        Overlap::CancelOther => "cancel-other",
        Overlap::TerminateOther => "terminate-other",
    }
}
