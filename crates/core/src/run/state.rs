//! What the engine knows of one run. Everything but [`Volatile`] follows from the log alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{buffer, keys::Keys, volatile::Volatile};
use crate::{
    digest::Digest,
    effect::{Effect, RunOutcome},
    event::{
        ActivitySpec, Blocked, Body, ChildSpec, CompletedUpdate, Mover, Outcome, Parent,
        RunReference, RunSpec, TaskFailureCause, TimerSpec, UpdateRequest, WaitSpec,
    },
    failure::Failure,
    ids::{
        ActivityId, BuildId, EventNumber, ExecutionId, Key, RunId, SessionId, TimerId, UpdateId,
        WaitId, WorkflowKey,
    },
    payload::Payloads,
    time::Timestamp,
};

/// One execution of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The run.
    pub id: RunId,
    /// Its workflow.
    pub workflow: WorkflowKey,
    /// Counts the runs of the workflow id.
    pub ordinal: u64,
    /// What it runs; memo and search attributes as code last set them.
    pub spec: RunSpec,
    /// Idempotency key of the start.
    pub key: Option<Key>,
    /// First run of the chain.
    pub first_run: RunId,
    /// The run whose random seed code sees.
    pub original_run: RunId,
    /// Which attempt of the chain's retry policy.
    pub attempt: u32,
    /// The parent, if the run is a child.
    pub parent: Option<Parent>,
    /// The topmost ancestor.
    pub root: Option<RunReference>,
    /// The last result of the chain, for cron.
    pub last_result: Option<Payloads>,
    /// When it started.
    pub started_at: Timestamp,
    /// When the chain's time is up.
    pub expires_at: Option<Timestamp>,
    /// When the first task is scheduled, until it is.
    pub first_task_at: Option<Timestamp>,
    /// When the first task was to be scheduled: the run's own time begins here.
    pub begins_at: Timestamp,
    /// Open, or how it closed.
    pub status: Status,
    /// What came of it, once it is closed; nothing if it went on as a new run.
    pub outcome: Option<RunOutcome>,
    /// Number of the last event.
    pub last_event: EventNumber,
    /// Time of the last event.
    pub last_time: Timestamp,
    /// Number of the last log row.
    pub log_rows: u64,
    /// The log row that last changed something that is waited for.
    pub waits_row: u64,
    /// Bytes of all events.
    pub history_bytes: u64,
    /// How long the history was when the run began: what the run before left to it is in there.
    pub beginning: Extent,
    /// Nothing new is scheduled or dispatched.
    pub paused: bool,
    /// Somebody asked the run to cancel itself.
    pub cancel_requested: bool,
    /// Code wanted to close but had not seen all inputs; it must get the chance to.
    pub close_refused: bool,
    /// The workflow task.
    pub task: Task,
    /// There are events that no scheduled task will show to code.
    pub unseen: bool,
    /// Number of the last TaskCompleted; zero before the first.
    pub completed: EventNumber,
    /// Inputs that wait for the started task to close, in order.
    #[serde(with = "buffer::stored")]
    pub buffer: Vec<Body>,
    /// Open timers.
    pub timers: BTreeMap<TimerId, Timer>,
    /// Timers that fired, until a completed task has seen it: its code may still move them.
    pub fired: Vec<FiredTimer>,
    /// Open condition waits.
    pub waits: BTreeMap<WaitId, Wait>,
    /// Pending activities, by the event that scheduled them. Boxed, because a map makes room for many
    /// values at once and most runs have few.
    pub activities: BTreeMap<EventNumber, Box<Activity>>,
    /// The same by their ids.
    pub activity_ids: BTreeMap<ActivityId, EventNumber>,
    /// Pending children, by the event that asked for them.
    pub children: BTreeMap<EventNumber, Child>,
    /// The effects of external signals and cancels without a result, by the event that asked for them.
    pub externals: BTreeMap<EventNumber, u64>,
    /// Updates that have an event.
    pub updates: BTreeMap<UpdateId, Update>,
    /// Updates that earlier runs of the chain completed.
    pub carried_updates: Vec<CompletedUpdate>,
    /// Keys of signals, oldest first.
    pub signal_keys: Keys,
    /// Keys of outside reschedules.
    pub reschedule_keys: Keys,
    /// Keys of cancel requests.
    pub cancel_keys: Keys,
    /// Keys of pauses.
    pub pause_keys: Keys,
    /// Keys of the ends of pauses.
    pub unpause_keys: Keys,
    /// Key of the termination.
    pub terminate_key: Option<Key>,
    /// Effects on other workflows without an answer.
    pub outbox: BTreeMap<u64, Effect>,
    /// How many effects there were.
    pub effects: u64,
    /// What does not survive a crash.
    #[serde(skip)]
    pub volatile: Volatile,
}

/// How long a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Number of its last event.
    pub events: EventNumber,
    /// Bytes of all events.
    pub bytes: u64,
}

/// Open, or how a run closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It may still change.
    Open,
    /// It ended.
    Closed {
        /// How.
        how: Close,
        /// When.
        at: Timestamp,
        /// The run that follows it.
        next_run: Option<RunId>,
    },
}

/// How a run closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Close {
    /// With a result.
    Completed,
    /// With a failure.
    Failed,
    /// Its time was up.
    TimedOut,
    /// It cancelled itself.
    Cancelled,
    /// From outside.
    Terminated,
    /// A new run goes on.
    ContinuedAsNew,
}

