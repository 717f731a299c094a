//! Where a fact comes from: the one place that sorts all facts by it.

use super::{Fact, Mover};

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactSource {
    /// The life of a workflow task.
    Task,
    /// A command of code.
    Command,
    /// From outside, and code must react to it.
    Input,
    /// From outside, without a task for code to see it.
    Unshown,
}

impl Fact {
    pub(crate) const fn source(&self) -> FactSource {
        match self {
            Self::TaskScheduled(_)
            | Self::TaskStarted(_)
            | Self::TaskCompleted(_)
            | Self::TaskFailed(_)
            | Self::TaskTimedOut(_) => FactSource::Task,
            Self::TimerRescheduled(rescheduled) => match rescheduled.by {
                Mover::Code => FactSource::Command,
                Mover::Outside { .. } => FactSource::Unshown,
            },
            Self::RunCompleted(_)
            | Self::RunFailed(_)
            | Self::RunCancelled(_)
            | Self::RunContinuedAsNew(_)
            | Self::ActivityScheduled(_)
            | Self::ActivityCancelRequested(_)
            | Self::TimerStarted(_)
            | Self::TimerCancelled(_)
            | Self::WaitOpened(_)
            | Self::WaitDescribed(_)
            | Self::WaitSatisfied(_)
            | Self::WaitTimedOut(_)
            | Self::WaitCancelled(_)
            | Self::UpdateAccepted(_)
            | Self::UpdateCompleted(_)
            | Self::ChildInitiated(_)
            | Self::ExternalSignalInitiated(_)
            | Self::ExternalCancelInitiated(_)
            | Self::MarkerRecorded(_)
            | Self::SearchAttributesUpserted(_)
            | Self::MemoUpserted(_) => FactSource::Command,
            Self::RunCancelRequested(_)
            | Self::ActivityCompleted(_)
            | Self::ActivityFailed(_)
            | Self::ActivityTimedOut(_)
            | Self::ActivityCancelled(_)
            | Self::TimerFired(_)
            | Self::SignalReceived(_)
            | Self::UpdateAdmitted(_)
            | Self::ChildStarted(_)
            | Self::ChildStartFailed(_)
            | Self::ChildCompleted(_)
            | Self::ChildFailed(_)
            | Self::ChildTimedOut(_)
            | Self::ChildCancelled(_)
            | Self::ChildTerminated(_)
            | Self::ExternalSignalDelivered(_)
            | Self::ExternalSignalFailed(_)
            | Self::ExternalCancelDelivered(_)
            | Self::ExternalCancelFailed(_) => FactSource::Input,
            Self::RunStarted(_)
            | Self::RunTimedOut(_)
            | Self::RunTerminated(_)
            | Self::RunPaused(_)
            | Self::RunUnpaused(_)
            | Self::ActivityStarted(_) => FactSource::Unshown,
        }
    }
}
