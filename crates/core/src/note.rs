//! Unnumbered records in a run's log that workers never see: what must survive a crash but is no part
//! of the history. Within a log row, events fold before notes.

use crate::{
    event::{Blocked, Body, Event, TaskFailureCause},
    failure::Failure,
    ids::{BuildId, EventNumber, Key, SessionId, UpdateId},
    payload::Payloads,
    time::Timestamp,
};

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Part of the history.
    Event(Event),
    /// Not part of it.
    Note(Note),
}

/// An unnumbered record.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// An input came while a task was started. It is numbered when the task closes.
    InputBuffered(Body),
    /// The buffered inputs were numbered, or dropped because they no longer applied.
    BufferReleased {
        /// Names of the dropped ones, for people.
        dropped: Vec<String>,
    },
    /// A worker took an activity; durable before it is sent.
    AttemptStarted(AttemptStarted),
    /// An attempt of an activity ended and another follows.
    AttemptEnded(AttemptEnded),
    /// The delay before the next attempt is over.
    AttemptReady {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// When.
        at: Timestamp,
    },
    /// A worker left its attempt to somebody else.
    AttemptDetached {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// Names the start of the attempt.
        start: u32,
    },
    /// A running attempt reported progress.
    Heartbeat {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// Names the start of the attempt.
        start: u32,
        /// When.
        at: Timestamp,
        /// What the next attempt may go on from.
        details: Payloads,
    },
    /// A retry of a workflow task failed too.
    TaskAttemptFailed(TaskAttemptFailed),
    /// Code rejected an update that was carried over from another run.
    UpdateRejected {
        /// The update.
        update: UpdateId,
        /// Why.
        failure: Failure,
    },
    /// An effect on another workflow that has no result event is done.
    EffectSettled {
        /// Its number in the outbox.
        number: u64,
        /// Whether the target took it.
        delivered: bool,
    },
    /// An operator asked to try again whatever is stuck.
    Repaired {
        /// Who.
        identity: String,
    },
    /// A run that was asked before was asked again to cancel itself. Nothing follows from it, but a
    /// repeat of this request must not reach the runs that come after.
    CancelRepeated {
        /// Idempotency key of the request.
        key: Key,
    },
}

/// A worker took an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptStarted {
    /// The event that scheduled the activity.
    pub scheduled: EventNumber,
    /// Which attempt of the policy.
    pub attempt: u32,
    /// Counts starts, lost ones included: names this start in the worker's token.
    pub start: u32,
    /// When.
    pub at: Timestamp,
    /// The worker's session, which holds the attempt.
    pub session: SessionId,
    /// The worker.
    pub identity: String,
}

/// An attempt of an activity ended and another follows.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnded {
    /// The event that scheduled the activity.
    pub scheduled: EventNumber,
    /// Names the start of the attempt.
    pub start: u32,
    /// When it ended.
    pub at: Timestamp,
    /// Why it ended.
    pub failure: Failure,
    /// When the next attempt is due.
    pub next_at: Timestamp,
    /// The attempt counts against the policy's maximum; one lost with its worker does not.
    pub counted: bool,
    /// The last heartbeat's details, which the next attempt gets.
    pub heartbeat: Option<Payloads>,
}

/// A retry of a workflow task failed too.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAttemptFailed {
    /// Which attempt.
    pub attempt: u32,
    /// When.
    pub at: Timestamp,
    /// What went wrong.
    pub cause: TaskFailureCause,
    /// Details.
    pub failure: Failure,
    /// The worker's code, which is not tried again at this length of history if it is blocked.
    pub build: Option<BuildId>,
    /// How code and history differ, if they do.
    pub blocked: Option<Blocked>,
}
