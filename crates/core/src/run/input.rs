//! Everything that can happen to a run, and the replies to the caller.

use std::{collections::BTreeSet, time::Duration};

use super::{GivenTask, Stage, StartRun, WaitKey};
use crate::{
    command::Command,
    effect::{Action, EffectOutcome},
    event::{
        Blocked, Body, Flag, RunCancelRequested, RunPaused, RunReference, RunTerminated,
        RunUnpaused, SignalReceived, TaskFailureCause, UpdateRequest,
    },
    failure::Failure,
    ids::{ActivityId, BuildId, EventNumber, Key, RunId, SessionId, StartId, TimerId, UpdateId},
    limits::{Exceeded, Limits},
    note::Record,
    payload::{Extension, Payloads},
    run::TimerKey,
    schedule::ScheduleChange,
    time::Timestamp,
};

/// What every decision needs and must not obtain for itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub now: Timestamp,
    /// Id for the next run, in case one follows.
    pub next_run: RunId,
    pub limits: &'a Limits,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A worker takes the workflow task.
    StartTask(StartTask),
    /// The worker replies with commands.
    CompleteTask(Box<CompleteTask>),
    /// The worker could not run the code.
    FailTask(Box<FailTask>),
    /// The worker did not reply in time.
    TimeOutTask {
        start: StartId,
    },
    /// The worker is lost.
    LoseTask {
        start: StartId,
    },
    /// The run was loaded from the store.
    Recover,
    /// An operator asks to retry whatever is stuck.
    Repair {
        identity: String,
    },
    Signal(Box<Signal>),
    /// A client requests cancellation.
    RequestCancel(RunCancelRequested),
    /// A client terminates the run.
    Terminate(RunTerminated),
    /// A client pauses the run.
    Pause(RunPaused),
    /// A client ends the pause.
    Unpause(RunUnpaused),
    /// A client requests an update.
    AdmitUpdate {
        update: UpdateId,
        request: UpdateRequest,
        /// Whether the caller keeps waiting while the run is blocked.
        wait_while_blocked: bool,
    },
    /// A worker takes an activity.
    StartActivity(StartActivity),
    /// A worker reports the result of an activity.
    ResolveActivity(ResolveActivity),
    /// A worker reports progress.
    Heartbeat(Heartbeat),
    /// A worker leaves an attempt to be completed from outside: it is no longer lost with its
    /// worker.
    DetachAttempt {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        start: u32,
    },
    /// The worker of an attempt is lost, and its grace period is over.
    LoseAttempt {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        start: u32,
    },
    /// The shard does not know whether the worker of an attempt is alive.
    AwaitAttempt {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        start: u32,
    },
    /// The worker of an attempt is alive and has it.
    PresentAttempt {
        /// Number of the ActivityScheduled event.
        scheduled: EventNumber,
        start: u32,
    },
    /// A due time may have come. A hint: the run decides.
    Due {
        timer: TimerKey,
    },
    /// A client or operator reschedules a timer.
    RescheduleTimer(RescheduleTimer),
    /// Another run has an effect on this one.
    Deliver {
        source: RunReference,
        action: Action,
    },
    /// An effect on another workflow was answered.
    EffectAnswered {
        /// Number in the outbox.
        number: u64,
        answer: EffectOutcome,
    },
    /// A client or operator changes the schedule that the run is.
    ChangeSchedule(Box<ChangeSchedule>),
}

/// A client or operator changes a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSchedule {
    pub change: ScheduleChange,
    /// Only if this is its revision.
    pub revision: Option<u64>,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

/// A worker takes the workflow task.
#[derive(Clone, Debug, PartialEq)]
pub struct StartTask {
    pub start: StartId,
    pub session: SessionId,
    pub identity: String,
    pub build: Option<BuildId>,
}

/// The worker replies with commands.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteTask {
    pub start: StartId,
    /// Commands, in order.
    pub commands: Vec<Command>,
    /// Replay rules that code follows from here on.
    pub flags: BTreeSet<Flag>,
    /// Data that another SDK stores with its task.
    pub sdk_metadata: Extension,
    /// Whether another task should follow immediately.
    pub force_next: bool,
    /// Bodies of the events that a ContinueAsNew carries over, which the shard reads from the log.
    pub carried: Vec<Body>,
}

/// The worker could not run the code.
#[derive(Clone, Debug, PartialEq)]
pub struct FailTask {
    pub start: StartId,
    pub cause: TaskFailureCause,
    pub failure: Failure,
    /// Mismatch between code and history, if there is one.
    pub blocked: Option<Blocked>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub signal: SignalReceived,
    /// Data that a gateway stores with it.
    pub extension: Extension,
}

/// A worker takes an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct StartActivity {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub session: SessionId,
    pub identity: String,
}

/// A worker reports the result of an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolveActivity {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub start: u32,
    pub resolution: Resolution,
}

/// A sign of life of an attempt, with its progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Heartbeat {
    /// Number of the ActivityScheduled event.
    pub scheduled: EventNumber,
    pub start: u32,
    /// Progress from which the next attempt may resume.
    pub details: Payloads,
    /// Whether the shard has memory for the details until they are written.
    pub room: bool,
}

/// Result of an attempt of an activity.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    Completed(Payloads),
    Failed(Failure),
    Cancelled(Payloads),
}

/// A client or operator reschedules a timer.
#[derive(Clone, Debug, PartialEq)]
pub struct RescheduleTimer {
    /// The timer, or the wait whose deadline it is.
    pub what: Movable,
    pub fire_at: Timestamp,
    /// How long that is from now, if the caller asked so.
    pub after: Option<Duration>,
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

/// Identifies a due time that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movable {
    /// Due time of a timer.
    Timer(TimerId),
    /// Deadline of a wait.
    Wait(WaitKey),
}

