//! One run with a clock and a log of bytes. Every decision is written as a shard would write it and
//! then checked: the log folds to the same state, also from a snapshot of any earlier row; events are
//! dense and time does not run backwards; a refusal changes nothing.

use abide_core::{
    codec::{self, Row},
    command::Ask,
    effect::{Action, Effect, EffectOutcome},
    event::*,
    failure::Failure,
    ids::{EventNumber, StartId},
    limits::Limits,
    note::{Note, Record},
    payload::Extension,
    run::{
        self, CompleteTask, Context, Decision, FailTask, GivenTask, Heartbeat, Input, Reapply,
        Refusal, Reply, RescheduleTimer, ResetDone, ResetPoint, ResetRun, Resolution,
        ResolveActivity, Run, Signal, Stage, StartActivity, StartRun, StartTask, TimerKey,
    },
    time::Timestamp,
};
use bytes::Bytes;

use crate::build::{at, commands, request, run_id, seconds, spec, workflow};

/// A run under test.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) run: Run,
    pub(crate) now: Timestamp,
    pub(crate) limits: Limits,
    pub(crate) log: Vec<Row>,
    /// The folded state after each row.
    states: Vec<Bytes>,
    starts: u64,
}

/// What a decision came to.
#[derive(Debug)]
pub(crate) struct Took {
    pub(crate) reply: Reply,
    /// Names of the records, events before notes.
    pub(crate) names: Vec<String>,
    pub(crate) decision: Decision,
}

/// A first run of the workflow `order`.
pub(crate) fn start_run() -> StartRun {
    StartRun::new(workflow("order"), run_id(1), spec())
}

impl World {
    /// A run whose first task is scheduled.
    pub(crate) fn new() -> Self {
        Self::begin(start_run())
    }

    pub(crate) fn with(spec: RunSpec) -> Self {
        Self::begin(StartRun { spec, ..start_run() })
    }

    /// A run that was started as `start` says, under the default bounds.
    pub(crate) fn begin(start: StartRun) -> Self {
        Self::bounded(Limits::default(), at(0), start).0
    }

    pub(crate) fn bounded(limits: Limits, now: Timestamp, start: StartRun) -> (Self, Took) {
        let context = Context { now, next_run: run_id(2), limits: &limits };
        let (run, decision) = run::start(&context, start);
        let (log, states) = (Vec::new(), Vec::new());
        let mut world = Self { run, now, limits, log, states, starts: 0 };
        let took = world.write(decision);
        (world, took)
    }

    /// A run that has completed a task with these commands.
    pub(crate) fn after(asks: impl IntoIterator<Item = Ask>) -> Self {
        let mut world = Self::new();
        world.task(asks);
        world
    }

    /// Judges an input, writes what follows and checks it.
    pub(crate) fn decide(&mut self, input: Input) -> Result<Took, Refusal> {
        let before = self.run.to_snapshot();
        let context = Context { now: self.now, next_run: run_id(2), limits: &self.limits };
        match run::decide(&mut self.run, &context, input) {
            Ok(decision) => Ok(self.write(decision)),
            Err(refusal) => {
                assert_eq!(self.run.to_snapshot(), before, "a refusal changed the run: {refusal}");
                Err(refusal)
            }
        }
    }

    pub(crate) fn take(&mut self, input: Input) -> Took {
        self.decide(input).unwrap()
    }

    pub(crate) fn refused(&mut self, input: Input) -> Refusal {
        self.decide(input).unwrap_err()
    }

    /// Appends an event as other code wrote it.
    pub(crate) fn append(&mut self, fact: impl Into<Fact>) {
        self.append_body(Body::new(fact.into()));
    }

    pub(crate) fn append_body(&mut self, body: Body) {
        let number = self.run.last_event + 1;
        let records = vec![Record::Event(Event { number, time: self.now, body })];
        self.run.fold_more(&records).unwrap();
        let reply = Reply::Done;
        self.write(Decision { records, reply, rejected: Vec::new(), successor: None });
    }

    fn write(&mut self, decision: Decision) -> Took {
        let last = self.run.last_event;
        if !decision.records.is_empty() {
            let row = codec::encode_row(&decision.records);
            self.run.logged(row.events.len());
            self.log.push(row);
            self.check_numbers(last);
            self.states.push(self.run.to_snapshot());
        }
        self.check_fold();
        let names = decision.records.iter().map(name).collect();
        Took { reply: decision.reply.clone(), names, decision }
    }

