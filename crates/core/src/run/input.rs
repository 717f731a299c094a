//! Everything that can happen to a run, and what the caller is told.

use std::collections::BTreeSet;

use super::{GivenTask, Stage, StartRun, WaitKey};
use crate::{
    command::Command,
    effect::{Action, Answer},
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
    time::Timestamp,
};

/// What every decision needs and no machine may fetch for itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The present.
    pub now: Timestamp,
    /// Id of the next run, should this one be followed.
    pub next_run: RunId,
    /// All bounds.
    pub limits: &'a Limits,
}

/// One thing that happens to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A worker takes the workflow task.
    StartTask(StartTask),
    /// The worker answers with commands.
    CompleteTask(Box<CompleteTask>),
    /// The worker could not run the code.
    FailTask(Box<FailTask>),
    /// The worker did not answer in time.
    TimeOutTask {
        /// Which start.
        start: StartId,
    },
    /// The worker is gone.
    LoseTask {
        /// Which start.
        start: StartId,
    },
    /// The run was read from the store.
    Recover,
    /// An operator asks to try again whatever is stuck.
    Repair {
        /// Who.
        identity: String,
    },
    /// A signal arrives.
    Signal(Box<Signal>),
    /// Somebody asks the run to cancel itself.
    RequestCancel(RunCancelRequested),
    /// Somebody ends the run.
    Terminate(RunTerminated),
    /// Somebody pauses the run.
    Pause(RunPaused),
    /// Somebody ends the pause.
    Unpause(RunUnpaused),
    /// A caller asks for an update.
    AdmitUpdate {
        /// The update.
        update: UpdateId,
        /// What is asked for.
        request: UpdateRequest,
        /// The caller waits also while the run's code does not fit its history.
        wait_while_blocked: bool,
    },
    /// A worker takes an activity.
    StartActivity(StartActivity),
    /// A worker answers for an activity.
    ResolveActivity(ResolveActivity),
    /// A worker reports progress.
    Heartbeat {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// Which start.
        start: u32,
        /// What the next attempt may go on from.
        details: Payloads,
    },
    /// A worker leaves an attempt to somebody else: it is not lost with its worker any more.
    DetachAttempt {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// Which start.
        start: u32,
    },
    /// The worker that held an attempt is gone, and its grace is over.
    LoseAttempt {
        /// The event that scheduled the activity.
        scheduled: EventNumber,
        /// Which start.
        start: u32,
    },
    /// A due time may have come. A hint: the run decides.
    Due {
        /// Whose.
        timer: TimerKey,
    },
    /// A client or operator moves a timer.
    RescheduleTimer(RescheduleTimer),
    /// Another run does something to this one.
    Deliver {
        /// The other run.
        source: RunReference,
        /// What it does.
        action: Action,
    },
    /// An effect on another workflow has its answer.
    EffectAnswered {
        /// Its number in the outbox.
        number: u64,
        /// The answer.
        answer: Answer,
    },
}

/// A worker takes the workflow task.
#[derive(Clone, Debug, PartialEq)]
pub struct StartTask {
    /// Names the start.
    pub start: StartId,
    /// The worker's session.
    pub session: SessionId,
    /// The worker.
    pub identity: String,
    /// The worker's code.
    pub build: Option<BuildId>,
}

/// The worker answers with commands.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteTask {
    /// Which start.
    pub start: StartId,
    /// What code asks for, in order.
    pub commands: Vec<Command>,
    /// Which replay rules code follows from here on.
    pub flags: BTreeSet<Flag>,
    /// What a foreign SDK keeps about its task.
    pub sdk_metadata: Extension,
    /// Another task should follow at once.
    pub force_next: bool,
    /// Bodies of the events that a ContinueAsNew carries over, read from the log by the shard.
    pub carried: Vec<Body>,
}

/// The worker could not run the code.
#[derive(Clone, Debug, PartialEq)]
pub struct FailTask {
    /// Which start.
    pub start: StartId,
    /// What went wrong.
    pub cause: TaskFailureCause,
    /// Details.
    pub failure: Failure,
    /// How code and history differ, if they do.
    pub blocked: Option<Blocked>,
}

/// A signal arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// The signal.
    pub signal: SignalReceived,
    /// What a gateway keeps with it.
    pub extension: Extension,
}

/// A worker takes an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct StartActivity {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// The worker's session.
    pub session: SessionId,
    /// The worker.
    pub identity: String,
}

/// A worker answers for an activity.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolveActivity {
    /// The event that scheduled it.
    pub scheduled: EventNumber,
    /// Which start.
    pub start: u32,
    /// The answer.
    pub resolution: Resolution,
}

/// How an attempt of an activity ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// With a result.
    Completed(Payloads),
    /// With a failure.
    Failed(Failure),
    /// By cancelling itself.
    Cancelled(Payloads),
}

/// A client or operator moves a timer.
#[derive(Clone, Debug, PartialEq)]
pub struct RescheduleTimer {
    /// The timer, or the wait that it ends.
    pub what: Movable,
    /// The new due time.
    pub fire_at: Timestamp,
    /// Who.
    pub identity: String,
    /// Idempotency key of the request.
    pub key: Option<Key>,
}