/// The workflow task, as far as it is durable. A started one is [`super::Turn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Task {
    /// There is none.
    Idle,
    /// Its TaskScheduled is in history.
    Scheduled {
        /// The number of that event.
        number: EventNumber,
    },
    /// It failed; its next TaskScheduled is written when the retry completes.
    Retry(Box<Retry>),
}

/// A workflow task that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Number of the next attempt.
    pub attempt: u32,
    /// When the last attempt failed.
    pub failed_at: Timestamp,
    /// What went wrong.
    pub cause: TaskFailureCause,
    /// Details.
    pub failure: Failure,
    /// How code and history differ, if they do.
    pub blocked: Option<Blocked>,
    /// Code that was tried at this length of history and does not fit.
    pub tried: BTreeSet<BuildId>,
    /// It is not tried again before this.
    pub not_before: Option<Timestamp>,
}

/// An open timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// The event that started it.
    pub started: EventNumber,
    /// When that was.
    pub since: Timestamp,
    /// As code asked for it; its `fire_at` is the present one.
    pub spec: TimerSpec,
    /// How often it was moved from outside.
    pub moves: u32,
    /// Who moved it last.
    pub moved_by: Option<Box<Mover>>,
    /// The condition wait whose deadline it is.
    pub wait: Option<WaitId>,
    /// A move from outside waits in the buffer.
    pub moved_to: Option<Timestamp>,
    /// Its firing waits in the buffer.
    pub firing: bool,
}

impl Timer {
    /// When it is due, with what waits in the buffer.
    pub fn due(&self) -> Timestamp {
        self.moved_to.unwrap_or(self.spec.fire_at)
    }
}

/// A timer that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FiredTimer {
    /// The event of its firing.
    pub number: EventNumber,
    /// The timer as it was.
    pub timer: Timer,
}

/// An open condition wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The event that opened it.
    pub opened: EventNumber,
    /// When that was.
    pub since: Timestamp,
    /// As code asked for it.
    pub spec: WaitSpec,
    /// The deadline that came; code will say what follows from it.
    pub passed: Option<Timestamp>,
}

/// A pending activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// As code asked for it.
    pub spec: ActivitySpec,
    /// Identifies it over all attempts.
    pub execution: ExecutionId,
    /// When it was scheduled first.
    pub scheduled_at: Timestamp,
    /// Which attempt of the policy runs or comes next, from 1.
    pub attempt: u32,
    /// How often a worker got it.
    pub starts: u32,
    /// How often it was lost with its worker in a row.
    pub losses: u32,
    /// Where it stands.
    pub phase: Phase,
    /// Why the last attempt failed.
    pub last_failure: Option<Failure>,
    /// Details of the last heartbeat that was written.
    pub heartbeat: Option<Payloads>,
    /// When the running attempt last wrote a heartbeat.
    pub heartbeat_at: Option<Timestamp>,
    /// Code asked for it to be cancelled.
    pub cancel_requested: bool,
    /// Its close waits in the buffer.
    pub closing: bool,
}

/// Where an activity stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// It waits for a worker.
    Ready {
        /// Since when.
        since: Timestamp,
    },
    /// A worker has it.
    Started {
        /// Since when.
        at: Timestamp,
        /// Whose session holds the attempt.
        session: SessionId,
        /// The worker.
        identity: String,
        /// The worker has left the attempt to somebody else, so it is not lost with the worker.
        detached: bool,
    },
    /// It waits for its next attempt.
    Backoff {
        /// Until when.
        until: Timestamp,
    },
}

/// A pending child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// As code asked for it.
    pub child: ChildSpec,
    /// Its run.
    pub run: RunId,
    /// The effect that starts it.
    pub effect: u64,
    /// It is known to run, or that news waits in the buffer.
    pub started: bool,
    /// Its close waits in the buffer.
    pub closing: bool,
}

/// An update that has an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Update {
    /// Carried over from another run.
    Admitted(UpdateRequest),
    /// Code accepted it.
    Accepted {
        /// The event of that.
        number: EventNumber,
        /// What was asked for.
        asked: Digest,
    },
    /// It has its outcome.
    Completed {
        /// What came of it.
        outcome: Outcome,
        /// What was asked for.
        asked: Digest,
    },
    /// Carried over from another run, and rejected by the code of this one.
    Rejected {
        /// Why.
        failure: Failure,
        /// What was asked for.
        asked: Digest,
    },
}

impl Update {
    /// Nothing more will come of it.
    pub const fn over(&self) -> bool {
        match self {
            Self::Admitted(_) | Self::Accepted { .. } => false,
            Self::Completed { .. } | Self::Rejected { .. } => true,
        }
    }

    /// What was asked for.
    pub fn asked(&self) -> Digest {
        match self {
            Self::Admitted(request) => request.digest(),
            Self::Accepted { asked, .. }
            | Self::Completed { asked, .. }
            | Self::Rejected { asked, .. } => *asked,
        }
    }
}

impl Run {
    /// The run may still change.
    pub fn open(&self) -> bool {
        self.status == Status::Open
    }

    /// How many updates wait for an outcome.
    pub fn pending_updates(&self) -> usize {
        let with_event = self.updates.values().filter(|update| !update.over()).count();
        with_event + self.volatile.admitted.len()
    }

    /// When the run's time is up.
    pub fn deadline(&self) -> Option<Timestamp> {
        let run = self.spec.run_timeout.map(|timeout| self.begins_at.saturating_add(timeout));
        [run, self.expires_at].into_iter().flatten().min().filter(|due| !due.never())
    }

    /// A reference that other runs can keep.
    pub fn reference(&self) -> RunReference {
        RunReference { workflow: self.workflow.clone(), run: self.id }
    }
}