    /// Events are dense and end with the run's last one; time does not run backwards.
    fn check_numbers(&self, last: EventNumber) {
        let events = self.events();
        let dense = events.iter().zip(1..).all(|(event, number)| event.number == number);
        assert!(dense, "events are not dense");
        assert_eq!(events.last().map(|event| event.number), Some(last));
        assert!(events.is_sorted_by_key(|event| event.time), "time runs backwards");
    }

    /// The state follows from the log alone, and from every snapshot with the rest of the log.
    fn check_fold(&self) {
        let live = self.run.to_snapshot();
        assert_eq!(self.fold(None).to_snapshot(), live, "the log does not fold to the live state");
        // One earlier row each time, scattered: over all tests, every distance is tried.
        let rows = self.log.len();
        let earlier = (rows.wrapping_mul(0x9e37_79b9) >> 7) % rows;
        assert_eq!(self.fold(Some(earlier)).to_snapshot(), live, "snapshot of row {earlier}");
    }

    /// The state that the log makes, from the start or after the snapshot of a row.
    pub(crate) fn fold(&self, snapshot: Option<usize>) -> Run {
        let (mut run, rest) = match snapshot {
            Some(row) => {
                let run = Run::from_snapshot(&self.states[row]).unwrap();
                (run, &self.log[row + 1..])
            }
            None => {
                let first = codec::decode_row(&self.log[0]).unwrap();
                let mut run = Run::fold(&first).unwrap();
                run.logged(self.log[0].events.len());
                (run, &self.log[1..])
            }
        };
        for row in rest {
            run.fold_more(&codec::decode_row(row).unwrap()).unwrap();
            run.logged(row.events.len());
        }
        run
    }

    /// The same for every row at once.
    pub(crate) fn check_every_snapshot(&self) {
        let live = self.run.to_snapshot();
        for row in 0..self.log.len() {
            assert_eq!(self.fold(Some(row)).to_snapshot(), live, "snapshot of row {row}");
        }
    }

    /// The server dies and reads the run again.
    pub(crate) fn crash(&mut self) -> Took {
        self.run = self.fold(None);
        self.take(Input::Recover)
    }

    /// Another run of the same workflow begins, as the decision says.
    pub(crate) fn successor(&self, took: &Took) -> Self {
        let start = took.decision.successor.as_deref().unwrap().clone();
        Self::bounded(self.limits.clone(), self.now, start).0
    }

    /// Resets the run, and returns the world of the new one. Both logs are checked.
    pub(crate) fn reset(&mut self, to: ResetPoint, reapply: Reapply) -> Result<Self, Refusal> {
        let before = self.run.to_snapshot();
        let events = |row: &Row| codec::decode_events(row.events.clone()).unwrap();
        let context = Context { now: self.now, next_run: run_id(2), limits: &self.limits };
        let asked = ResetRun {
            run: run_id(9),
            ordinal: self.run.ordinal + 1,
            to,
            reapply,
            reason: "wrong turn".into(),
            identity: "operator".into(),
            key: Some("once".into()),
            terminate_keys: Vec::new(),
            reset_keys: Vec::new(),
            history: self.log.iter().map(events).collect(),
        };
        let made = run::reset(&mut self.run, &context, asked);
        let ResetDone { base, run, copied, decision } = match made {
            Ok(made) => made,
            Err(refusal) => {
                assert_eq!(self.run.to_snapshot(), before, "a refusal changed the run: {refusal}");
                return Err(refusal);
            }
        };
        self.write(base);
        let log: Vec<_> = copied.into_iter().map(|(_, row)| row).collect();
        let mut world = Self { run, log, states: Vec::new(), ..self.clone() };
        for rows in 1..=world.log.len() {
            let part = Self { log: world.log[..rows].to_vec(), ..world.clone() };
            world.states.push(part.fold(None).to_snapshot());
        }
        world.write(decision);
        Ok(world)
    }

    // What happened so far.

    pub(crate) fn events(&self) -> Vec<Event> {
        let bytes: Vec<u8> = self.log.iter().flat_map(|row| row.events.to_vec()).collect();
        codec::decode_events(bytes.into()).unwrap()
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.events().iter().map(|event| event.body.fact.name().to_owned()).collect()
    }

    /// The last event of the history.
    pub(crate) fn last_fact(&self) -> Fact {
        self.events().pop().unwrap().body.fact
    }

    /// The last event of this name.
    pub(crate) fn fact(&self, name: &str) -> Fact {
        self.event(name).body.fact
    }

    pub(crate) fn event(&self, name: &str) -> Event {
        let mut events = self.events().into_iter().rev();
        events.find(|event| event.body.fact.name() == name).unwrap()
    }

    /// The last note of the last row.
    pub(crate) fn last_note(&self) -> Note {
        codec::decode_notes(self.log.last().unwrap().notes.clone()).unwrap().pop().unwrap()
    }