/// Names a due time that can be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movable {
    /// That of a timer.
    Timer(TimerId),
    /// The end of a wait.
    Wait(WaitKey),
}

impl<T: Into<TimerId>> From<T> for Movable {
    fn from(timer: T) -> Self {
        Self::Timer(timer.into())
    }
}

/// What a decision leads to.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What goes into the log, events before notes; one log row.
    pub records: Vec<Record>,
    /// What the caller is told once that is durable.
    pub reply: Reply,
    /// Updates that code rejected: they leave no event, so only their callers learn of it.
    pub rejected: Vec<(UpdateId, Failure)>,
    /// The next run of the chain, to be started in the same batch.
    pub successor: Option<Box<StartRun>>,
}

/// What a caller is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It is done.
    Done,
    /// It was done before.
    Repeat,
    /// The hint was wrong; nothing is due.
    NotDue,
    /// The worker has the task.
    TaskGiven(Box<GivenTask>),
    /// The task's commands were taken; history ends with this event.
    TaskTaken {
        /// Number of the task's TaskCompleted.
        completed: EventNumber,
    },
    /// The task left nothing. The worker goes back to the last completed one.
    TaskDiscarded,
    /// The task's commands were refused and the task will be given again.
    TaskRefused {
        /// Why.
        cause: TaskFailureCause,
        /// Details.
        message: String,
    },
    /// Where the update stands.
    Update(Stage),
    /// The worker has the activity, as start number `start`.
    ActivityGiven {
        /// Names the start.
        start: u32,
    },
    /// The attempt goes on; `cancel_requested` tells whether it should.
    Alive {
        /// Code asked for the activity to be cancelled.
        cancel_requested: bool,
    },
    /// The effect on this run has this answer.
    Delivered(Answer),
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run is closed.
    #[error("the run is closed")]
    RunClosed,
    /// The run cannot take the input now; it can soon.
    #[error("the run is busy: its inputs wait for a workflow task to end")]
    Busy,
    /// A bound would be passed.
    #[error("{0}")]
    Limit(Exceeded),
    /// There is no such task, or it was given to somebody else meanwhile.
    #[error("the workflow task is no longer current")]
    StaleTask,
    /// The code does not fit the history, as it was found before.
    #[error("this build was tried and does not fit the recorded history")]
    BuildTried,
    /// There is no such attempt, or another one is current.
    #[error("the activity attempt is no longer current")]
    StaleAttempt,
    /// There is no such activity, or it is over.
    #[error("there is no pending activity {0}")]
    UnknownActivity(ActivityId),
    /// The activity waits for a worker or for its next attempt.
    #[error("no attempt of activity {0} is running")]
    NoAttempt(ActivityId),
    /// The activity was not asked to cancel itself.
    #[error("the activity cannot report cancellation: nobody requested it")]
    CancelNotRequested,
    /// There is no such timer.
    #[error("there is no open timer {0}")]
    UnknownTimer(TimerId),
    /// There is no such wait.
    #[error("there is no open wait {0}")]
    UnknownWait(String),
    /// The wait has no end that could be moved.
    #[error("wait {0} has no deadline that could be moved")]
    EndlessWait(String),
    /// The timer has fired.
    #[error("timer {0} has fired")]
    TimerFired(TimerId),
    /// The wait has no deadline.
    #[error("timer {0} stands for a wait without deadline, which cannot be given one")]
    NoDeadline(TimerId),
    /// The new due time means never.
    #[error("timer {0} cannot be moved to {never}, which means never", never = Timestamp::NEVER)]
    NeverDeadline(TimerId),
    /// The new due time is in the past.
    #[error("the new due time {fire_at} is in the past: it is {now}")]
    PastDeadline {
        /// The new due time.
        fire_at: Timestamp,
        /// The present.
        now: Timestamp,
    },
    /// The new due time is later than the timer allows.
    #[error("the new due time {fire_at} is after {not_after}, the latest that the timer allows")]
    TooLate {
        /// The new due time.
        fire_at: Timestamp,
        /// The latest that the timer allows.
        not_after: Timestamp,
    },
    /// The timer was moved too often.
    #[error("the timer was moved {limit} times, as often as it allows")]
    TooManyMoves {
        /// How often it may be moved.
        limit: u32,
    },
    /// The run has no such update, or code rejected it, which leaves no trace.
    #[error("there is no update {0} in this run")]
    UnknownUpdate(UpdateId),
    /// The key, or the id of the update, was used before for something else.
    #[error("key {0:?} was used before, for a request with other content")]
    KeyReused(Key),
    /// The run is paused already.
    #[error("the run is paused already")]
    Paused,
    /// The run is not paused.
    #[error("the run is not paused")]
    NotPaused,
    /// The run is paused, so nothing is handed out.
    #[error("the run is paused: nothing is handed out until it is unpaused")]
    Held,
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}
