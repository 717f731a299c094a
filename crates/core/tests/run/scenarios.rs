//! A scenario for each row of the table of waits: a program, and what happens to it.

use abide_core::{
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome},
    event::Fact,
    retry::{RetryPolicy, RetryState},
    run::StartRun,
};
use abide_program::{Activity, Child, Node, Program};

use crate::{
    build::*,
    worker::Worker,
    world::{World, start_run},
};

/// A program and what happens to it.
pub(crate) struct Scenario {
    /// The name of its file.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    happens: fn(&mut World, &mut Worker),
}

impl Scenario {
    fn new(
        name: &'static str,
        steps: impl Into<Vec<Node>>,
        happens: fn(&mut World, &mut Worker),
    ) -> Self {
        Self { name, program: Program::new(steps), happens }
    }

    /// Lets it happen, until the program is over.
    pub(crate) fn play(&self) -> (World, Worker) {
        let mut world = World::begin(StartRun { identity: "client".into(), ..start_run() });
        let mut worker = Worker::new(&self.program);
        (self.happens)(&mut world, &mut worker);
        worker.drain(&mut world);
        assert!(!world.run.open(), "{} does not end: {:?}", self.name, world.history());
        (world, worker)
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Scenario> {
    let groups = [sleeps(), signals(), conditions(), condition_races(), retries()];
    groups.into_iter().flatten().collect()
}

/// Histories that older versions wrote, by the names of their files, and the programs that must still
/// fit them. The first one has no attempt numbers on recorded retries.
pub(crate) fn older() -> [(&'static str, Program); 1] {
    [("activity-retry-recorded", Program::new(retried_activity(true)))]
}

/// Runs the tasks there are, then goes to a moment at which a timer is due.
fn until_due(world: &mut World, worker: &mut Worker, moment: u64, timer: &str) {
    worker.drain(world);
    world.go_to(moment);
    world.fire(timer);
}

/// Runs the tasks there are, then goes to a moment at which a signal comes.
fn until_signal(world: &mut World, worker: &mut Worker, moment: u64, name: &str) {
    worker.drain(world);
    world.go_to(moment);
    world.signal(name);
}

/// A sleep that a signal moves to 100 seconds later.
fn movable_sleep() -> [Node; 1] {
    let moves = vec![Node::signal("later"), Node::Reschedule(seconds(100))];
    [Node::Join(vec![Node::sleep(60), Node::Sequence(moves)])]
}

fn sleeps() -> Vec<Scenario> {
    vec![
        Scenario::new("sleep-fires", [Node::sleep(60)], |world, worker| {
            until_due(world, worker, 60, "timer-1");
        }),
        Scenario::new(
            "sleep-cancelled",
            [Node::Select(vec![Node::sleep(60), Node::signal("stop")])],
            |world, worker| until_signal(world, worker, 10, "stop"),
        ),
        Scenario::new("sleep-moved", movable_sleep(), |world, worker| {
            until_signal(world, worker, 10, "later");
            worker.drain(world);
            world.move_timer("timer-1", 90);
            until_due(world, worker, 90, "timer-1");
        }),
        Scenario::new("sleep-firing-overtaken", movable_sleep(), |world, worker| {
            // No worker is there from the signal until after the firing.
            until_signal(world, worker, 10, "later");
            world.go_to(60);
            world.fire("timer-1");
            world.go_to(61);
            until_due(world, worker, 161, "timer-1");
        }),
    ]
}

fn signals() -> Vec<Scenario> {
    let within = |timeout| [Node::signal_within("approve", seconds(timeout))];
    vec![
        Scenario::new("signal-wins", within(60), |world, worker| {
            until_signal(world, worker, 10, "approve");
        }),
        Scenario::new(
            "signal-deadline-wins",
            [Node::signal_within("approve", seconds(60)), Node::sleep(5), Node::signal("approve")],
            |world, worker| {
                until_due(world, worker, 60, "timer-1");
                // It came too late for the first wait and stays readable for the next.
                until_signal(world, worker, 61, "approve");
                until_due(world, worker, 65, "timer-2");
            },
        ),
        Scenario::new("signal-without-deadline", [Node::signal("approve")], |world, worker| {
            until_signal(world, worker, 10, "approve");
        }),
        Scenario::new("signal-of-any-name", [Node::signal("")], |world, worker| {
            until_signal(world, worker, 10, "whatever");
        }),
        Scenario::new("signal-zero-timeout", within(0), |_, _| {}),
        Scenario::new("signal-already-buffered", within(60), |world, _| {
            world.signal("approve");
        }),
    ]
}

/// A wait until two payments were received.
fn until_paid(timeout: Option<u64>) -> [Node; 1] {
    let timeout = timeout.map(seconds);
    let (condition, signal) = (condition(), "payment".into());
    [Node::WaitUntil { condition, signal, at_least: 2, timeout }]
}

fn conditions() -> Vec<Scenario> {
    vec![
        Scenario::new("condition-predicate-wins", until_paid(Some(60)), |world, worker| {
            until_signal(world, worker, 10, "payment");
            until_signal(world, worker, 20, "payment");
        }),
        Scenario::new("condition-deadline-wins", until_paid(Some(60)), |world, worker| {
            until_signal(world, worker, 10, "payment");
            until_due(world, worker, 60, "timer-1");
        }),
        Scenario::new("condition-without-deadline", until_paid(None), |world, worker| {
            until_signal(world, worker, 10, "payment");
            until_signal(world, worker, 20, "payment");
        }),
        Scenario::new("condition-zero-timeout", until_paid(Some(0)), |_, _| {}),
        Scenario::new("condition-true-at-once", until_paid(Some(60)), |world, _| {
            world.signal("payment");
            world.signal("payment");
        }),
    ]
}

fn condition_races() -> Vec<Scenario> {
    let [until_paid_first] = until_paid(Some(60));
    let then_sleep = [until_paid_first, Node::sleep(5)];
    vec![
        Scenario::new("condition-firing-ignored", until_paid(Some(60)), |world, worker| {
            until_signal(world, worker, 10, "payment");
            until_signal(world, worker, 59, "payment");
            world.go_to(60);
            world.fire("timer-1");
        }),
        Scenario::new("condition-firing-removed", then_sleep, |world, worker| {
            until_signal(world, worker, 10, "payment");
            until_signal(world, worker, 59, "payment");
            let given = world.start_task();
            world.go_to(60);
            world.fire("timer-1");
            worker.answer(world, &given);
            until_due(world, worker, 65, "timer-2");
        }),
    ]
}

fn retried_activity(recorded: bool) -> [Node; 1] {
    let retry = Some(RetryPolicy { recorded, ..policy_of(3) });
    let (activity_type, start_to_close) = ("charge".into(), Some(seconds(30)));
    [Node::Activity(Activity { activity_type, retry, start_to_close, ..Activity::default() })]
}

fn retries() -> Vec<Scenario> {
    let retry = Some(policy_of(3));
    let child = Child { workflow_type: "ship".into(), retry, ..Child::default() };
    vec![
        Scenario::new("activity-retry-on-the-server", retried_activity(false), |world, worker| {
            worker.drain(world);
            world.start_activity("activity-1");
            world.go_to(5);
            world.fail_activity("activity-1");
            world.go_to(6);
            world.activity_due("activity-1");
            world.start_activity("activity-1");
            world.complete_activity("activity-1");
        }),
        Scenario::new("activity-retry-counted", retried_activity(true), |world, worker| {
            worker.drain(world);
            world.start_activity("activity-1");
            world.go_to(5);
            world.fail_activity("activity-1");
            until_due(world, worker, 6, "timer-1");
            worker.drain(world);
            world.start_activity("activity-2");
            world.complete_activity("activity-2");
        }),
        Scenario::new("child-retry-recorded", [Node::Child(child)], |world, worker| {
            worker.drain(world);
            world.answer(1, EffectOutcome::Applied);
            worker.drain(world);
            world.go_to(5);
            let (failure, retry_state) = (failure("boom"), RetryState::PolicyNotSet);
            close_child(world, RunOutcome::Failed { failure, retry_state });
            until_due(world, worker, 6, "timer-1");
            worker.drain(world);
            world.answer(2, EffectOutcome::Applied);
            close_child(world, RunOutcome::Completed(payloads("shipped")));
        }),
    ]
}

/// The last child closes.
fn close_child(world: &mut World, outcome: RunOutcome) {
    let initiated = world.event("ChildInitiated");
    let Fact::ChildInitiated(child) = initiated.body.fact else { panic!("no child") };
    let (first_run, run) = (child.run, child.run);
    let closed = ChildClosed { initiated: initiated.number, first_run, run, outcome };
    world.deliver(Action::ChildClosed(closed));
}
