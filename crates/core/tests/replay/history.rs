//! Builds histories by hand: each method appends what the server would write. Time goes on by one
//! second with each event.

use std::{collections::BTreeSet, time::Duration};

use abide_core::{
    command::{Ask, Command, ContinueAsNew},
    event::*,
    ids::{EventNumber, RunId, WorkflowKey},
    payload::{Payload, PayloadMap},
    replay::{Completion, Error, Mismatch, Replay},
    retry::RetryState,
    time::Timestamp,
};
use abide_program::{Interpreter, Program};

/// A history under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
}

/// The time of event `number`.
pub(crate) fn at(number: EventNumber) -> Timestamp {
    Timestamp::from_unix_millis(1_800_000_000_000 + number * 1000)
}

pub(crate) fn run() -> RunId {
    RunId::from_parts(at(0), 1)
}

pub(crate) fn workflow(name: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: name.into() }
}

impl History {
    /// A run that has just begun.
    pub(crate) fn new() -> Self {
        Self::default().add(RunStarted {
            namespace: "default".into(),
            workflow: "order".into(),
            run: run(),
            ordinal: 1,
            spec: RunSpec { workflow_type: "order".into(), ..RunSpec::default() },
            identity: String::new(),
            key: None,
            first_run: run(),
            original_run: run(),
            previous: None,
            attempt: 1,
            expires_at: None,
            first_task_at: None,
            parent: None,
            root: None,
            terminate_keys: Vec::new(),
            reset_keys: Vec::new(),
            reset: None,
            schedule: None,
        })
    }

    pub(crate) fn next(&self) -> EventNumber {
        self.events.len() as u64 + 1
    }

    pub(crate) fn push(&mut self, fact: impl Into<Fact>) {
        let number = self.next();
        self.events.push(Event { number, time: at(number), body: Body::new(fact) });
    }

    #[must_use]
    pub(crate) fn add(mut self, fact: impl Into<Fact>) -> Self {
        self.push(fact);
        self
    }

    /// A task that a worker holds.
    #[must_use]
    pub(crate) fn open_task(mut self) -> Self {
        self.start_task();
        self
    }

    pub(crate) fn start_task(&mut self) {
        self.push(TaskScheduled::default());
        self.push(TaskStarted { scheduled: self.next() - 1, ..TaskStarted::default() });
    }

    pub(crate) fn complete_task(&mut self, flags: BTreeSet<Flag>) {
        let started = self.next() - 1;
        let completed =
            TaskCompleted { scheduled: started - 1, started, flags, ..Default::default() };
        self.push(completed);
    }

    /// A completed task of code that records every wait; its commands follow.
    #[must_use]
    pub(crate) fn task(mut self) -> Self {
        self.start_task();
        self.complete_task(BTreeSet::from([Flag::OptionalTimers]));
        self
    }

    /// A completed task of code that does not record waits for a signal without deadline.
    #[must_use]
    pub(crate) fn old_task(mut self) -> Self {
        self.start_task();
        self.complete_task(BTreeSet::new());
        self
    }

    /// A task that a worker gave up.
    #[must_use]
    pub(crate) fn failed_task(self) -> Self {
        self.open_task().add(TaskFailed::default())
    }

    #[must_use]
    pub(crate) fn signal(self, name: &str, argument: &str) -> Self {
        let input = vec![Payload::new(argument.to_owned())];
        self.add(SignalReceived { name: name.into(), input, ..SignalReceived::default() })
    }

    /// The event of a command.
    #[must_use]
    pub(crate) fn did(mut self, ask: Ask) -> Self {
        self.record(&ask.into());
        self
    }

    #[must_use]
    pub(crate) fn activity(self, activity: &str, activity_type: &str) -> Self {
        self.did(Ask::ScheduleActivity(activity_spec(activity, activity_type)))
    }

    #[must_use]
    pub(crate) fn activity_completed(self, activity: &str, result: &str) -> Self {
        let scheduled = self.scheduled(activity);
        let result = vec![Payload::new(result.to_owned())];
        self.add(ActivityCompleted { scheduled, result, ..ActivityCompleted::default() })
    }

    #[must_use]
    pub(crate) fn timer(self, timer: &str, seconds: u64, origin: Option<Origin>) -> Self {
        let fire_at = at(self.next()).saturating_add(Duration::from_secs(seconds));
        self.did(Ask::StartTimer(timer_spec(timer, fire_at, origin)))
    }