impl<T: Into<TimerId>> From<T> for Movable {
    fn from(timer: T) -> Self {
        Self::Timer(timer.into())
    }
}

#[derive(Clone, Debug)]
pub struct Decision {
    /// Records for the log, events before notes; one log row.
    pub records: Vec<Record>,
    /// Reply to the caller, sent once the records are durable.
    pub reply: Reply,
    /// Updates that code rejected: they leave no event, so only their callers are notified.
    pub rejected: Vec<(UpdateId, Failure)>,
    /// Next run of the chain, to be started in the same batch.
    pub successor: Option<Box<StartRun>>,
}

/// Reply to a caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    /// The same request was already carried out.
    Repeat,
    /// The hint was wrong; nothing is due.
    NotDue,
    /// The task was given to the worker.
    TaskGiven(Box<GivenTask>),
    /// The commands were accepted; history ends with this event.
    TaskTaken {
        /// Number of the TaskCompleted event.
        completed: EventNumber,
    },
    /// The task left no event. The worker goes back to the last completed one.
    TaskDiscarded,
    /// The commands were refused, and the task will be retried.
    TaskRefused {
        cause: TaskFailureCause,
        message: String,
    },
    /// State of the update.
    Update(Stage),
    /// The activity was given to the worker, as start number `start`.
    ActivityGiven {
        start: u32,
    },
    /// The attempt is still current.
    Alive {
        /// Whether code requested the cancellation of the activity.
        cancel_requested: bool,
    },
    /// Answer to the effect on this run.
    Delivered(EffectOutcome),
}

/// Why an input was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run is closed.
    #[error("the run is closed")]
    RunClosed,
    /// The run cannot take the input now, but soon can.
    #[error("the run is busy: its inputs wait for a workflow task to end")]
    Busy,
    /// A limit would be exceeded.
    #[error("{0}")]
    Limit(Exceeded),
    /// The task does not exist, or was given to another worker since.
    #[error("the workflow task is no longer current")]
    StaleTask,
    /// This build is already known not to fit the history.
    #[error("this build does not fit the recorded history, as an earlier attempt showed")]
    BuildTried,
    /// The attempt does not exist, or another one is current.
    #[error("the activity attempt is no longer current")]
    StaleAttempt,
    /// The activity does not exist, or has closed.
    #[error("there is no pending activity {0}")]
    UnknownActivity(ActivityId),
    /// The activity waits for a worker or for its next attempt.
    #[error("no attempt of activity {0} is running")]
    NoAttempt(ActivityId),
    /// The cancellation of the activity was not requested.
    #[error("the activity cannot report cancellation: none was requested")]
    CancelNotRequested,
    #[error("there is no open timer {0}")]
    UnknownTimer(TimerId),
    #[error("there is no open wait {0}")]
    UnknownWait(String),
    /// The wait has no deadline that could be changed.
    #[error("wait {0} has no deadline to reschedule")]
    EndlessWait(String),
    #[error("timer {0} has fired")]
    TimerFired(TimerId),
    #[error("timer {0} belongs to a wait without deadline, which cannot be rescheduled")]
    NoDeadline(TimerId),
    #[error("timer {0} cannot be rescheduled to {never}, which means never", never = Timestamp::NEVER)]
    NeverDeadline(TimerId),
    #[error("the new due time {fire_at} is in the past: it is {now}")]
    PastDeadline { fire_at: Timestamp, now: Timestamp },
    /// The new due time is later than the timer's guards allow.
    #[error(
        "the new due time {fire_at} is later than {not_after}, the latest that the timer allows"
    )]
    TooLate {
        fire_at: Timestamp,
        /// The latest due time that the guards allow.
        not_after: Timestamp,
    },
    /// The timer was rescheduled as many times as its guards allow.
    #[error("the timer has been rescheduled {limit} times, the maximum that it allows")]
    TooManyMoves { limit: u32 },
    /// The run has no such update, or code rejected it, which leaves no event.
    #[error("there is no update {0} in this run")]
    UnknownUpdate(UpdateId),
    /// The key, or the id of the update, was already used for another request.
    #[error("key {0:?} was already used for a request with different content")]
    KeyReused(Key),
    #[error("the run is already paused")]
    Paused,
    #[error("the run is not paused")]
    NotPaused,
    /// The run is paused, so no task is handed out.
    #[error("the run is paused: no task is handed out until it is unpaused")]
    Held,
    /// Only a closed run can be deleted.
    #[error("the run is open: terminate it before it is deleted")]
    RunOpen,
    /// The run has effects on other workflows that are not delivered yet.
    #[error("{0} effects of the run on other workflows are not delivered yet: retry in a moment")]
    Undelivered(u64),
    /// There is no workflow task to go back to.
    #[error("there is no workflow task to go back to: {0}")]
    NoSuchTask(String),
    /// Another run of the workflow is open.
    #[error("run {0} of the workflow is open: terminate it first, or reset that one")]
    OtherRunOpen(RunId),
    /// The task to go back to waits for an answer of another workflow that never came.
    #[error(
        "event {0}, which the run keeps, has no answer from the other workflow yet: retry in a moment, \
         or go back to an earlier task"
    )]
    Unanswered(EventNumber),
    /// The run waits for its time, so it has no state that a query could read.
    #[error("the run has not begun: it begins at {begins_at}, and can be queried after that")]
    NotBegun { begins_at: Timestamp },
    /// The run is a schedule, which only the operations of schedules change.
    #[error("this run is a schedule: use the operations of schedules")]
    IsSchedule,
    /// The schedule was changed since the caller looked at it.
    #[error("the schedule has revision {revision}: look at it again, and repeat the change")]
    ScheduleRevised { revision: u64 },
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}
