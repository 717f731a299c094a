//! Signals: taken once per key, never lost, bounded.

use abide_core::{
    event::Fact,
    payload::Extension,
    run::{Input, Refusal, Reply, Signal},
};

use crate::{build::*, world::World};

#[test]
fn a_signal_wakes_an_idle_run() {
    let mut world = World::after([]);
    assert_eq!(world.signal("go").names, ["SignalReceived", "TaskScheduled"]);
}

#[test]
fn a_gateway_may_keep_something_with_a_signal() {
    let mut world = World::new();
    let extension = Extension::from([("tag".to_owned(), "7".into())]);
    let Input::Signal(signal) = world.signal_input("go", None) else { panic!() };
    let signal = Signal { extension: extension.clone(), ..*signal };
    world.take(Input::Signal(Box::new(signal)));
    assert_eq!(world.event("SignalReceived").body.extension, extension);
}

#[test]
fn a_key_is_taken_once() {
    let mut world = World::new();
    let input = world.signal_input("go", Some("k"));
    assert_eq!(world.take(input.clone()).reply, Reply::Done);
    let again = world.take(input);
    assert_eq!((again.reply, again.names.len()), (Reply::Repeat, 0));
}

#[test]
fn signals_without_key_are_all_taken() {
    let mut world = World::new();
    world.signal("go");
    assert_eq!(world.signal("go").names, ["SignalReceived"]);
}

/// The caller whose answer was lost asks again.
#[test]
fn a_repeat_is_known_also_after_a_crash_and_after_the_close() {
    let mut world = World::new();
    let input = world.signal_input("go", Some("k"));
    world.take(input.clone());
    world.crash();
    assert_eq!(world.take(input.clone()).reply, Reply::Repeat);
    world.terminate();
    assert_eq!(world.take(input).reply, Reply::Repeat);
    let new = world.signal_input("go", Some("k2"));
    assert_eq!(world.refused(new).to_string(), "the run is closed");
}

/// A run without end must continue as new.
#[test]
fn a_run_takes_so_many_events_from_outside() {
    let mut world = World::after([timer("t", 10)]);
    world.limits.events = world.run.last_event + 2;
    world.signal("go");
    let inputs = [
        world.signal_input("more", None),
        World::update_input("u"),
        World::move_input("t", at(9), None),
    ];
    for input in inputs {
        let refusal = world.refused(input).to_string();
        assert_eq!(refusal, "events of the run would exceed the limit of 7");
    }
}

#[test]
fn buffered_signals_count_against_the_bound() {
    let mut world = World::after([]);
    world.limits.events = world.run.last_event + 3;
    world.signal("go");
    world.start_task();
    world.signal("go");
    let input = world.signal_input("more", None);
    assert!(matches!(world.refused(input), Refusal::Limit(_)));
}

/// A reserve above the bound is for internal events and the close.
#[test]
fn timers_and_cancel_requests_pass_the_bound() {
    let mut world = World::after([timer("t", 10)]);
    world.limits.events = 1;
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["TimerFired", "TaskScheduled"]);
    assert_eq!(world.request_cancel().names, ["RunCancelRequested"]);
    assert_eq!(world.task([complete_run()]).names.last().unwrap(), "RunCompleted");
}

#[test]
fn a_cancel_request_is_taken_once() {
    let mut world = World::after([]);
    assert_eq!(world.request_cancel().names, ["RunCancelRequested", "TaskScheduled"]);
    assert_eq!(world.request_cancel().reply, Reply::Repeat);
    assert!(world.run.cancel_requested);
}

#[test]
fn receive_times_stand_in_the_body() {
    let mut world = World::after([]);
    world.go_to(5);
    world.signal("go");
    let Fact::SignalReceived(signal) = world.fact("SignalReceived") else { panic!() };
    assert_eq!(signal.received_at, at(5));
}
