//! Unnumbered records in a run's log that workers never see: what must survive a crash but is not
//! part of the history. Within a log row, events fold before notes.

use crate::{
    event::{Blocked, Body, Event, Parent, ResetTo, TaskFailureCause},
    failure::Failure,
    ids::{BuildId, EventNumber, Key, SessionId, UpdateId},
    payload::Payloads,
    schedule::{ScheduleChanged, ScheduleStepped, ScheduledRunEnded},
    time::Timestamp,
};

/// One entry of a run's log.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Event(Event),
    Note(Note),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// An input arrived while a task was started. It is numbered when the task closes.
    InputBuffered(Body),
    /// The buffered inputs were numbered, or dropped because they no longer applied.
    BufferReleased {
        /// Names of the dropped inputs, for people.
        dropped: Vec<String>,
    },
    /// A worker took an activity; durable before the task is sent.
    AttemptStarted(AttemptStarted),
    /// An attempt of an activity ended and another follows.
    AttemptEnded(AttemptEnded),
    /// An attempt may start from this time on: the delay before it has passed, or the activity was
    /// scheduled while the run's own clock was ahead of the true one.
    AttemptReady {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        at: Timestamp,
    },
    /// A worker left its attempt to be completed from outside.
    AttemptDetached {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        /// Number of the start that identifies the attempt.
        start: u32,
    },
    /// A running attempt reported progress.
    Heartbeat {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        /// Number of the start that identifies the attempt.
        start: u32,
        at: Timestamp,
        /// Progress from which the next attempt may resume.
        details: Payloads,
    },
    /// A retry of a workflow task failed as well.
    TaskAttemptFailed(TaskAttemptFailed),
    /// Code rejected an update that was carried over from another run.
    UpdateRejected { update: UpdateId, failure: Failure },
    /// An effect without a result event is settled.
    EffectSettled {
        /// Number in the outbox.
        number: u64,
        delivered: bool,
    },
    /// An operator asked to retry whatever is stuck.
    Repaired { identity: String },
    /// Cancellation was requested again. It has no effect, but a repeat of this request must not
    /// reach later runs of the chain.
    CancelRepeated {
        /// Idempotency key of the request.
        key: Key,
    },
    /// The shard waits for the worker of an attempt, whose session it does not know to be alive. The
    /// grace of the worker counts from here, also if the engine restarts meanwhile.
    AttemptAwaited {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        /// Number of the start that identifies the attempt.
        start: u32,
        since: Timestamp,
    },
    /// The run was closed when it was reset: another run goes on.
    ResetTo(ResetTo),
    /// The parent was reset: another run of it is the parent.
    ParentChanged { parent: Parent },
    /// The worker of an awaited attempt has presented it.
    AttemptPresented {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        /// Number of the start that identifies the attempt.
        start: u32,
    },
    /// The schedule that the run is was changed from outside.
    ScheduleChanged(Box<ScheduleChanged>),
    /// What the schedule did.
    ScheduleStepped(Box<ScheduleStepped>),
    /// A run that the schedule started has ended, or could not be started.
    ScheduledRunEnded(ScheduledRunEnded),
}

/// A worker took an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptStarted {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    /// Attempt number of the policy.
    pub attempt: u32,
    /// Number of the start, lost ones included: identifies it in the worker's token.
    pub start: u32,
    pub at: Timestamp,
    /// Session of the worker that holds the attempt.
    pub session: SessionId,
    pub identity: String,
}

/// An attempt of an activity ended and another follows.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnded {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    /// Number of the start that identifies the attempt.
    pub start: u32,
    pub at: Timestamp,
    pub failure: Failure,
    /// When the next attempt is due.
    pub next_at: Timestamp,
    /// Whether the attempt counts against the policy's maximum; one lost with its worker does not.
    pub counted: bool,
    /// Details of the last heartbeat, which the next attempt gets.
    pub heartbeat: Option<Payloads>,
}

/// A retry of a workflow task failed as well.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAttemptFailed {
    pub attempt: u32,
    pub at: Timestamp,
    pub cause: TaskFailureCause,
    pub failure: Failure,
    /// Build of the worker. A blocked build is not tried again until the history has grown.
    pub build: Option<BuildId>,
    /// Mismatch between code and history, if there is one.
    pub blocked: Option<Blocked>,
}
