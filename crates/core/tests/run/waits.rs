//! Condition waits: the server stores and shows them; the order of events decides who won.

use abide_core::{command::Ask, event::Fact, run::Liveness, time::Timestamp};

use crate::{build::*, world::World};

/// A run that waits for a condition until 10 seconds after its start.
fn waiting() -> World {
    World::after([open_wait("w", Some("t")), deadline("t", 10)])
}

#[test]
fn opening_writes_the_wait_and_then_its_deadline() {
    let world = waiting();
    assert_eq!(world.history()[4..], ["WaitOpened", "TimerStarted"]);
    let timer = &world.run.timers[&"t".into()];
    assert_eq!(timer.wait, Some("w".into()), "the two are shown as one wait");
    assert_eq!(world.run.waits[&"w".into()].since, at(0));
}

#[test]
fn without_deadline_there_is_no_timer() {
    let world = World::after([open_wait("w", None)]);
    assert_eq!(world.history()[4..], ["WaitOpened"]);
    assert_eq!(world.run.liveness(), Liveness::InputPending);
    assert!(world.run.due_keys().is_empty());
}

#[test]
fn when_the_predicate_wins_the_timer_is_cancelled_first() {
    let mut world = waiting();
    world.signal("paid");
    let names = world.task([cancel_timer("t"), Ask::SatisfyWait("w".into())]).names;
    assert_eq!(names[2..], ["TimerCancelled", "WaitSatisfied"]);
    assert!(world.run.waits.is_empty() && world.run.timers.is_empty());
}

#[test]
fn when_the_deadline_wins_the_next_task_says_so() {
    let mut world = waiting();
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["TimerFired", "TaskScheduled"]);
    assert!(world.run.waits.contains_key(&"w".into()));
    assert_eq!(world.task([Ask::TimeOutWait("w".into())]).names[2..], ["WaitTimedOut"]);
    assert!(world.run.waits.is_empty());
}

/// The firing is numbered after the signal that made the predicate true: it is ignored.
#[test]
fn if_the_firing_is_numbered_already_the_wait_is_satisfied_alone() {
    let mut world = waiting();
    world.signal("paid");
    world.go_to(10);
    world.fire("t");
    assert_eq!(world.task([Ask::SatisfyWait("w".into())]).names[2..], ["WaitSatisfied"]);
}

#[test]
fn if_the_firing_is_only_buffered_cancelling_removes_it() {
    let mut world = waiting();
    world.signal("paid");
    world.start_task();
    world.go_to(10);
    world.fire("t");
    let names = world.complete([cancel_timer("t"), Ask::SatisfyWait("w".into())]).names;
    assert_eq!(names[2..], ["TimerCancelled", "WaitSatisfied", "BufferReleased"]);
}

#[test]
fn a_wait_may_be_given_up() {
    let mut world = waiting();
    world.signal("stop");
    let names = world.task([cancel_timer("t"), Ask::CancelWait("w".into())]).names;
    assert_eq!(names[2..], ["TimerCancelled", "WaitCancelled"]);
    assert!(world.run.waits.is_empty());
}

/// So that lists need not look for the opening.
#[test]
fn key_and_fingerprint_stand_on_the_end_of_a_wait() {
    for (ask, name) in [
        (Ask::SatisfyWait("w".into()), "WaitSatisfied"),
        (Ask::TimeOutWait("w".into()), "WaitTimedOut"),
    ] {
        let mut world = World::after([open_wait("w", None)]);
        world.signal("go");
        world.task([ask]);
        let found = match world.fact(name) {
            Fact::WaitSatisfied(end) => (end.opened, end.condition),
            Fact::WaitTimedOut(end) => (end.opened, end.condition),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, (5, condition()));
    }
}

#[test]
fn the_deadline_of_a_wait_can_be_moved() {
    let mut world = waiting();
    world.move_timer("t", 50);
    assert_eq!(world.timer_due("t"), Some(at(50)));
    assert!(world.run.waits.contains_key(&"w".into()));
}

/// Only a signal wait is optional: a condition's deadline at the sentinel is an ordinary timer.
#[test]
fn a_condition_is_never_optional() {
    let Ask::StartTimer(mut spec) = deadline("t", 10) else { panic!() };
    spec.fire_at = Timestamp::NEVER;
    let mut world = World::after([open_wait("w", Some("t")), Ask::StartTimer(spec)]);
    assert_eq!(world.timer_due("t"), None);
    world.move_timer("t", 50);
    assert_eq!(world.timer_due("t"), Some(at(50)));
}
