//! The thirteen tests that every implementation of timer origins must pass: what each kind of wait
//! writes, and how histories from before optional timers are replayed.

use std::time::Duration;

use abide_core::{
    command::{Ask, Command},
    event::{ActivityFailed, ChildCompleted, ChildFailed, Fact, Origin, TimerSpec},
    failure::Failure,
    retry::{RetryPolicy, RetryState},
    time::Timestamp,
};
use abide_program::{Activity, Child, Node, Program};

use super::history::{History, at, run};

/// The timers that the open task at the end starts.
fn timers(history: &History, program: &Program) -> Vec<TimerSpec> {
    let timer = |command: Command| match command.ask {
        Ask::StartTimer(spec) => Some(spec),
        _ => None,
    };
    history.turn(program).commands.into_iter().filter_map(timer).collect()
}

fn origins(history: &History, program: &Program) -> Vec<Option<Origin>> {
    timers(history, program).into_iter().map(|timer| timer.origin).collect()
}

fn external_event(name: &str) -> Option<Origin> {
    Some(Origin::ExternalEvent { name: name.into() })
}

/// The run has just begun, and code sleeps.
#[test]
fn timer_origin_01_a_sleep_is_an_explicit_timer() {
    let program = Program::new([Node::sleep(5)]);
    assert_eq!(origins(&History::new().open_task(), &program), [Some(Origin::CreateTimer)]);
}

/// The run has just begun, and code waits for a signal for at most five seconds.
#[test]
fn timer_origin_02_a_signal_wait_with_deadline_names_the_signal() {
    let program = Program::new([Node::signal_within("myEvent", Duration::from_secs(5))]);
    let timer = timers(&History::new().open_task(), &program).remove(0);
    assert_eq!((timer.origin, timer.fire_at), (external_event("myEvent"), at(3 + 5)));
}

fn retried() -> RetryPolicy {
    RetryPolicy { recorded: true, maximum_attempts: 3, ..RetryPolicy::default() }
}

fn retried_activity() -> Program {
    let activity_type = "charge".into();
    let retry = Some(retried());
    Program::new([Node::Activity(Activity { activity_type, retry, ..Activity::default() })])
}

fn activity_failed(history: History, activity: &str) -> History {
    let scheduled = history.scheduled(activity);
    history.add(ActivityFailed { scheduled, ..ActivityFailed::default() })
}

/// The first attempt of an activity failed.
#[test]
fn timer_origin_03_an_activity_retry_names_the_execution() {
    let history = History::new().task().activity("activity-1", "charge");
    let history = activity_failed(history, "activity-1").open_task();
    let execution = run().execution_id(5);
    assert_eq!(origins(&history, &retried_activity()), [Some(Origin::ActivityRetry { execution })]);
}

/// Two attempts of an activity failed: the second has another id and another execution of its own.
#[test]
fn timer_origin_04_the_execution_is_that_of_the_first_attempt() {
    let execution = run().execution_id(5);
    let origin = Some(Origin::ActivityRetry { execution });
    let history = History::new().task().activity("activity-1", "charge");
    let history = activity_failed(history, "activity-1").task().timer("timer-1", 1, origin.clone());
    let history = history.fired("timer-1").task().activity("activity-2", "charge");
    let history = activity_failed(history, "activity-2").open_task();
    assert_eq!(origins(&history, &retried_activity()), [origin]);
}

fn retried_child() -> Program {
    let retry = Some(retried());
    Program::new([Node::Child(Child { workflow_type: "ship".into(), workflow: None, retry })])
}

fn child_failed(history: History) -> History {
    let initiated = history.last(|fact| matches!(fact, Fact::ChildInitiated(_)));
    let failure = Failure::default();
    let retry_state = RetryState::PolicyNotSet;
    history.add(ChildFailed { initiated, run: run(), failure, retry_state })
}

/// The first child failed.
#[test]
fn timer_origin_05_a_child_retry_names_the_child() {
    let history = History::new().task().child("order/child-1", "ship");
    let history = child_failed(history).open_task();
    let origin = Origin::ChildWorkflowRetry { workflow: "order/child-1".into() };
    assert_eq!(origins(&history, &retried_child()), [Some(origin)]);
}

