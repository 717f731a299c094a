//! How runs stand, and what waits are for.

use abide_core::list;

/// How a run stands, as lists show and filter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// Open.
    Running,
    /// Open; nothing new is scheduled until it is unpaused.
    Paused,
    /// Open; its code does not fit its history.
    ReplayBlocked,
    /// Closed with a result.
    Completed,
    /// Closed with a failure.
    Failed,
    /// Closed by its run or execution timeout.
    TimedOut,
    /// Closed by its own answer to a cancel request.
    Cancelled,
    /// Closed from outside.
    Terminated,
    /// Closed; the next run of the workflow goes on.
    ContinuedAsNew,
}

impl RunStatus {
    /// Whether the run may still change.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Paused | Self::ReplayBlocked)
    }
}

impl From<list::RunStatus> for RunStatus {
    fn from(status: list::RunStatus) -> Self {
        match status {
            list::RunStatus::Running => Self::Running,
            list::RunStatus::Paused => Self::Paused,
            list::RunStatus::ReplayBlocked => Self::ReplayBlocked,
            list::RunStatus::Completed => Self::Completed,
            list::RunStatus::Failed => Self::Failed,
            list::RunStatus::TimedOut => Self::TimedOut,
            list::RunStatus::Cancelled => Self::Cancelled,
            list::RunStatus::Terminated => Self::Terminated,
            list::RunStatus::ContinuedAsNew => Self::ContinuedAsNew,
        }
    }
}

impl From<RunStatus> for list::RunStatus {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Running => Self::Running,
            RunStatus::Paused => Self::Paused,
            RunStatus::ReplayBlocked => Self::ReplayBlocked,
            RunStatus::Completed => Self::Completed,
            RunStatus::Failed => Self::Failed,
            RunStatus::TimedOut => Self::TimedOut,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Terminated => Self::Terminated,
            RunStatus::ContinuedAsNew => Self::ContinuedAsNew,
        }
    }
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitKind {
    /// Time to pass.
    Timer,
    /// A signal.
    Signal,
    /// A condition on the run's own state.
    Condition,
    /// The next attempt of an activity.
    ActivityRetry,
    /// The next attempt of a child.
    ChildRetry,
    /// A person's decision.
    Approval,
    /// The next time of a schedule.
    Schedule,
}

impl From<list::WaitKind> for WaitKind {
    fn from(kind: list::WaitKind) -> Self {
        match kind {
            list::WaitKind::Timer => Self::Timer,
            list::WaitKind::Signal => Self::Signal,
            list::WaitKind::Condition => Self::Condition,
            list::WaitKind::ActivityRetry => Self::ActivityRetry,
            list::WaitKind::ChildRetry => Self::ChildRetry,
            list::WaitKind::Approval => Self::Approval,
            list::WaitKind::Schedule => Self::Schedule,
        }
    }
}

impl From<WaitKind> for list::WaitKind {
    fn from(kind: WaitKind) -> Self {
        match kind {
            WaitKind::Timer => Self::Timer,
            WaitKind::Signal => Self::Signal,
            WaitKind::Condition => Self::Condition,
            WaitKind::ActivityRetry => Self::ActivityRetry,
            WaitKind::ChildRetry => Self::ChildRetry,
            WaitKind::Approval => Self::Approval,
            WaitKind::Schedule => Self::Schedule,
        }
    }
}

/// What can end a wait. Cancelling it always can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WaitEnd {
    /// Its time comes, which is what is waited for.
    Time,
    /// The signal arrives.
    Signal,
    /// The condition holds.
    Condition,
    /// A person decides.
    Decision,
    /// Its deadline passes.
    Deadline,
}

impl From<list::WaitEnd> for WaitEnd {
    fn from(end: list::WaitEnd) -> Self {
        match end {
            list::WaitEnd::Time => Self::Time,
            list::WaitEnd::Signal => Self::Signal,
            list::WaitEnd::Condition => Self::Condition,
            list::WaitEnd::Decision => Self::Decision,
            list::WaitEnd::Deadline => Self::Deadline,
        }
    }
}
