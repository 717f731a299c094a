//! The state of one run. Everything except [`Volatile`] follows from the log alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    buffer,
    keys::{Keys, TakenMove},
    volatile::Volatile,
};
use crate::{
    digest::Digest,
    effect::{Effect, RunOutcome},
    event::{
        ActivitySpec, Blocked, Body, ChildSpec, CompletedUpdate, Mover, Parent, RunReference,
        RunSpec, TaskFailureCause, TimerSpec, UpdateOutcome, UpdateRequest, WaitSpec,
    },
    failure::Failure,
    ids::{
        ActivityId, BuildId, EventNumber, ExecutionId, Key, RunId, SessionId, TimerId, UpdateId,
        WaitId, WorkflowKey,
    },
    payload::Payloads,
    schedule::ScheduleState,
    time::Timestamp,
};

/// One execution of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    pub workflow: WorkflowKey,
    /// Number of the run among the runs of its workflow id.
    pub ordinal: u64,
    /// What it runs; memo and search attributes as last set by code.
    pub spec: RunSpec,
    /// Idempotency key of the start.
    pub key: Option<Key>,
    /// First run of the chain.
    pub first_run: RunId,
    /// Run whose random seed code sees.
    pub original_run: RunId,
    /// Attempt number of the chain's retry policy.
    pub attempt: u32,
    /// The parent, if the run is a child.
    pub parent: Option<Parent>,
    /// The topmost ancestor.
    pub root: Option<RunReference>,
    /// The last result of the chain, for cron.
    pub last_result: Option<Payloads>,
    pub started_at: Timestamp,
    /// When the whole chain times out.
    pub expires_at: Option<Timestamp>,
    /// When the first task is scheduled; `None` once it is.
    pub first_task_at: Option<Timestamp>,
    /// When the first task was meant to be scheduled: the run timeout counts from here.
    pub begins_at: Timestamp,
    /// Open, or how it closed.
    pub status: Status,
    /// Outcome once it is closed; `None` if it continued as a new run.
    pub outcome: Option<RunOutcome>,
    /// Number of the last event.
    pub last_event: EventNumber,
    /// Time of the last event.
    pub last_time: Timestamp,
    /// Number of the last log row.
    pub log_rows: u64,
    /// Log row that last changed a wait of the run.
    pub waits_row: u64,
    /// Bytes of all events.
    pub history_bytes: u64,
    /// Length of the history when the run started, including what it took over from the previous
    /// run.
    pub beginning: Extent,
    /// Whether scheduling and dispatch are suspended.
    pub paused: bool,
    /// Whether its cancellation was requested.
    pub cancel_requested: bool,
    /// Whether code closed the run without having seen all inputs; it must get the chance to.
    pub close_refused: bool,
    pub task: Task,
    /// Whether there are events that no scheduled task will show to code.
    pub unseen: bool,
    /// Number of the last TaskCompleted; zero before the first.
    pub completed: EventNumber,
    /// Inputs that arrived while a task is started, in order.
    #[serde(with = "buffer::stored")]
    pub buffer: Vec<Body>,
    pub timers: BTreeMap<TimerId, Timer>,
    /// Timers that fired and whose firing no completed task has seen: its code may still reschedule
    /// them.
    pub fired: Vec<FiredTimer>,
    pub waits: BTreeMap<WaitId, Wait>,
    /// Pending activities, by the event that scheduled them. Boxed, because a map reserves space
    /// for many values and most runs have few.
    pub activities: BTreeMap<EventNumber, Box<Activity>>,
    /// Events of the pending activities, by id.
    pub activity_ids: BTreeMap<ActivityId, EventNumber>,
    /// Pending children, by the event that initiated them.
    pub children: BTreeMap<EventNumber, Child>,
    /// Effects of external signals and cancels without a result, by the event that initiated them.
    pub externals: BTreeMap<EventNumber, u64>,
    /// Updates that have an event.
    pub updates: BTreeMap<UpdateId, KnownUpdate>,
    /// Updates that earlier runs of the chain completed.
    pub carried_updates: Vec<CompletedUpdate>,
    /// Keys of signals, oldest first.
    pub signal_keys: Keys,
    /// Keys of outside reschedules.
    pub reschedule_keys: Keys<Option<TakenMove>>,
    /// Keys of cancel requests.
    pub cancel_keys: Keys,
    pub pause_keys: Keys,
    /// Keys of the ends of pauses.
    pub unpause_keys: Keys,
    /// Key of the termination.
    pub terminate_key: Option<Key>,
    /// Keys of the terminations of earlier runs of the workflow id, oldest first.
    pub earlier_terminate_keys: Vec<Key>,
    /// Keys of resets, of this run and of earlier ones of the workflow id, with the run that each made
    /// if that is known.
    pub reset_keys: Keys<Option<RunId>>,
    /// The run whose history a reset copied to make this one.
    pub reset_from: Option<RunId>,
    /// Number of the last copied event; zero if no reset made the run.
    pub copied: EventNumber,
    /// Effects on other workflows without an answer.
    pub outbox: BTreeMap<u64, Effect>,
    /// Number of effects so far.
    pub effects: u64,
    /// The schedule that the run is, if it is one. A schedule takes no signals: the keys of its changes are
    /// among `signal_keys`.
    pub schedule: Option<Box<ScheduleState>>,
    /// State that does not survive a crash.
    #[serde(skip)]
    pub volatile: Volatile,
}

/// Length of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    pub events: EventNumber,
    pub bytes: u64,
}

