//! Drawn programs on a run that is treated badly: tasks are lost, fail, time out and are answered
//! twice, attempts die, inputs come again, the server crashes. Whatever happens, the log folds to the
//! same state from every row, the history replays at every cut, and something will resume the run.

use std::time::Duration;

use abide_core::{
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome},
    event::{Condition, Delivery, DeliveryFailure, Fact, Mover},
    ids::EventNumber,
    retry::{RetryPolicy, RetryState},
    run::{GivenTask, Heartbeat, Input, Refusal, Resolution, ResolveActivity, StartActivity},
};
use abide_program::{Activity, Child, Node, OnCancel, Program};
use proptest::{collection::vec, option, prelude::*};

use crate::{build::*, worker::Worker, world::World};

/// What may happen next. The number picks among what it can happen to.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A worker does what there is to do; an operator helps if nothing is handed out.
    Work,
    TakeTask,
    Answer,
    /// The worker answers, and the answer is lost with the server or the connection.
    LoseAnswer,
    FailTask,
    BlockTask,
    TimeOutTask,
    LoseTask,
    Due,
    Signal(u8),
    Update(u8),
    RequestCancel(u8),
    Pause,
    Repair,
    MoveTimer(u8),
    TakeActivity(u8),
    EndActivity(u8),
    LoseActivity(u8),
    Heartbeat(u8),
    Effect(u8),
    CloseChild(u8),
    Again,
    Crash,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    let any = any::<u8>();
    prop_oneof![
        12 => Just(Work),
        4 => Just(TakeTask),
        8 => Just(Answer),
        1 => Just(LoseAnswer),
        1 => Just(FailTask),
        1 => Just(BlockTask),
        1 => Just(TimeOutTask),
        1 => Just(LoseTask),
        12 => Just(Due),
        3 => any.prop_map(Signal),
        2 => any.prop_map(Update),
        1 => any.prop_map(RequestCancel),
        1 => Just(Pause),
        1 => Just(Repair),
        1 => any.prop_map(MoveTimer),
        8 => any.prop_map(TakeActivity),
        5 => any.prop_map(EndActivity),
        2 => any.prop_map(LoseActivity),
        2 => any.prop_map(Heartbeat),
        4 => any.prop_map(Effect),
        3 => any.prop_map(CloseChild),
        2 => Just(Again),
        2 => Just(Crash),
    ]
}

/// A run, its worker, and what they are in the middle of.
struct Play {
    program: Program,
    world: World,
    worker: Worker,
    held: Option<GivenTask>,
    last: Option<Input>,
    updates: u64,
}