    #[must_use]
    pub(crate) fn sleep(self, timer: &str, seconds: u64) -> Self {
        self.timer(timer, seconds, Some(Origin::CreateTimer))
    }

    /// The timer of a signal wait without deadline.
    #[must_use]
    pub(crate) fn optional(self, timer: &str, name: &str) -> Self {
        let origin = Some(Origin::ExternalEvent { name: name.into() });
        self.did(Ask::StartTimer(timer_spec(timer, Timestamp::NEVER, origin)))
    }

    #[must_use]
    pub(crate) fn fired(self, timer: &str) -> Self {
        let started = self.timer_started(timer);
        let fire_at = at(self.next());
        self.add(TimerFired { timer: timer.into(), started, fire_at })
    }

    #[must_use]
    pub(crate) fn cancelled(self, timer: &str) -> Self {
        self.did(Ask::CancelTimer(timer.into()))
    }

    #[must_use]
    pub(crate) fn child(self, id: &str, workflow_type: &str) -> Self {
        self.did(Ask::StartChild(Box::new(child_spec(id, workflow_type))))
    }

    #[must_use]
    pub(crate) fn completed(self) -> Self {
        self.did(Ask::CompleteRun(Vec::new()))
    }

    /// The number of the last event that fits.
    pub(crate) fn last(&self, fits: impl Fn(&Fact) -> bool) -> EventNumber {
        self.events.iter().rev().find(|event| fits(&event.body.fact)).unwrap().number
    }

    pub(crate) fn scheduled(&self, activity: &str) -> EventNumber {
        self.last(|fact| {
            matches!(fact, Fact::ActivityScheduled(it) if it.spec.activity.as_str() == activity)
        })
    }

    pub(crate) fn timer_started(&self, timer: &str) -> EventNumber {
        self.last(|fact| matches!(fact, Fact::TimerStarted(it) if it.spec.timer.as_str() == timer))
    }

    fn opened(&self, wait: &str) -> (EventNumber, Condition) {
        let number =
            self.last(|fact| matches!(fact, Fact::WaitOpened(it) if it.spec.wait.as_str() == wait));
        match &self.events[usize::try_from(number).unwrap() - 1].body.fact {
            Fact::WaitOpened(opened) => (number, opened.spec.condition.clone()),
            _ => unreachable!(),
        }
    }

    /// Appends the event of a command; nothing for a rejected update.
    pub(crate) fn record(&mut self, command: &Command) {
        let task_completed = self.next();
        let fact: Fact = match command.ask.clone() {
            Ask::ScheduleActivity(spec) => {
                let execution = run().execution_id(self.next());
                ActivityScheduled { spec, execution, task_completed }.into()
            }
            Ask::CancelActivity(activity) => {
                let scheduled = self.scheduled(activity.as_str());
                ActivityCancelRequested { scheduled, task_completed }.into()
            }
            Ask::StartTimer(spec) => TimerStarted { spec, task_completed }.into(),
            Ask::RescheduleTimer { timer, fire_at } => {
                TimerRescheduled { timer, fire_at, by: Mover::Code }.into()
            }
            Ask::CancelTimer(timer) => {
                let started = self.timer_started(timer.as_str());
                TimerCancelled { timer, started }.into()
            }
            Ask::OpenWait(spec) => WaitOpened { spec, task_completed }.into(),
            Ask::DescribeWait { wait, details } => {
                let (opened, _) = self.opened(wait.as_str());
                WaitDescribed { wait, opened, details }.into()
            }
            Ask::SatisfyWait(wait) => {
                let (opened, condition) = self.opened(wait.as_str());
                WaitSatisfied { wait, opened, condition }.into()
            }
            Ask::TimeOutWait(wait) => {
                let (opened, condition) = self.opened(wait.as_str());
                WaitTimedOut { wait, opened, condition }.into()
            }
            Ask::CancelWait(wait) => {
                let (opened, _) = self.opened(wait.as_str());
                WaitCancelled { wait, opened }.into()
            }
            Ask::StartChild(child) => {
                let run = RunId::of_child(run(), self.next(), at(0));
                ChildInitiated { child: *child, run, task_completed }.into()
            }
            Ask::SignalExternal { target, name, input, header } => {
                ExternalSignalInitiated { target, name, input, header, task_completed }.into()
            }
            Ask::CancelExternal { target, mode, reason } => {
                ExternalCancelInitiated { target, mode, reason, task_completed }.into()
            }
            Ask::RecordMarker(marker) => MarkerRecorded { marker, task_completed }.into(),
            Ask::UpsertSearchAttributes(attributes) => {
                SearchAttributesUpserted { attributes, task_completed }.into()
            }
            Ask::UpsertMemo(memo) => MemoUpserted { memo, task_completed }.into(),
            Ask::AcceptUpdate { update, request } => UpdateAccepted { update, request }.into(),
            Ask::RejectUpdate { .. } => return,
            Ask::CompleteUpdate { update, outcome } => {
                UpdateCompleted { update, accepted: 0, outcome }.into()
            }
            Ask::CompleteRun(result) => RunCompleted { result, next_run: None }.into(),
            Ask::FailRun(failure) => {
                RunFailed { failure, retry_state: RetryState::PolicyNotSet, next_run: None }.into()
            }
            Ask::CancelRun(details) => RunCancelled { details }.into(),
            Ask::ContinueAsNew(next) => {
                let ContinueAsNew { spec, signals, updates } = *next;
                RunContinuedAsNew { next_run: run(), spec, signals, updates }.into()
            }
        };
        self.push(fact);
    }