/// Open, or how a run closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    Open,
    Closed {
        how: Close,
        at: Timestamp,
        /// Run that continues it.
        next_run: Option<RunId>,
    },
}

/// How a run closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Close {
    Completed,
    Failed,
    TimedOut,
    Cancelled,
    Terminated,
    ContinuedAsNew,
}

/// Durable state of the workflow task. A started one is [`super::StartedTask`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Task {
    Idle,
    /// Its TaskScheduled event is in history.
    Scheduled {
        number: EventNumber,
    },
    /// It failed; its next TaskScheduled event is written when a retry completes.
    Retry(Box<Retry>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Number of the next attempt.
    pub attempt: u32,
    /// When the last attempt failed.
    pub failed_at: Timestamp,
    pub cause: TaskFailureCause,
    pub failure: Failure,
    /// Mismatch between code and history, if there is one.
    pub blocked: Option<Blocked>,
    /// Builds that were tried at this length of history and do not fit.
    pub tried: BTreeSet<BuildId>,
    /// When it is retried at the earliest.
    pub not_before: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// Number of the TimerStarted event.
    pub started: EventNumber,
    pub since: Timestamp,
    /// Specification from code, with the current `fire_at`.
    pub spec: TimerSpec,
    /// Number of reschedules from outside.
    pub moves: u32,
    /// Who moved it last.
    pub moved_by: Option<Box<Mover>>,
    /// The condition wait whose deadline it is.
    pub wait: Option<WaitId>,
    /// Due time of a reschedule from outside that is buffered.
    pub moved_to: Option<Timestamp>,
    /// Whether its firing is buffered.
    pub firing: bool,
}

impl Timer {
    /// Current due time, including a buffered reschedule.
    pub fn due(&self) -> Timestamp {
        self.moved_to.unwrap_or(self.spec.fire_at)
    }
}

/// A timer that fired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FiredTimer {
    /// Number of the TimerFired event.
    pub number: EventNumber,
    pub timer: Timer,
}

/// An open condition wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Number of the WaitOpened event.
    pub opened: EventNumber,
    pub since: Timestamp,
    pub spec: WaitSpec,
    /// Deadline that has passed; code decides what follows.
    pub passed: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    pub spec: ActivitySpec,
    /// Identifies it across all attempts.
    pub execution: ExecutionId,
    /// When it was first scheduled.
    pub scheduled_at: Timestamp,
    /// Number of the running or next attempt of the policy, from 1.
    pub attempt: u32,
    /// Number of starts on a worker, lost ones included.
    pub starts: u32,
    /// Number of consecutive attempts that were lost with their worker.
    pub losses: u32,
    pub phase: Phase,
    /// Why the last attempt failed.
    pub last_failure: Option<Failure>,
    /// Details of the last heartbeat that was written.
    pub heartbeat: Option<Payloads>,
    /// When the running attempt last wrote a heartbeat.
    pub heartbeat_at: Option<Timestamp>,
    /// Since when the shard waits for the worker of the running attempt, if it does.
    pub awaited_since: Option<Timestamp>,
    /// Whether code requested its cancellation.
    pub cancel_requested: bool,
    /// Whether its close is buffered.
    pub closing: bool,
}

/// State of a pending activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Waits for a worker.
    Ready { since: Timestamp },
    /// An attempt is in flight on a worker.
    Started {
        at: Timestamp,
        /// Session that holds the attempt.
        session: SessionId,
        identity: String,
        /// Whether the worker left the attempt to be completed from outside, so that it is not lost
        /// with the worker.
        detached: bool,
    },
    /// Waits for its next attempt.
    Backoff { until: Timestamp },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Child {
    pub child: ChildSpec,
    pub run: RunId,
    /// Number of the effect that starts it.
    pub effect: u64,
    /// Whether it is known to have started, or that answer is buffered.
    pub started: bool,
    /// Whether its close is buffered.
    pub closing: bool,
}

/// An update that has an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KnownUpdate {
    /// Carried over from another run.
    Admitted(UpdateRequest),
    Accepted {
        /// Number of the UpdateAccepted event.
        number: EventNumber,
        /// Digest of the request.
        asked: Digest,
    },
    Completed {
        outcome: UpdateOutcome,
        /// Digest of the request.
        asked: Digest,
    },
    /// Carried over from another run, and rejected by the code of this one.
    Rejected {
        failure: Failure,
        /// Digest of the request.
        asked: Digest,
    },
}

impl KnownUpdate {
    /// Whether it has reached a final state.
    pub const fn over(&self) -> bool {
        match self {
            Self::Admitted(_) | Self::Accepted { .. } => false,
            Self::Completed { .. } | Self::Rejected { .. } => true,
        }
    }

    /// Digest of the request.
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
    pub fn open(&self) -> bool {
        self.status == Status::Open
    }

    /// Number of updates without an outcome.
    pub fn pending_updates(&self) -> usize {
        let with_event = self.updates.values().filter(|update| !update.over()).count();
        with_event + self.volatile.admitted.len()
    }

    /// When the run times out.
    pub fn deadline(&self) -> Option<Timestamp> {
        let run = self.spec.run_timeout.map(|timeout| self.begins_at.saturating_add(timeout));
        [run, self.expires_at].into_iter().flatten().min().filter(|due| !due.is_never())
    }

    /// Reference to this run for other runs.
    pub fn reference(&self) -> RunReference {
        RunReference { workflow: self.workflow.clone(), run: self.id }
    }
}