impl Play {
    fn new(program: &Program) -> Self {
        let mut world = World::new();
        world.limits.buffered_inputs = 4;
        Self {
            program: program.clone(),
            world,
            worker: Worker::new(program),
            held: None,
            last: None,
            updates: 0,
        }
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Work => {
                if self.world.run.paused {
                    self.world.decide(Input::Unpause(Default::default())).ok();
                }
                if self.world.run.replay_blocked() {
                    self.world.repair();
                }
                self.take_task();
                self.answer();
            }
            Happening::TakeTask => self.take_task(),
            Happening::Answer => self.answer(),
            Happening::LoseAnswer => {
                if let Some(given) = self.held.take() {
                    self.worker.turn(&self.world, &given);
                    self.worker.forget();
                    self.world.crash();
                }
            }
            Happening::FailTask => self.end_task(|world| drop(world.fail_task())),
            Happening::BlockTask => self.end_task(|world| drop(world.block_task())),
            Happening::TimeOutTask => self.end_task(|world| drop(world.time_out_task())),
            Happening::LoseTask => self.end_task(|world| drop(world.lose_task())),
            Happening::Due => self.due(),
            Happening::Again => {
                if let Some(input) = self.last.clone() {
                    self.world.decide(input).ok();
                }
            }
            Happening::Crash => {
                self.world.crash();
                self.held = None;
            }
            other => {
                if let Some(input) = self.input(other) {
                    self.last = Some(input.clone());
                    self.world.decide(input).ok();
                }
            }
        }
        let run = &self.world.run;
        assert!(!run.open() || !run.resume_sources().is_empty(), "nothing resumes the run");
    }

    fn take_task(&mut self) {
        let start = self.world.next_start();
        if let Ok(took) = self.world.decide(Input::StartTask(start))
            && let abide_core::run::Reply::TaskGiven(given) = took.reply
        {
            self.held = Some(*given);
        }
    }

    /// Answers, and answers again, which must be refused.
    fn answer(&mut self) {
        let Some(given) = self.held.take() else { return };
        let completion = self.worker.turn(&self.world, &given);
        let input = Input::CompleteTask(Box::new(completion));
        let took = self.world.take(input.clone());
        if !matches!(took.reply, abide_core::run::Reply::TaskTaken { .. }) {
            self.worker.forget();
        }
        let again = self.world.refused(input);
        assert!(matches!(again, Refusal::StaleTask | Refusal::RunClosed));
        if took.decision.successor.is_some() {
            self.check();
            let next = self.world.successor(&took);
            *self = Self { world: next, ..Self::new(&self.program) };
        }
    }

    fn end_task(&mut self, end: fn(&mut World)) {
        if self.held.take().is_some() {
            end(&mut self.world);
        }
    }

    /// Goes to the next due time.
    fn due(&mut self) {
        let run = &self.world.run;
        let due = |key| Some((run.next_check_at(&key)?, key));
        let times = run.due_keys().into_iter().filter_map(due);
        let held_back = run.task_not_before(self.world.now);
        match times.min() {
            Some((at, timer)) if held_back.is_none_or(|held_back| at <= held_back) => {
                self.world.now = self.world.now.max(at);
                let input = Input::Due { timer };
                self.last = Some(input.clone());
                self.world.decide(input).ok();
            }
            _ => self.world.now = held_back.unwrap_or(self.world.now).max(self.world.now),
        }
        if !self.world.run.open() {
            self.held = None;
        }
    }

    /// The input that a happening means, if there is something that it can happen to.
    fn input(&mut self, happening: Happening) -> Option<Input> {
        let run = &self.world.run;
        let activity = |choice: u8| pick(run.activities.keys(), choice);
        Some(match happening {
            Happening::Signal(choice) => {
                let name = if choice.is_multiple_of(2) { "A" } else { "B" };
                let key = format!("key-{}", choice % 16);
                self.world.signal_input(name, (choice.is_multiple_of(3)).then_some(key.as_str()))
            }
            Happening::Update(choice) => self.update(choice),
            Happening::RequestCancel(choice) if choice.is_multiple_of(8) => {
                Input::RequestCancel(Default::default())
            }
            Happening::Pause if run.paused => Input::Unpause(Default::default()),
            Happening::Pause => Input::Pause(Default::default()),
            Happening::Repair => Input::Repair { identity: "operator".into() },
            Happening::MoveTimer(choice) => {
                let timer = pick(run.timers.keys(), choice)?;
                let later = Duration::from_secs(u64::from(choice % 9));
                World::move_input(timer.as_str(), self.world.now.saturating_add(later), None)
            }
            Happening::TakeActivity(choice) => Input::StartActivity(StartActivity {
                scheduled: activity(choice)?,
                session: "session".into(),
                identity: "worker".into(),
            }),
            Happening::EndActivity(choice) => self.end_activity(activity(choice)?, choice),
            Happening::LoseActivity(choice) => {
                let scheduled = activity(choice)?;
                Input::LoseAttempt { scheduled, start: run.activities[&scheduled].starts }
            }
            Happening::Heartbeat(choice) => {
                let scheduled = activity(choice)?;
                let details = payloads(&choice.to_string());
                let start = run.activities[&scheduled].starts;
                let room = choice.is_multiple_of(2);
                Input::Heartbeat(Heartbeat { scheduled, start, details, room })
            }
            Happening::Effect(choice) => {
                let number = pick(run.outbox.keys(), choice)?;
                let failed = EffectOutcome::Failed(DeliveryFailure::NotFound);
                let answer = if choice.is_multiple_of(4) { failed } else { EffectOutcome::Applied };
                Input::EffectAnswered { number, answer }
            }
            Happening::CloseChild(choice) => {
                self.close_child(pick(run.children.keys(), choice)?, choice)
            }
            _ => return None,
        })
    }

    fn update(&mut self, choice: u8) -> Input {
        self.updates += u64::from(!choice.is_multiple_of(4));
        let name = if choice.is_multiple_of(3) { "reject" } else { "set" };
        let update = format!("update-{}", self.updates).into();
        let wait_while_blocked = choice.is_multiple_of(2);
        Input::AdmitUpdate { update, request: request(name), wait_while_blocked }
    }

    fn end_activity(&self, scheduled: EventNumber, choice: u8) -> Input {
        let activity = &self.world.run.activities[&scheduled];
        let resolution = match choice % 3 {
            0 => Resolution::Failed(failure("boom")),
            1 if activity.cancel_requested => Resolution::Cancelled(Vec::new()),
            _ => Resolution::Completed(payloads("done")),
        };
        let start = activity.starts;
        Input::ResolveActivity(ResolveActivity { scheduled, start, resolution })
    }

    fn close_child(&self, initiated: EventNumber, choice: u8) -> Input {
        let run = self.world.run.children[&initiated].run;
        let retry_state = RetryState::PolicyNotSet;
        let outcome = match choice % 4 {
            0 => RunOutcome::Completed(payloads("done")),
            1 => RunOutcome::Failed { failure: failure("boom"), retry_state },
            2 => RunOutcome::TimedOut { retry_state },
            _ => RunOutcome::Cancelled(Vec::new()),
        };
        let closed = ChildClosed { initiated, first_run: run, run, outcome };
        Input::Deliver { source: other(), action: Action::ChildClosed(closed) }
    }

    fn check(&self) {
        self.worker.check(&self.world);
        self.world.check_every_snapshot();
        self.check_firings();
    }

    /// No timer fires twice, or after its end, unless code has armed it again.
    fn check_firings(&self) {
        let mut over = std::collections::BTreeMap::new();
        for event in self.world.events() {
            let (timer, started) = match event.body.fact {
                Fact::TimerFired(fired) => (fired.timer, fired.started),
                Fact::TimerCancelled(cancelled) => (cancelled.timer, cancelled.started),
                Fact::TimerRescheduled(moved) if moved.by == Mover::Code => {
                    over.retain(|_, timer| *timer != moved.timer);
                    continue;
                }
                _ => continue,
            };
            let before = over.insert(started, timer);
            assert_eq!(before, None, "the timer of event {started} ended twice");
        }
    }
}