    /// A machine that has seen all of it.
    pub(crate) fn replay(&self, program: &Program) -> Result<Replay<Interpreter>, Error> {
        let mut replay = Replay::new(program.code());
        replay.feed(self.events.clone())?;
        Ok(replay)
    }

    /// What code does in the open task at the end.
    pub(crate) fn turn(&self, program: &Program) -> Completion {
        self.replay(program).unwrap().turn(&[]).unwrap()
    }

    /// What code asks for in the open task at the end, in short.
    pub(crate) fn asks(&self, program: &Program) -> Vec<String> {
        self.turn(program).commands.iter().map(short).collect()
    }

    /// How code and history differ.
    pub(crate) fn mismatch(&self, program: &Program) -> Mismatch {
        let mut replay = Replay::new(program.code());
        let fed = replay.feed(self.events.clone());
        match fed.and_then(|()| replay.settle()) {
            Err(Error::Mismatch(mismatch)) => *mismatch,
            other => panic!("no mismatch: {other:?}"),
        }
    }
}

/// A command in a few words.
pub(crate) fn short(command: &Command) -> String {
    let name = command.ask.event_name().unwrap_or("nothing");
    match &command.ask {
        Ask::ScheduleActivity(spec) => format!("{name} {}", spec.activity_type),
        Ask::CancelActivity(activity) => format!("{name} {activity}"),
        Ask::StartTimer(spec) => format!("{name} {}", spec.timer),
        Ask::RescheduleTimer { timer, .. } | Ask::CancelTimer(timer) => format!("{name} {timer}"),
        Ask::StartChild(child) => format!("{name} {}", child.workflow.workflow),
        Ask::AcceptUpdate { update, .. } | Ask::CompleteUpdate { update, .. } => {
            format!("{name} {update}")
        }
        Ask::CompleteRun(result) => {
            let bytes = result.iter().flat_map(|payload| payload.data.to_vec()).collect();
            format!("{name} {}", String::from_utf8(bytes).unwrap())
        }
        _ => name.into(),
    }
}

pub(crate) fn activity_spec(activity: &str, activity_type: &str) -> ActivitySpec {
    ActivitySpec {
        activity: activity.into(),
        activity_type: activity_type.into(),
        queue: String::new(),
        input: Vec::new(),
        header: PayloadMap::new(),
        schedule_to_close: None,
        schedule_to_start: None,
        start_to_close: None,
        heartbeat: None,
        retry: None,
        delivery: Delivery::AtLeastOnce,
        retry_of: None,
        attempt: 0,
    }
}

pub(crate) fn timer_spec(timer: &str, fire_at: Timestamp, origin: Option<Origin>) -> TimerSpec {
    TimerSpec { timer: timer.into(), fire_at, origin, details: None, guards: Guards::default() }
}

pub(crate) fn child_spec(id: &str, workflow_type: &str) -> ChildSpec {
    ChildSpec {
        workflow: workflow(id),
        spec: RunSpec { workflow_type: workflow_type.into(), ..RunSpec::default() },
        parent_close: ParentClosePolicy::default(),
        reuse: ReusePolicy::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }
}
