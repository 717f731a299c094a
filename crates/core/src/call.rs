//! What clients, operators and workers ask of an engine, and what they are told. The same words are
//! spoken inside one process and, translated, over the network.

mod error;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;

pub use self::error::CallError;
pub use crate::attempt::ActivityToken;
use crate::{
    attempt::{AttemptName, AttemptReport},
    command::Command,
    effect::RunOutcome,
    event::{
        Blocked, Flag, ReusePolicy, RunPaused, RunSpec, RunUnpaused, SignalReceived,
        TaskFailureCause, UpdateRequest,
    },
    failure::Failure,
    ids::{
        BuildId, EventNumber, Key, NamespaceId, RunId, SessionId, StartId, UpdateId, WorkflowKey,
    },
    payload::{Extension, Payloads},
    run::{ActivityGiven, Close, Description, GivenTask, Movable, Resolution, ShownWait, Stage},
    time::Timestamp,
};

/// Names a request within its shard; the answer carries it.
pub type Ticket = u64;

/// Which run of a workflow is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTarget {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// This run; none means the current one.
    pub run: Option<RunId>,
}

/// A request of a client, an operator or a worker.
#[derive(Clone, Debug)]
pub enum Call {
    /// Start a run, perhaps with a first signal or update.
    Start(Box<StartCall>),
    /// Send a signal.
    Signal(RunTarget, SignalReceived, Extension),
    /// Ask a run to cancel itself.
    RequestCancel {
        /// Which run.
        target: RunTarget,
        /// Why.
        reason: String,
        /// Who asks.
        identity: String,
        /// Idempotency key.
        key: Option<Key>,
    },
    /// End a run.
    Terminate {
        /// Which run.
        target: RunTarget,
        /// Why.
        reason: String,
        /// Who does it.
        identity: String,
        /// Data for the record.
        details: Payloads,
        /// Idempotency key.
        key: Option<Key>,
    },
    /// Pause a run.
    Pause(RunTarget, RunPaused),
    /// End a pause.
    Unpause(RunTarget, RunUnpaused),
    /// Ask for an update, and wait until it is at least so far.
    Update {
        /// Which run.
        target: RunTarget,
        /// The update.
        update: UpdateId,
        /// What is asked for.
        request: UpdateRequest,
        /// How far to wait.
        until: UpdateWait,
        /// Wait also while the run's code does not fit its history, until that is repaired.
        wait_while_blocked: bool,
    },
    /// Look an update up by its id, without asking for it, and wait until it is at least so far.
    AwaitUpdate {
        /// Which run.
        target: RunTarget,
        /// The update.
        update: UpdateId,
        /// How far to wait.
        until: UpdateWait,
        /// Wait also while the run's code does not fit its history, until that is repaired.
        wait_while_blocked: bool,
    },
    /// Ask for a query.
    Query {
        /// Which run.
        target: RunTarget,
        /// What is asked.
        query: Query,
    },
    /// Move a timer, or the end of a wait.
    RescheduleTimer {
        /// Which run.
        target: RunTarget,
        /// What is moved.
        what: Movable,
        /// The new due time.
        fire_at: Timestamp,
        /// Who does it.
        identity: String,
        /// Idempotency key.
        key: Option<Key>,
    },
    /// Try again whatever is stuck and ensure every row. It needs no key: doing it twice is doing it
    /// once.
    Repair {
        /// Which run.
        target: RunTarget,
        /// Who does it.
        identity: String,
    },
    /// Show a run.
    Describe(RunTarget),
    /// Wait until a run is closed.
    AwaitClose(RunTarget),
    /// Wait until a run has an event after this one, or is closed.
    AwaitEvents(RunTarget, EventNumber),
    /// What a run waits for, once that changed after this row of its log, or the run is closed.
    AwaitWaits(RunTarget, u64),
    /// A worker's answer to a workflow task.
    CompleteTask(TaskToken, Box<TaskCompletion>),
    /// A worker could not run a workflow task.
    FailTask {
        /// The task.
        token: TaskToken,
        /// What went wrong.
        cause: TaskFailureCause,
        /// Details.
        failure: Failure,
        /// How code and history differ, if they do.
        blocked: Option<Blocked>,
    },
    /// A worker's answer to a query task.
    AnswerQuery(QueryToken, Result<Payloads, Failure>),
    /// A worker's answer to an activity task.
    ResolveActivity(ActivityToken, Resolution),
    /// A worker's sign of life.
    Heartbeat(ActivityToken, Payloads),
    /// A worker leaves its attempt to somebody else, who will report.
    DetachAttempt(ActivityToken),
    /// Somebody who is no worker speaks for an attempt.
    ReportAttempt(AttemptName, AttemptReport),
    /// A worker that came back still holds this attempt.
    PresentAttempt(ActivityToken, SessionId),
}