    pub(crate) fn effects(&self) -> Vec<&Effect> {
        self.run.outbox.values().collect()
    }

    // The clock.

    pub(crate) fn pass(&mut self, duration: u64) {
        self.now = self.now.saturating_add(seconds(duration));
    }

    /// Goes to this many seconds after the world began.
    pub(crate) fn go_to(&mut self, moment: u64) {
        self.now = at(moment);
    }

    // Workflow tasks.

    /// Names a start that was not used before.
    pub(crate) fn next_start(&mut self) -> StartTask {
        self.starts += 1;
        StartTask {
            start: StartId { incarnation: 1, counter: self.starts },
            session: "session".into(),
            identity: "worker".into(),
            build: Some("build-1".into()),
        }
    }

    pub(crate) fn start_task(&mut self) -> GivenTask {
        let start = self.next_start();
        match self.take(Input::StartTask(start)).reply {
            Reply::TaskGiven(given) => *given,
            other => panic!("no task but {other:?}"),
        }
    }

    /// Starts the task with other code.
    pub(crate) fn start_with(&mut self, build: &str) -> Result<Took, Refusal> {
        let start = StartTask { build: Some(build.into()), ..self.next_start() };
        self.decide(Input::StartTask(start))
    }

    /// The start of the running task.
    pub(crate) fn current(&self) -> StartId {
        self.run.volatile.turn.as_ref().unwrap().start
    }

    pub(crate) fn completion(&self, asks: impl IntoIterator<Item = Ask>) -> CompleteTask {
        CompleteTask {
            start: self.current(),
            commands: commands(asks),
            flags: [Flag::OptionalTimers].into(),
            sdk_metadata: Extension::new(),
            force_next: false,
            carried: Vec::new(),
        }
    }

    pub(crate) fn complete(&mut self, asks: impl IntoIterator<Item = Ask>) -> Took {
        let completion = self.completion(asks);
        self.take(Input::CompleteTask(Box::new(completion)))
    }

    /// Starts and completes a task.
    pub(crate) fn task(&mut self, asks: impl IntoIterator<Item = Ask>) -> Took {
        self.start_task();
        self.complete(asks)
    }

    pub(crate) fn fail_task(&mut self) -> Took {
        self.fail_with(TaskFailureCause::WorkerFailure, None)
    }

    /// The code does not fit the history.
    pub(crate) fn block_task(&mut self) -> Took {
        self.fail_with(TaskFailureCause::ReplayBlocked, Some(Blocked::default()))
    }

    fn fail_with(&mut self, cause: TaskFailureCause, blocked: Option<Blocked>) -> Took {
        let (start, failure) = (self.current(), Failure::default());
        self.take(Input::FailTask(Box::new(FailTask { start, cause, failure, blocked })))
    }

    pub(crate) fn time_out_task(&mut self) -> Took {
        let start = self.current();
        self.take(Input::TimeOutTask { start })
    }

    pub(crate) fn lose_task(&mut self) -> Took {
        let start = self.current();
        self.take(Input::LoseTask { start })
    }

    pub(crate) fn repair(&mut self) -> Took {
        self.take(Input::Repair { identity: "operator".into() })
    }

    // Inputs from outside.

    pub(crate) fn signal(&mut self, name: &str) -> Took {
        let input = self.signal_input(name, None);
        self.take(input)
    }

    pub(crate) fn signal_input(&self, name: &str, key: Option<&str>) -> Input {
        let (name, key, received_at) = (name.into(), key.map(Into::into), self.now);
        let signal = SignalReceived { name, key, received_at, ..SignalReceived::default() };
        Input::Signal(Box::new(Signal { signal, extension: Extension::new() }))
    }

    pub(crate) fn request_cancel(&mut self) -> Took {
        self.take(Input::RequestCancel(RunCancelRequested::default()))
    }

    pub(crate) fn terminate(&mut self) -> Took {
        let reason = String::from("enough");
        self.take(Input::Terminate(RunTerminated { reason, ..RunTerminated::default() }))
    }

    pub(crate) fn pause(&mut self) -> Took {
        self.take(Input::Pause(RunPaused::default()))
    }

    pub(crate) fn unpause(&mut self) -> Took {
        self.take(Input::Unpause(RunUnpaused::default()))
    }

    pub(crate) fn update_input(update: &str) -> Input {
        let (update, request) = (update.into(), request("set"));
        Input::AdmitUpdate { update, request, wait_while_blocked: false }
    }