fn pick<'a, T: Clone + 'a>(among: impl ExactSizeIterator<Item = &'a T>, choice: u8) -> Option<T> {
    let count = among.len();
    let index = usize::from(choice).checked_rem(count)?;
    let mut among = among;
    among.nth(index).cloned()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("A".to_owned()), Just("B".to_owned())]
}

fn timeout() -> impl Strategy<Value = Option<Duration>> {
    option::of((0..9_u64).prop_map(Duration::from_secs))
}

fn an_activity() -> impl Strategy<Value = Node> {
    let retry =
        option::of(any::<bool>().prop_map(|recorded| RetryPolicy { recorded, ..policy_of(3) }));
    let delivery = prop_oneof![Just(Delivery::AtLeastOnce), Just(Delivery::AtMostOnce)];
    (retry, delivery, any::<bool>()).prop_map(|(retry, delivery, beats)| {
        Node::Activity(Activity {
            activity_type: "work".into(),
            retry,
            delivery,
            start_to_close: Some(seconds(5)),
            heartbeat: beats.then_some(seconds(2)),
        })
    })
}

fn leaf() -> impl Strategy<Value = Node> {
    let child =
        |retry: Option<RetryPolicy>| Child { workflow_type: "child".into(), workflow: None, retry };
    let until = |(signal, at_least, timeout)| Node::WaitUntil {
        condition: Condition { key: Some("key".into()), fingerprint: Some("f".into()) },
        signal,
        at_least,
        timeout,
    };
    prop_oneof![
        4 => (name(), timeout()).prop_map(|(name, timeout)| Node::WaitSignal { name, timeout }),
        3 => (1..9_u64).prop_map(Node::sleep),
        3 => (name(), 1..3_u64, timeout()).prop_map(until),
        3 => an_activity(),
        1 => Just(Node::Child(child(None))),
        1 => Just(Node::Child(child(Some(policy_of(2))))),
        1 => name().prop_map(|name| Node::SignalExternal { workflow: "other".into(), name }),
        1 => Just(Node::CancelExternal { workflow: "other".into() }),
        1 => Just(Node::SideEffect),
        1 => Just(Node::Version { change: "change".into() }),
        3 => (1..9_u64).prop_map(|later| Node::Reschedule(seconds(later))),
        1 => Just(Node::ContinueAsNew { runs: 2 }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let node = leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(Node::Sequence),
            2 => vec(inner.clone(), 2..4).prop_map(Node::Join),
            2 => vec(inner, 2..3).prop_map(Node::Select),
        ]
    });
    let update_delay = option::of(Just(seconds(1)));
    let on_cancel = prop_oneof![Just(OnCancel::Close), Just(OnCancel::Ignore)];
    (vec(node, 1..5), on_cancel, update_delay).prop_map(|(steps, on_cancel, update_delay)| {
        Program { on_cancel, update_delay, ..Program::new(steps) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn log_and_replay_agree_whatever_happens(
        program in program(),
        happenings in vec(happening(), 1..120),
    ) {
        let mut play = Play::new(&program);
        for happening in happenings {
            play.happens(happening);
        }
        play.check();
    }
}
