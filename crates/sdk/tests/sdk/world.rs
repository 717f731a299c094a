//! A world of one run: the engine's decisions, a worker with the true executor, and a clock that is
//! moved by hand. Every task is also answered by a machine that replays the whole history, and both
//! must agree.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use abide::{
    IntoArguments, PayloadValue, QueryDef, SignalDef, Timestamp, UpdateDef, Workflow,
    activity::{Activity, LocalActivity, LocalEnd},
    arguments::ArgumentList,
    executor::Machine,
    interceptor::Interceptor,
    payload,
    registry::{TaskFault, WorkflowCode},
};
use abide_core::{
    command::Ask,
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome},
    event::{
        Body, Event, Fact, Marker, RunCancelRequested, RunReference, RunSpec, SignalReceived,
        UpdateAdmitted, UpdateOutcome, UpdateRequest,
    },
    failure::Failure,
    ids::{EventNumber, RunId, StartId, WorkflowKey},
    limits::Limits,
    note::Record,
    operation::QueryRequest,
    payload::{Extension, Payloads},
    replay::{Completion, Replay},
    run::{
        self, CompleteTask, Context, Decision, FailTask, GivenTask, Input, Movable, Reply,
        RescheduleTimer, Resolution, ResolveActivity, Run, Signal, StartActivity, StartRun,
        StartTask, TimerKey,
    },
};

/// One run of workflow `W` and all that is around it.
pub(crate) struct World<W: Workflow> {
    pub(crate) run: Run,
    pub(crate) events: Vec<Event>,
    /// Why tasks failed.
    pub(crate) faults: Vec<TaskFault>,
    /// Updates that were refused.
    pub(crate) rejected: Vec<Failure>,
    /// The run that goes on after this one.
    pub(crate) successor: Option<Box<StartRun>>,
    now: Timestamp,
    limits: Limits,
    starts: u64,
    updates: u64,
    kept: Option<Replay<Machine<W>>>,
    /// Local activities that run, in the order in which code asked.
    pub(crate) locals: Vec<LocalActivity>,
    /// Ends of local activities that no task has seen.
    local_ends: Vec<Marker>,
    turns: Vec<Taken>,
    interceptors: Option<Arc<[Arc<dyn Interceptor>]>>,
    workflow: PhantomData<W>,
}