    /// Asks for an update and says where it stands.
    pub(crate) fn update(&mut self, update: &str) -> Stage {
        match self.take(Self::update_input(update)).reply {
            Reply::Update(stage) => stage,
            other => panic!("no stage but {other:?}"),
        }
    }

    // Due times.

    pub(crate) fn due(&mut self, timer: TimerKey) -> Took {
        self.take(Input::Due { timer })
    }

    pub(crate) fn fire(&mut self, timer: &str) -> Took {
        self.due(TimerKey::Timer(timer.into()))
    }

    /// Something of the activity is due.
    pub(crate) fn activity_due(&mut self, activity: &str) -> Took {
        self.due(TimerKey::Activity(self.scheduled(activity)))
    }

    pub(crate) fn timer_due(&self, timer: &str) -> Option<Timestamp> {
        self.run.due(&TimerKey::Timer(timer.into()))
    }

    pub(crate) fn move_input(timer: &str, fire_at: Timestamp, key: Option<&str>) -> Input {
        Input::RescheduleTimer(RescheduleTimer {
            what: timer.into(),
            fire_at,
            after: None,
            identity: "operator".into(),
            key: key.map(Into::into),
        })
    }

    /// A client moves a timer.
    pub(crate) fn move_timer(&mut self, timer: &str, due: u64) -> Took {
        self.take(Self::move_input(timer, at(due), None))
    }

    // Activities.

    /// The event that scheduled the activity, also if it is closed.
    pub(crate) fn scheduled(&self, activity: &str) -> EventNumber {
        let mut events = self.events().into_iter().rev();
        let scheduled = events.find(|event| {
            matches!(&event.body.fact, Fact::ActivityScheduled(it) if it.spec.activity.as_str() == activity)
        });
        scheduled.unwrap().number
    }

    pub(crate) fn start_activity_input(&self, activity: &str) -> Input {
        let (session, identity) = ("session".into(), "worker".into());
        let scheduled = self.scheduled(activity);
        Input::StartActivity(StartActivity { scheduled, session, identity })
    }

    /// A worker takes the activity; gives the number of the start.
    pub(crate) fn start_activity(&mut self, activity: &str) -> u32 {
        let input = self.start_activity_input(activity);
        match self.take(input).reply {
            Reply::ActivityGiven { start } => start,
            other => panic!("no activity but {other:?}"),
        }
    }

    pub(crate) fn resolve_input(&self, activity: &str, start: u32, with: Resolution) -> Input {
        let scheduled = self.scheduled(activity);
        Input::ResolveActivity(ResolveActivity { scheduled, start, resolution: with })
    }

    pub(crate) fn resolve(&mut self, activity: &str, with: Resolution) -> Took {
        let start = self.activity(activity).starts;
        let input = self.resolve_input(activity, start, with);
        self.take(input)
    }

    pub(crate) fn complete_activity(&mut self, activity: &str) -> Took {
        self.resolve(activity, Resolution::Completed(Vec::new()))
    }

    pub(crate) fn fail_activity(&mut self, activity: &str) -> Took {
        self.resolve(activity, Resolution::Failed(crate::build::failure("boom")))
    }

    pub(crate) fn lose_activity(&mut self, activity: &str) -> Took {
        let (scheduled, start) = (self.scheduled(activity), self.activity(activity).starts);
        self.take(Input::LoseAttempt { scheduled, start })
    }

    pub(crate) fn heartbeat(&mut self, activity: &str, details: &str) -> Took {
        self.heartbeat_with_room(activity, details, true)
    }

    pub(crate) fn heartbeat_with_room(
        &mut self,
        activity: &str,
        details: &str,
        room: bool,
    ) -> Took {
        let (scheduled, start) = (self.scheduled(activity), self.activity(activity).starts);
        let details = crate::build::payloads(details);
        self.take(Input::Heartbeat(Heartbeat { scheduled, start, details, room }))
    }

    /// The pending activity.
    pub(crate) fn activity(&self, activity: &str) -> &run::Activity {
        &self.run.activities[&self.scheduled(activity)]
    }

    // Other workflows.

    /// The effect's target answers.
    pub(crate) fn answer(&mut self, number: u64, answer: EffectOutcome) -> Took {
        self.take(Input::EffectAnswered { number, answer })
    }

    /// Another run does something to this one.
    pub(crate) fn deliver(&mut self, action: Action) -> Took {
        self.take(Input::Deliver { source: crate::build::other(), action })
    }
}

/// The name of a record.
fn name(record: &Record) -> String {
    match record {
        Record::Event(event) => event.body.fact.name().to_owned(),
        Record::Note(note) => {
            let text = format!("{note:?}");
            text.split([' ', '(']).next().unwrap_or_default().to_owned()
        }
    }
}
