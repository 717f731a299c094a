//! Why a run refuses a request: a text for people, and a kind for programs.

use std::fmt;

use abide_core::run::Refusal;

/// Why a run refused a request. Nothing has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct RunRefusal(Refusal);

/// What kind of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The run is closed.
    RunClosed,
    /// The run cannot take the request now, but soon can.
    Busy,
    /// A limit would be exceeded; the text names it.
    LimitExceeded,
    /// The key, or the id of the update, was already used for another request.
    KeyReused,
    /// The run waits for the time of its start, so it has no state that a query could read.
    NotBegun,
    /// The run is paused already.
    AlreadyPaused,
    /// The run is not paused.
    NotPaused,
    /// The run has no such update, or its code rejected it.
    UnknownUpdate,
    /// There is no such open timer.
    UnknownTimer,
    /// There is no such open wait.
    UnknownWait,
    /// The timer has fired.
    TimerFired,
    /// The wait has no deadline that could be moved.
    NoDeadline,
    /// The new deadline is in the past.
    PastDeadline,
    /// The new deadline is later than the code allows, or never.
    TooLate,
    /// The deadline was moved as often as the code allows.
    TooManyMoves,
    /// The activity does not exist, or has ended.
    UnknownActivity,
    /// The activity waits for a worker or for its next attempt.
    NoAttempt,
    /// The attempt has ended, or another one is current.
    StaleAttempt,
    /// The cancellation of the activity was not requested.
    CancelNotRequested,
    /// The run is open; only a closed one can be deleted.
    RunOpen,
    /// Effects of the run on other workflows are not delivered yet.
    Undelivered,
    /// There is no such workflow task to go back to; the text says which there are.
    NoSuchTask,
    /// Another run of the workflow is open.
    OtherRunOpen,
    /// A command to another workflow that the run keeps has no answer yet.
    Unanswered,
    /// The run is a schedule, which only the operations of schedules change.
    IsSchedule,
    /// The schedule was changed since it was described.
    ScheduleRevised,
    /// Another one, which no client of this version causes.
    Other,
}

impl RunRefusal {
    /// What kind of refusal it is, for programs.
    pub const fn kind(&self) -> RefusalKind {
        match self.0 {
            Refusal::RunClosed => RefusalKind::RunClosed,
            Refusal::Busy => RefusalKind::Busy,
            Refusal::Limit(_) => RefusalKind::LimitExceeded,
            Refusal::KeyReused(_) => RefusalKind::KeyReused,
            Refusal::NotBegun { .. } => RefusalKind::NotBegun,
            Refusal::Paused => RefusalKind::AlreadyPaused,
            Refusal::NotPaused => RefusalKind::NotPaused,
            Refusal::UnknownUpdate(_) => RefusalKind::UnknownUpdate,
            Refusal::UnknownTimer(_) => RefusalKind::UnknownTimer,
            Refusal::UnknownWait(_) => RefusalKind::UnknownWait,
            Refusal::TimerFired(_) => RefusalKind::TimerFired,
            Refusal::NoDeadline(_) | Refusal::EndlessWait(_) => RefusalKind::NoDeadline,
            Refusal::PastDeadline { .. } => RefusalKind::PastDeadline,
            Refusal::TooLate { .. } | Refusal::NeverDeadline(_) => RefusalKind::TooLate,
            Refusal::TooManyMoves { .. } => RefusalKind::TooManyMoves,
            Refusal::UnknownActivity(_) => RefusalKind::UnknownActivity,
            Refusal::NoAttempt(_) => RefusalKind::NoAttempt,
            Refusal::StaleAttempt => RefusalKind::StaleAttempt,
            Refusal::CancelNotRequested => RefusalKind::CancelNotRequested,
            Refusal::RunOpen => RefusalKind::RunOpen,
            Refusal::Undelivered(_) => RefusalKind::Undelivered,
            Refusal::NoSuchTask(_) => RefusalKind::NoSuchTask,
            Refusal::OtherRunOpen(_) => RefusalKind::OtherRunOpen,
            Refusal::Unanswered(_) => RefusalKind::Unanswered,
            Refusal::IsSchedule => RefusalKind::IsSchedule,
            Refusal::ScheduleRevised { .. } => RefusalKind::ScheduleRevised,
            Refusal::StaleTask | Refusal::BuildTried | Refusal::Held => RefusalKind::Other,
        }
    }
}

impl From<Refusal> for RunRefusal {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl fmt::Display for RunRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for RunRefusal {}
