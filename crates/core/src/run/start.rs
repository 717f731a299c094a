//! How a run starts: by a caller, as a child, or after another run of the same workflow.

use super::{
    Context, Decision, Extent, Keys, Reply, Run, Status, Task, Touch, Volatile, draft::Draft,
};
use crate::{
    event::{Body, Event, Parent, PreviousRun, RunReference, RunSpec, RunStarted},
    ids::{Key, RunId, WorkflowKey},
    note::Record,
    schedule::{ScheduleState, cron},
    time::Timestamp,
};

#[derive(Clone, Debug, PartialEq)]
pub struct StartRun {
    pub workflow: WorkflowKey,
    pub run: RunId,
    /// Number of the run among the runs of its workflow id.
    pub ordinal: u64,
    pub spec: RunSpec,
    pub identity: String,
    /// Idempotency key of the start.
    pub key: Option<Key>,
    /// First run of the chain; `None` if it is this one.
    pub first_run: Option<RunId>,
    /// Run whose random seed code sees; `None` if it is this one.
    pub original_run: Option<RunId>,
    /// How it continues another run.
    pub previous: Option<PreviousRun>,
    /// Attempt number of the chain's retry policy.
    pub attempt: u32,
    /// When the whole chain times out, if that is already fixed.
    pub expires_at: Option<Timestamp>,
    /// When the first task is scheduled, if not immediately.
    pub first_task_at: Option<Timestamp>,
    /// The parent, if it is a child.
    pub parent: Option<Parent>,
    /// The topmost ancestor.
    pub root: Option<RunReference>,
    /// Keys of the terminations of earlier runs of the workflow id.
    pub terminate_keys: Vec<Key>,
    /// Keys of the resets of earlier runs of the workflow id.
    pub reset_keys: Vec<Key>,
    /// Initial inputs: carried over, or sent with the start.
    pub inputs: Vec<Body>,
    /// The schedule that the run is, if it is one.
    pub schedule: Option<Box<ScheduleState>>,
}

impl StartRun {
    /// A first run that starts immediately.
    pub fn new(workflow: WorkflowKey, run: RunId, spec: RunSpec) -> Self {
        Self {
            workflow,
            run,
            ordinal: 1,
            spec,
            identity: String::new(),
            key: None,
            first_run: None,
            original_run: None,
            previous: None,
            attempt: 1,
            expires_at: None,
            first_task_at: None,
            parent: None,
            root: None,
            terminate_keys: Vec::new(),
            reset_keys: Vec::new(),
            inputs: Vec::new(),
            schedule: None,
        }
    }

    /// Delays the start of the run's code until `at`, if given. A run with a cron schedule starts
    /// at the first matching time after that.
    #[must_use]
    pub fn beginning(self, at: Option<Timestamp>, now: Timestamp) -> Self {
        let after = at.unwrap_or(now).max(now);
        let first_of = |schedule: &str| cron::next_after(schedule, after);
        let first_task_at = self.spec.cron.as_deref().and_then(first_of).or(at);
        Self { first_task_at, ..self }
    }
}

/// Starts a run: RunStarted, its initial inputs, and its first task unless that is delayed.
pub fn start(context: &Context<'_>, start: StartRun) -> (Run, Decision) {
    let inputs = start.inputs.clone();
    let started = started(context, start);
    let event = Event { number: 1, time: context.now, body: Body::new(started.clone()) };
    let mut run = Run::from_started(&started, context.now);
    let mut draft = Draft::new(&mut run, context);
    for input in inputs {
        draft.body(input);
    }
    // A schedule has no code, so it has no tasks.
    if started.first_task_at.is_none() && started.schedule.is_none() {
        draft.schedule_task(1);
    }
    let mut decision = draft.finish(Reply::Done);
    decision.records.insert(0, Record::Event(event));
    run.touch_everything();
    (run, decision)
}

fn started(context: &Context<'_>, start: StartRun) -> RunStarted {
    let expires_at = start
        .expires_at
        .or_else(|| start.spec.execution_timeout.map(|limit| context.now.saturating_add(limit)));
    RunStarted {
        namespace: start.workflow.namespace,
        workflow: start.workflow.workflow,
        run: start.run,
        ordinal: start.ordinal,
        spec: start.spec,
        identity: start.identity,
        key: start.key,
        first_run: start.first_run.unwrap_or(start.run),
        original_run: start.original_run.unwrap_or(start.run),
        previous: start.previous,
        attempt: start.attempt,
        expires_at,
        first_task_at: start.first_task_at.filter(|at| *at > context.now),
        parent: start.parent,
        root: start.root,
        terminate_keys: start.terminate_keys,
        reset_keys: start.reset_keys,
        reset: None,
        schedule: start.schedule,
    }
}

impl Run {
    pub(super) fn from_started(started: &RunStarted, at: Timestamp) -> Self {
        let previous = started.previous.as_ref();
        let mut run = Self {
            id: started.run,
            workflow: WorkflowKey {
                namespace: started.namespace.clone(),
                workflow: started.workflow.clone(),
            },
            ordinal: started.ordinal,
            spec: started.spec.clone(),
            key: started.key.clone(),
            first_run: started.first_run,
            original_run: started.original_run,
            attempt: started.attempt,
            parent: started.parent.clone(),
            root: started.root.clone(),
            last_result: previous.and_then(|previous| previous.last_result.clone()),
            started_at: at,
            expires_at: started.expires_at,
            first_task_at: started.first_task_at,
            begins_at: started.first_task_at.map_or(at, |first| first.max(at)),
            status: Status::Open,
            outcome: None,
            last_event: 1,
            last_time: at,
            log_rows: 0,
            waits_row: 0,
            history_bytes: 0,
            beginning: Extent::default(),
            paused: false,
            cancel_requested: false,
            close_refused: false,
            task: Task::Idle,
            unseen: started.schedule.is_none(),
            completed: 0,
            buffer: Vec::new(),
            timers: Default::default(),
            fired: Vec::new(),
            waits: Default::default(),
            activities: Default::default(),
            activity_ids: Default::default(),
            children: Default::default(),
            externals: Default::default(),
            updates: Default::default(),
            carried_updates: previous.map(|p| p.completed_updates.clone()).unwrap_or_default(),
            signal_keys: Keys::default(),
            reschedule_keys: Keys::default(),
            cancel_keys: Keys::default(),
            pause_keys: Keys::default(),
            unpause_keys: Keys::default(),
            terminate_key: None,
            earlier_terminate_keys: started.terminate_keys.clone(),
            reset_keys: Keys::of(&started.reset_keys, &[]),
            reset_from: started.reset.as_ref().map(|reset| reset.base.run),
            copied: started.reset.as_ref().map_or(0, |reset| reset.copied),
            outbox: Default::default(),
            effects: 0,
            schedule: started.schedule.clone(),
            volatile: Volatile { touched: [Touch::Run].into(), ..Volatile::default() },
        };
        if let Some(previous) = previous {
            run.inherit_keys(previous);
        }
        if let Some(reset) = &started.reset {
            run.begin_reset(reset);
        }
        if let Some(key) = &started.key {
            run.remember_creation(key);
        }
        run
    }
}