impl Call {
    /// The workflow that the call is about, and the run if it names one.
    pub fn place(&self) -> (&WorkflowKey, Option<RunId>) {
        match self {
            Self::Start(start) => (&start.workflow, None),
            Self::Signal(target, ..)
            | Self::RequestCancel { target, .. }
            | Self::Terminate { target, .. }
            | Self::Pause(target, _)
            | Self::Unpause(target, _)
            | Self::Update { target, .. }
            | Self::AwaitUpdate { target, .. }
            | Self::Query { target, .. }
            | Self::RescheduleTimer { target, .. }
            | Self::Repair { target, .. }
            | Self::Describe(target)
            | Self::AwaitClose(target)
            | Self::AwaitEvents(target, _)
            | Self::AwaitWaits(target, _) => (&target.workflow, target.run),
            Self::CompleteTask(token, _) | Self::FailTask { token, .. } => {
                (&token.workflow, Some(token.run))
            }
            Self::ResolveActivity(token, _)
            | Self::Heartbeat(token, _)
            | Self::DetachAttempt(token)
            | Self::PresentAttempt(token, _) => (&token.workflow, Some(token.run)),
            Self::AnswerQuery(token, _) => (&token.workflow, Some(token.run)),
            Self::ReportAttempt(name, _) => name.place(),
        }
    }

    /// The call changes nothing, so it may be made any number of times.
    pub const fn reads_only(&self) -> bool {
        matches!(
            self,
            Self::Describe(_)
                | Self::AwaitClose(_)
                | Self::AwaitEvents(..)
                | Self::AwaitWaits(..)
                | Self::AwaitUpdate { .. }
                | Self::Query { .. }
        )
    }
}

/// The start of a run. It names no run: the engine draws the id, and the key tells a repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct StartCall {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// What it runs.
    pub spec: RunSpec,
    /// Who asks.
    pub identity: String,
    /// Idempotency key.
    pub key: Option<Key>,
    /// What if a run is open.
    pub conflict: ConflictPolicy,
    /// What if a run is closed.
    pub reuse: ReusePolicy,
    /// When its code begins.
    pub begin: Begin,
    /// A signal for the run, whether it is started or was open.
    pub signal: Option<SignalReceived>,
    /// An update for the run, whether it is started or was open.
    pub update: Option<Box<StartUpdate>>,
}

impl StartCall {
    /// Gives a signal without a key of its own that of the start, so that a repeat is known by it.
    pub fn key_signal(&mut self) {
        if let Some(signal) = self.signal.as_mut().filter(|signal| signal.key.is_none()) {
            signal.key.clone_from(&self.key);
        }
    }
}

/// An update that is asked for together with a start.
#[derive(Clone, Debug, PartialEq)]
pub struct StartUpdate {
    /// The update.
    pub update: UpdateId,
    /// What is asked for.
    pub request: UpdateRequest,
    /// How far to wait.
    pub until: UpdateWait,
    /// Wait also while the run's code does not fit its history, until that is repaired.
    pub wait_while_blocked: bool,
}

/// When the code of a new run begins, by the engine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// As soon as a worker takes it.
    #[default]
    AtOnce,
    /// So much later.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

impl Begin {
    /// When the first task of a run that is started now is scheduled, if not at once.
    pub fn first_task_at(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::AtOnce => None,
            Self::After(delay) => Some(now.saturating_add(delay)),
            Self::At(time) => Some(time),
        }
    }
}

/// What a start does if a run of the workflow is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// It is refused.
    #[default]
    Reject,
    /// The open run is used.
    UseExisting,
    /// The open run is terminated, in the same batch.
    TerminateExisting,
}

/// How far to wait for an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdateWait {
    /// Not at all: where it stands now.
    Admitted,
    /// Until code accepted or rejected it.
    Accepted,
    /// Until it has its outcome.
    Completed,
}

/// A question to the workflow's code.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The handler's name.
    pub name: String,
    /// Arguments.
    pub input: Payloads,
}

/// A worker's answer to a workflow task.
#[derive(Clone, Debug, Default)]
pub struct TaskCompletion {
    /// What code asks for, in order.
    pub commands: Vec<Command>,
    /// Which replay rules code follows from here on.
    pub flags: BTreeSet<Flag>,
    /// What a foreign SDK keeps about its task.
    pub sdk_metadata: Extension,
    /// Another task should follow at once.
    pub force_next: bool,
    /// How many activities of the task's own queue the worker takes at once.
    pub eager_activities: usize,
}

/// Names a started workflow task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskToken {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
    /// The start.
    pub start: StartId,
}

/// Names a query task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueryToken {
    /// The workflow.
    pub workflow: WorkflowKey,
    /// The run.
    pub run: RunId,
    /// The caller's ticket.
    pub ticket: Ticket,
    /// How often the query was handed out.
    pub attempt: u32,
}