/// Two children failed: the second has another workflow id.
#[test]
fn timer_origin_06_the_child_is_the_first_one() {
    let origin = Some(Origin::ChildWorkflowRetry { workflow: "order/child-1".into() });
    let history = History::new().task().child("order/child-1", "ship");
    let history = child_failed(history).task().timer("timer-1", 1, origin.clone());
    let history = history.fired("timer-1").task().child("order/child-1-attempt-2", "ship");
    assert_eq!(origins(&child_failed(history).open_task(), &retried_child()), [origin]);
}

/// The run has just begun, and code waits for a signal without deadline.
#[test]
fn timer_origin_07_a_signal_wait_without_deadline_never_fires() {
    let program = Program::new([Node::signal("myEvent")]);
    let timer = timers(&History::new().open_task(), &program).remove(0);
    assert_eq!((timer.origin, timer.fire_at), (external_event("myEvent"), Timestamp::NEVER));
}

/// The run has just begun, and code looks whether a signal is there.
#[test]
fn timer_origin_08_a_signal_wait_of_no_time_starts_no_timer() {
    let program = Program::new([Node::signal_within("myEvent", Duration::ZERO)]);
    let history = History::new().open_task();
    assert_eq!(history.asks(&program), ["RunCompleted myEvent timed out"]);
}

/// History has the optional timer of the wait, and then the signal.
#[test]
fn timer_origin_09_a_recorded_optional_timer_is_matched() {
    let program = Program::new([Node::signal("myEvent")]);
    let history = History::new().old_task().optional("signal-1", "myEvent");
    let history = history.signal("myEvent", "yes").open_task();
    assert_eq!(history.asks(&program), ["TimerCancelled signal-1", "RunCompleted myEvent=yes"]);
}

/// History has a signal and an activity, and no timer for the wait between them.
#[test]
fn timer_origin_10_an_activity_stands_where_code_has_the_optional_timer() {
    let program = Program::new([Node::signal("myEvent"), Node::activity("A")]);
    let history = History::new().signal("myEvent", "yes").old_task().activity("activity-1", "A");
    let history = history.activity_completed("activity-1", "done").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted myEvent=yes;A=done"]);
}

/// The same, but the run waited in one task and got the signal in the next.
#[test]
fn timer_origin_10_in_two_tasks() {
    let program = Program::new([Node::signal("myEvent"), Node::activity("A")]);
    let history = History::new().old_task().signal("myEvent", "yes").old_task();
    let history = history.activity("activity-1", "A").activity_completed("activity-1", "done");
    assert_eq!(history.open_task().asks(&program), ["RunCompleted myEvent=yes;A=done"]);
}

/// History has a signal and a child, and no timer for the wait between them.
#[test]
fn timer_origin_11_a_child_stands_where_code_has_the_optional_timer() {
    let child = Child { workflow_type: "C".into(), workflow: Some("child-1".into()), retry: None };
    let program = Program::new([Node::signal("myEvent"), Node::Child(child)]);
    let history = History::new().signal("myEvent", "yes").old_task().child("child-1", "C");
    let initiated = history.next() - 1;
    let history = history.add(ChildCompleted { initiated, run: run(), result: Vec::new() });
    assert_eq!(history.open_task().asks(&program), ["RunCompleted myEvent=yes;C="]);
}

/// History has a signal and a sleep, and no timer for the wait between them.
#[test]
fn timer_origin_12_a_sleep_stands_where_code_has_the_optional_timer() {
    let program = Program::new([Node::signal("myEvent"), Node::sleep(5)]);
    let history = History::new().signal("myEvent", "yes").old_task().sleep("timer-1", 5);
    let history = history.fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted myEvent=yes;slept"]);
}

/// The same, but the old code did not even record why the timer exists.
#[test]
fn timer_origin_12_without_origin() {
    let program = Program::new([Node::signal("myEvent"), Node::sleep(5)]);
    let history = History::new().signal("myEvent", "yes").old_task().timer("timer-1", 5, None);
    let history = history.fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted myEvent=yes;slept"]);
}

/// History has two signals and two activities, and no timer for either wait.
#[test]
fn timer_origin_13_two_optional_timers_are_absent() {
    let program = Program::new([
        Node::signal("A"),
        Node::activity("ActA"),
        Node::signal("B"),
        Node::activity("ActB"),
    ]);
    let history = History::new().signal("A", "1").old_task().activity("activity-1", "ActA");
    let history = history.activity_completed("activity-1", "a").old_task().signal("B", "2");
    let history = history.old_task().activity("activity-2", "ActB");
    let history = history.activity_completed("activity-2", "b").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted A=1;ActA=a;B=2;ActB=b"]);
}