/// A task that was answered.
struct Taken {
    given: Vec<Event>,
    updates: Vec<UpdateAdmitted>,
    locals: Vec<Marker>,
    completion: Completion,
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl<W: Workflow> World<W> {
    /// A run with these arguments, taken as far as it goes by itself.
    pub(crate) fn start(input: impl IntoArguments<W::Arguments>) -> Self {
        Self::begin_with(input, Vec::new())
    }

    /// The same with messages that it has from the beginning.
    pub(crate) fn begin_with(input: impl IntoArguments<W::Arguments>, inputs: Vec<Body>) -> Self {
        let mut world = Self::unbegun_with(input, inputs);
        world.work();
        world
    }

    /// A run as `start` says.
    pub(crate) fn begin(start: StartRun) -> Self {
        let mut world = Self::unbegun(start);
        world.work();
        world
    }

    /// A run with messages that it has from the beginning, before its first task.
    pub(crate) fn unbegun_with(input: impl IntoArguments<W::Arguments>, inputs: Vec<Body>) -> Self {
        let spec = RunSpec {
            workflow_type: W::NAME.into(),
            queue: "main".into(),
            input: W::encode_input(&input.into_arguments()).unwrap(),
            ..RunSpec::default()
        };
        Self::unbegun(StartRun { inputs, ..StartRun::new(key("order-1"), run_id(1), spec) })
    }

    fn unbegun(start: StartRun) -> Self {
        let (now, limits) = (Timestamp::from_unix_millis(1_800_000_000_000), Limits::default());
        let context = Context { now, next_run: run_id(2), limits: &limits };
        let (run, decision) = run::start(&context, start);
        let mut world = Self {
            run,
            events: Vec::new(),
            faults: Vec::new(),
            rejected: Vec::new(),
            successor: None,
            now,
            limits,
            starts: 0,
            updates: 0,
            kept: None,
            locals: Vec::new(),
            local_ends: Vec::new(),
            turns: Vec::new(),
            interceptors: None,
            workflow: PhantomData,
        };
        world.write(decision);
        world
    }

    // What happens.

    /// Time passes; what is due fires, moment by moment.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        while let Some((due, timer)) = self.next_due().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.take(Input::Due { timer });
            self.work();
        }
        self.now = end;
        self.work();
    }

    /// Time passes and one timer fires, but no worker is there yet.
    pub(crate) fn fire_unseen(&mut self, duration: Duration) {
        self.pass_unseen(duration);
        let (_, timer) = self.next_due().unwrap();
        self.take(Input::Due { timer });
    }

    /// Time passes and what is due by then fires, but no worker is there yet.
    pub(crate) fn fire_what_is_due(&mut self, duration: Duration) {
        let end = self.now.saturating_add(duration);
        while let Some((due, timer)) = self.next_due().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.take(Input::Due { timer });
        }
        self.now = end;
    }

    /// Time passes, and nobody does anything.
    pub(crate) fn pass_unseen(&mut self, duration: Duration) {
        self.now = self.now.saturating_add(duration);
    }

    fn next_due(&self) -> Option<(Timestamp, TimerKey)> {
        let timers = self.run.due_keys().into_iter();
        let due = timers.filter_map(|key| self.run.due(&key).map(|due| (due, key)));
        due.filter(|(due, _)| !due.is_never()).min_by_key(|(due, _)| *due)
    }

    pub(crate) fn signal<I: ArgumentList>(
        &mut self,
        signal: SignalDef<W, I>,
        input: impl IntoArguments<I>,
    ) {
        self.signal_raw(signal.name(), signal.encode(&input.into_arguments()).unwrap());
        self.work();
    }

    /// A signal whose task is not worked on yet.
    pub(crate) fn signal_raw(&mut self, name: &str, input: Payloads) {
        self.signal_received(name, input, self.now);
    }

    /// Delivers a signal that another clock saw arrive.
    pub(crate) fn signal_received(&mut self, name: &str, input: Payloads, received_at: Timestamp) {
        let name = name.to_owned();
        let received = SignalReceived { name, input, received_at, ..SignalReceived::default() };
        let signal = Signal { signal: received, extension: Extension::new() };
        self.take(Input::Signal(Box::new(signal)));
    }

    /// Asks for an update and gives its outcome, if it has one.
    pub(crate) fn update<I: ArgumentList, O: PayloadValue>(
        &mut self,
        update: UpdateDef<W, I, O>,
        input: impl IntoArguments<I>,
    ) -> Option<Result<O, String>> {
        let id = self.update_raw(update.name(), update.encode(&input.into_arguments()).unwrap());
        self.outcome(&id).map(|outcome| match outcome {
            UpdateOutcome::Completed(result) => Ok(update.decode(&result).unwrap()),
            UpdateOutcome::Failed(failure) => Err(failure.message),
        })
    }

    pub(crate) fn update_raw(&mut self, name: &str, input: Payloads) -> String {
        self.updates += 1;
        let id = format!("update-{}", self.updates);
        let request = UpdateRequest { name: name.into(), input, ..UpdateRequest::default() };
        let (update, wait_while_blocked) = (id.as_str().into(), false);
        self.take(Input::AdmitUpdate { update, request, wait_while_blocked });
        self.work();
        id
    }

    pub(crate) fn outcome(&self, id: &str) -> Option<UpdateOutcome> {
        self.events.iter().find_map(|event| match &event.body.fact {
            Fact::UpdateCompleted(completed) if completed.update.as_str() == id => {
                Some(completed.outcome.clone())
            }
            _ => None,
        })
    }

    /// A client moves a timer. No task follows from it.
    pub(crate) fn reschedule(&mut self, timer: &str, fire_at: Timestamp) {
        let (what, identity, key) = (Movable::Timer(timer.into()), "client".into(), None);
        self.take(Input::RescheduleTimer(RescheduleTimer {
            what,
            fire_at,
            after: None,
            identity,
            key,
        }));
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn cancel(&mut self) {
        self.cancel_because("");
    }

    /// Somebody asks the run to cancel itself, and says why.
    pub(crate) fn cancel_because(&mut self, reason: &str) {
        let (reason, identity) = (reason.to_owned(), "somebody".to_owned());
        let request = RunCancelRequested { reason, identity, ..RunCancelRequested::default() };
        self.take(Input::RequestCancel(request));
        self.work();
    }

    /// A worker begins the oldest pending activity of this type.
    pub(crate) fn begin_attempt<M>(&mut self, activity: impl Activity<M>) {
        let scheduled = self.pending(activity.definition().name());
        let (session, identity) = ("session".into(), "worker".into());
        self.take(Input::StartActivity(StartActivity { scheduled, session, identity }));
    }

    /// The oldest pending activity of this type cancels itself.
    pub(crate) fn stop<D: PayloadValue, M>(&mut self, activity: impl Activity<M>, details: &D) {
        let details = payload::encode(details).unwrap();
        self.resolve(activity.definition().name(), Resolution::Cancelled(details));
    }

    /// The oldest pending activity of this type has a result.
    pub(crate) fn complete<A: Activity<M, Output: PayloadValue>, M>(
        &mut self,
        activity: A,
        result: A::Output,
    ) {
        let result = payload::encode(&result).unwrap();
        self.resolve(activity.definition().name(), Resolution::Completed(result));
    }

    /// The oldest pending activity of this type fails.
    pub(crate) fn fail<M>(&mut self, activity: impl Activity<M>, failure: Failure) {
        self.resolve(activity.definition().name(), Resolution::Failed(failure));
    }

    fn resolve(&mut self, activity_type: &str, resolution: Resolution) {
        let scheduled = self.pending(activity_type);
        if self.run.activities[&scheduled].starts == 0 {
            let (session, identity) = ("session".into(), "worker".into());
            self.take(Input::StartActivity(StartActivity { scheduled, session, identity }));
        }
        let start = self.run.activities[&scheduled].starts;
        self.take(Input::ResolveActivity(ResolveActivity { scheduled, start, resolution }));
        self.work();
    }

    fn pending(&self, activity_type: &str) -> EventNumber {
        let of_type = |activity: &run::Activity| activity.spec.activity_type == activity_type;
        let pending = self.run.activities.iter().find(|(_, activity)| of_type(activity));
        *pending.unwrap().0
    }

    /// The oldest local activity that runs ends.
    pub(crate) fn end_local(&mut self, end: LocalEnd) {
        let activity = self.locals.remove(0);
        self.local_ends.push(activity.marker(activity.attempt, end));
        self.work();
    }

    /// The oldest effect on another workflow is answered.
    pub(crate) fn answer(&mut self, answer: EffectOutcome) -> Action {
        let (number, effect) = self.run.outbox.iter().next().unwrap();
        let (number, action) = (*number, effect.action.clone());
        self.take(Input::EffectAnswered { number, answer });
        self.work();
        action
    }

    /// The oldest child closes.
    pub(crate) fn close_child(&mut self, outcome: RunOutcome) {
        let initiated = self.events.iter().find_map(|event| match &event.body.fact {
            Fact::ChildInitiated(initiated) if self.run.children.contains_key(&event.number) => {
                Some((event.number, initiated.run))
            }
            _ => None,
        });
        let (initiated, run) = initiated.unwrap();
        let action = Action::ChildClosed(ChildClosed { initiated, first_run: run, run, outcome });
        let source = RunReference { workflow: key("child"), run };
        self.take(Input::Deliver { source, action });
        self.work();
    }

    // What is seen.

    /// The names of all events but those of tasks and of attempts.
    pub(crate) fn history(&self) -> Vec<&'static str> {
        let names = self.events.iter().map(|event| event.body.fact.name());
        names.filter(|name| !name.starts_with("Task") && *name != "ActivityStarted").collect()
    }

    /// The result of the run, if it has one.
    pub(crate) fn result(&self) -> Option<W::Output> {
        match &self.events.last()?.body.fact {
            Fact::RunCompleted(completed) => Some(W::decode_output(&completed.result).unwrap()),
            _ => None,
        }
    }

    /// Why the run failed, if it did.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.events.last()?.body.fact {
            Fact::RunFailed(failed) => Some(&failed.failure),
            _ => None,
        }
    }

    pub(crate) fn query<I: ArgumentList, O: PayloadValue>(
        &self,
        query: QueryDef<W, I, O>,
        input: impl IntoArguments<I>,
    ) -> O {
        let input = query.encode(&input.into_arguments()).unwrap();
        let answer = self.query_raw(query.name(), &input);
        query.decode(&answer.unwrap()).unwrap()
    }

    pub(crate) fn query_raw(&self, name: &str, input: &Payloads) -> Result<Payloads, Failure> {
        let mut machine = self.machine(&self.events);
        machine.settle().unwrap();
        let moves = machine.unseen_moves();
        machine.code_mut().query(&QueryRequest::new(name, input.clone()), moves)
    }

    /// Asks the machine that the worker keeps.
    pub(crate) fn query_kept(&mut self, name: &str) -> Result<Payloads, Failure> {
        let kept = self.kept.as_mut().unwrap();
        kept.feed(self.events.clone()).and_then(|()| kept.settle()).unwrap();
        let moves = kept.unseen_moves();
        kept.code_mut().query(&QueryRequest::new(name, Vec::new()), moves)
    }

    // The engine and the worker.

    fn take(&mut self, input: Input) -> Reply {
        let context = Context { now: self.now, next_run: run_id(2), limits: &self.limits };
        let decision = run::decide(&mut self.run, &context, input).unwrap();
        self.write(decision)
    }

    fn write(&mut self, decision: Decision) -> Reply {
        self.rejected.extend(decision.rejected.into_iter().map(|(_, failure)| failure));
        self.successor = decision.successor.or(self.successor.take());
        self.events.extend(decision.records.into_iter().filter_map(|record| match record {
            Record::Event(event) => Some(event),
            Record::Note(_) => None,
        }));
        decision.reply
    }

    /// Runs tasks until there is none, or one fails.
    pub(crate) fn work(&mut self) {
        let mut paused = false;
        while !paused && self.run.open() && self.run.task_ready(self.now) && self.faults.is_empty()
        {
            self.starts += 1;
            let start = StartTask {
                start: StartId { incarnation: 1, counter: self.starts },
                session: "session".into(),
                identity: "worker".into(),
                build: None,
            };
            match self.take(Input::StartTask(start)) {
                Reply::TaskGiven(given) => self.answer_task(*given),
                other => panic!("no task but {other:?}"),
            }
            // Tasks that only wait for local activities follow each other until one has ended.
            paused = !self.locals.is_empty();
        }
    }

    /// Tells code the ends of local activities, and takes what it asks for.
    fn run_locally(&mut self, machine: &mut Replay<Machine<W>>) -> Vec<Marker> {
        let mut told = Vec::new();
        loop {
            let work = machine.code_mut().take_local_work();
            self.locals.extend(work.begin);
            self.locals.retain(|activity| !work.give_up.contains(&activity.id));
            if self.local_ends.is_empty() || machine.closes() {
                return told;
            }
            let marker = self.local_ends.remove(0);
            machine.local_resolved(&marker).unwrap();
            told.push(marker);
        }
    }

    fn answer_task(&mut self, given: GivenTask) {
        let mut history = self.events.clone();
        history.extend(given.tail.iter().cloned());
        let updates: Vec<_> = given
            .updates
            .iter()
            .map(|(update, request)| UpdateAdmitted {
                update: update.clone(),
                request: request.clone(),
            })
            .collect();
        let mut kept = self.kept.take().unwrap_or_else(|| self.machine(&[]));
        let completion = kept.feed(history.clone()).and_then(|()| kept.turn(&updates));
        let locals = self.run_locally(&mut kept);
        if let Some(fault) = kept.code_mut().take_fault() {
            let (start, cause, failure) = (given.start, fault.cause, fault.failure.clone());
            self.faults.push(fault);
            let failed = FailTask { start, cause, failure, blocked: None };
            self.take(Input::FailTask(Box::new(failed)));
            return;
        }
        completion.unwrap();
        let completion = kept.completion();
        let taken = Taken { given: history, updates, locals, completion: completion.clone() };
        assert_eq!(self.again(&taken), completion, "the kept and the replayed machine differ");
        self.turns.push(taken);
        if kept.closes() {
            self.locals.clear();
        }
        let carried = self.carried(&completion);
        let reply = self.take(Input::CompleteTask(Box::new(CompleteTask {
            start: given.start,
            commands: completion.commands,
            flags: completion.flags,
            sdk_metadata: Extension::new(),
            force_next: !self.locals.is_empty(),
            carried,
        })));
        if matches!(reply, Reply::TaskTaken { .. }) {
            self.kept = Some(kept);
        }
    }

    /// Evicts the run from the worker: the next task replays it.
    pub(crate) fn evict(&mut self) {
        self.kept = None;
        self.locals.clear();
        self.local_ends.clear();
    }

    /// From now on the worker has this interceptor and no other; the run is evicted.
    pub(crate) fn intercept(&mut self, interceptor: impl Interceptor) {
        self.interceptors = Some([Arc::new(interceptor) as Arc<dyn Interceptor>].into());
        self.evict();
    }

    fn machine(&self, events: &[Event]) -> Replay<Machine<W>> {
        let mut code = Machine::new(self.run.workflow.clone(), self.run.id);
        if let Some(interceptors) = &self.interceptors {
            code.intercept(Arc::clone(interceptors));
        }
        let mut machine = Replay::new(code);
        machine.feed(events.to_vec()).unwrap();
        machine
    }

    /// The bodies that the next run gets, as a shard reads them from the log.
    fn carried(&self, completion: &Completion) -> Vec<Body> {
        let Some(Ask::ContinueAsNew(next)) = completion.commands.last().map(|last| &last.ask)
        else {
            return Vec::new();
        };
        let goes = |event: &&Event| match &event.body.fact {
            Fact::SignalReceived(_) => next.signals.contains(&event.number),
            Fact::UpdateAccepted(accepted) => next.updates.contains(&accepted.update),
            _ => false,
        };
        self.events.iter().filter(goes).map(|event| event.body.clone()).collect()
    }

    /// However the history is cut, replay agrees with it, and every task is answered again as it was.
    pub(crate) fn check(&self) {
        self.check_replay();
        for turn in &self.turns {
            assert_eq!(self.again(turn), turn.completion);
        }
    }

    /// However the history is cut, replay agrees with it.
    pub(crate) fn check_replay(&self) {
        for cut in 0..=self.events.len() {
            let mut machine = self.machine(&self.events[..cut]);
            machine.feed(self.events[cut..].to_vec()).unwrap();
            machine.settle().unwrap();
            assert_eq!(machine.code_mut().take_fault(), None, "cut after event {cut}");
        }
    }

    /// What a machine that replays everything answers to a task.
    fn again(&self, turn: &Taken) -> Completion {
        let mut machine = self.machine(&turn.given);
        machine.turn(&turn.updates).unwrap();
        machine.code_mut().take_local_work();
        for marker in &turn.locals {
            machine.local_resolved(marker).unwrap();
            machine.code_mut().take_local_work();
        }
        machine.completion()
    }
}

pub(crate) fn key(workflow: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: workflow.into() }
}

pub(crate) fn run_id(number: u128) -> RunId {
    RunId::from_parts(Timestamp::from_unix_millis(1_800_000_000_000), number)
}