/// What a caller is told.
#[derive(Clone, Debug)]
pub enum CallReply {
    /// A run was started, or one that exists is used.
    Started {
        /// The run.
        run: RunId,
        /// It was started by this call or a repeat of it.
        started: bool,
    },
    /// A run was started, or one that exists is used, and the update that came with the start is so far.
    StartedWithUpdate {
        /// The run.
        run: RunId,
        /// It was started by this call or a repeat of it.
        started: bool,
        /// The answer to the update, as if it had been asked for alone. The run is there in any case.
        update: Box<Result<CallReply, CallError>>,
    },
    /// It is done.
    Done {
        /// To which run.
        run: RunId,
        /// It was done before.
        repeat: bool,
    },
    /// The update is so far.
    Update {
        /// In which run.
        run: RunId,
        /// How far.
        stage: Stage,
    },
    /// Code rejected the update.
    UpdateRejected(Failure),
    /// The query's answer.
    Query(Result<Payloads, Failure>),
    /// The run as it is.
    Description(Box<Description>),
    /// The run is closed.
    Closed {
        /// The run.
        run: RunId,
        /// How it closed.
        how: Close,
        /// With what; none if another run goes on.
        outcome: Option<RunOutcome>,
        /// The run that follows it.
        next_run: Option<RunId>,
    },
    /// So far the run's history goes.
    History {
        /// The run.
        run: RunId,
        /// Number of its last event.
        last_event: EventNumber,
        /// Nothing can follow.
        closed: bool,
    },
    /// What the run waits for.
    Waits(RunWaits),
    /// The task was taken; the worker may keep the run up to this TaskCompleted.
    TaskTaken {
        /// Number of the task's TaskCompleted.
        completed: EventNumber,
    },
    /// The task left nothing; the worker goes back to the last completed one.
    TaskDiscarded,
    /// The task's commands were refused; it will be given again.
    TaskRefused {
        /// Why.
        cause: TaskFailureCause,
        /// Details.
        message: String,
    },
    /// The attempt goes on.
    Alive {
        /// Code asked for the activity to be cancelled.
        cancel_requested: bool,
    },
}

/// What a run waits for at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct RunWaits {
    /// The run.
    pub run: RunId,
    /// The row of its log up to which this holds.
    pub log_row: u64,
    /// What it waits for; shared by all who follow it.
    pub waits: Arc<Vec<ShownWait>>,
    /// It is closed: nothing can follow.
    pub closed: bool,
}

/// Asks for a page of a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRequest {
    /// Which run.
    pub target: RunTarget,
    /// Where the page begins: zero, or the `next` of the page before.
    pub from: u64,
    /// Wait until the run has an event after this one, or is closed.
    pub follow: Option<EventNumber>,
}

/// A page of a run's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The run.
    pub run: RunId,
    /// Log rows as they are stored: pieces of a `History` message.
    pub rows: Vec<Bytes>,
    /// Where the next page begins.
    pub next: u64,
    /// There is more already.
    pub more: bool,
    /// The run is closed: nothing will follow the last page.
    pub closed: bool,
}

/// A queue of one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueueKey {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The queue's name.
    pub queue: String,
    /// What kind of work. Queries are workflow work.
    pub kind: WorkKind,
}

/// What kind of work a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Workflow and query tasks.
    Workflow,
    /// Activity tasks.
    Activity,
}

impl WorkKind {
    /// The number that stands in a column. Never reused.
    pub const fn number(self) -> u8 {
        match self {
            Self::Workflow => 1,
            Self::Activity => 2,
        }
    }

    /// The kind of a number, if it is known.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Workflow),
            2 => Some(Self::Activity),
            _ => None,
        }
    }
}

/// A worker that takes work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    /// Its session.
    pub session: SessionId,
    /// Who it is.
    pub identity: String,
    /// Its code.
    pub build: Option<BuildId>,
}

/// Work on its way to a worker.
#[derive(Clone, Debug)]
pub enum Dispatch {
    /// A workflow task.
    Workflow {
        /// Names it.
        token: TaskToken,
        /// What is not in the log.
        given: GivenTask,
        /// The last event in the log that the worker must have.
        last_event: EventNumber,
        /// The log rows since the completed task on which this one builds: all that is needed by a
        /// worker that has the run in memory so far, and by any worker if no task was completed yet.
        /// None if they are not at hand; then the worker asks for the history.
        recent: Option<Vec<Bytes>>,
    },
    /// An activity task.
    Activity {
        /// Names it.
        token: ActivityToken,
        /// What to run.
        given: Box<ActivityGiven>,
        /// It was taken with the completion that scheduled it, and costs no credit of the queue.
        eager: bool,
    },
    /// A query task, on the state after the last completed task.
    Query {
        /// Names it.
        token: QueryToken,
        /// The last event that the worker must have.
        last_event: EventNumber,
        /// What is asked.
        query: Query,
    },
}
