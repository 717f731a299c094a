//! Inputs that come while a task is started: durable at once, numbered when it ends, judged again on
//! what the commands left.

use abide_core::{
    event::{Fact, TaskFailureCause},
    note::Note,
    run::{Input, Liveness, Refusal, Reply},
};

use crate::{build::*, world::World};

/// A run with a started task and an open timer that is due after 10 seconds.
fn running() -> World {
    let mut world = World::after([timer("t", 10)]);
    world.signal("first");
    world.start_task();
    world
}

/// What the last row dropped.
fn dropped(world: &World) -> Vec<String> {
    match world.last_note() {
        Note::BufferReleased { dropped } => dropped,
        other => panic!("nothing was released but {other:?}"),
    }
}

#[test]
fn an_input_during_a_task_is_a_note() {
    let mut world = running();
    assert_eq!(world.signal("go").names, ["InputBuffered"]);
    assert_eq!(world.request_cancel().names, ["InputBuffered"]);
    assert_eq!(world.run.buffer.len(), 2);
}

/// The task's end, the events of its commands, what was buffered, the next task.
#[test]
fn the_order_at_the_close_of_a_task() {
    let mut world = running();
    world.signal("go");
    world.request_cancel();
    let names = world.complete([timer("u", 60), activity("a")]).names;
    let expected = [
        "TaskStarted",
        "TaskCompleted",
        "TimerStarted",
        "ActivityScheduled",
        "SignalReceived",
        "RunCancelRequested",
        "TaskScheduled",
        "BufferReleased",
    ];
    assert_eq!(names, expected);
}

/// The body keeps its receive time; the event has the time of the close.
#[test]
fn a_buffered_body_is_numbered_unchanged() {
    let mut world = running();
    world.go_to(3);
    world.signal("go");
    let Note::InputBuffered(buffered) = world.last_note() else { panic!() };
    world.go_to(9);
    world.complete([]);
    let event = world.event("SignalReceived");
    assert_eq!(event.time, at(9));
    assert_eq!(event.body.stored(), buffered.stored());
    let Fact::SignalReceived(signal) = event.body.fact else { panic!() };
    assert_eq!(signal.received_at, at(3));
}

#[test]
fn a_firing_of_a_timer_that_code_cancelled_is_dropped() {
    let mut world = running();
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["InputBuffered"]);
    let names = world.complete([cancel_timer("t")]).names;
    assert_eq!(names, ["TaskStarted", "TaskCompleted", "TimerCancelled", "BufferReleased"]);
    assert_eq!(dropped(&world), ["TimerFired"]);
    assert!(world.run.timers.is_empty());
}

/// Code started another timer under the same id: the old firing is none of its.
#[test]
fn a_firing_is_not_taken_for_another_timer_of_the_same_id() {
    let mut world = running();
    world.go_to(10);
    world.fire("t");
    world.complete([cancel_timer("t"), timer("t", 10)]);
    assert_eq!(dropped(&world), ["TimerFired"]);
    assert_eq!(world.timer_due("t"), Some(at(10)));
}

#[test]
fn a_firing_before_the_moved_due_time_re_arms_the_timer() {
    let mut world = running();
    world.go_to(10);
    world.fire("t");
    assert_eq!(world.timer_due("t"), None);
    world.complete([move_timer("t", 90)]);
    assert_eq!(dropped(&world), ["TimerFired"]);
    assert_eq!(world.timer_due("t"), Some(at(90)));
}

#[test]
fn a_firing_of_a_timer_that_code_moved_earlier_stands() {
    let mut world = running();
    world.go_to(10);
    world.fire("t");
    let names = world.complete([move_timer("t", 5)]).names;
    assert_eq!(names[2..4], ["TimerRescheduled", "TimerFired"]);
}

#[test]
fn a_repeated_firing_is_not_due_while_the_first_is_buffered() {
    let mut world = running();
    world.go_to(10);
    world.fire("t");
    let again = world.fire("t");
    assert_eq!((again.reply, again.names.len()), (Reply::NotDue, 0));
}

/// The row moves although the event waits.
#[test]
fn an_outside_move_during_a_task_moves_the_due_time_at_once() {
    let mut world = running();
    assert_eq!(world.move_timer("t", 50).names, ["InputBuffered"]);
    assert_eq!(world.timer_due("t"), Some(at(50)));
    world.go_to(10);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    assert_eq!(world.complete([]).names[2..], ["TimerRescheduled", "BufferReleased"]);
    assert_eq!(world.timer_due("t"), Some(at(50)));
}

/// Moved and fired within one task: both are numbered, in order.
#[test]
fn a_move_and_its_firing_may_both_be_buffered() {
    let mut world = running();
    world.move_timer("t", 5);
    world.go_to(5);
    world.fire("t");
    let names = world.complete([]).names;
    assert_eq!(names[2..5], ["TimerRescheduled", "TimerFired", "TaskScheduled"]);
}

/// It schedules no task by itself, also from the buffer.
#[test]
fn a_buffered_move_schedules_no_task() {
    let mut world = running();
    world.move_timer("t", 50);
    world.complete([]);
    assert_eq!(world.run.liveness(), Liveness::TimerPending);
}

#[test]
fn a_move_of_a_timer_that_code_cancelled_is_dropped() {
    let mut world = running();
    world.move_timer("t", 50);
    world.complete([cancel_timer("t")]);
    assert_eq!(dropped(&world), ["TimerRescheduled"]);
}

/// The later one in history holds.
#[test]
fn an_outside_move_comes_after_a_move_by_code() {
    let mut world = running();
    world.move_timer("t", 50);
    world.complete([move_timer("t", 90)]);
    assert_eq!(world.timer_due("t"), Some(at(50)));
}

#[test]
fn a_buffered_timer_firing_can_not_be_moved() {
    let mut world = running();
    world.go_to(10);
    world.fire("t");
    let refusal = world.refused(World::move_input("t", at(50), None));
    assert_eq!(refusal.to_string(), "timer t has fired");
}

/// Repeats are recognised while the first is in the buffer.
#[test]
fn repeats_of_buffered_inputs_are_repeats() {
    let mut world = running();
    for input in [
        world.signal_input("go", Some("k")),
        World::move_input("t", at(50), Some("k")),
        Input::RequestCancel(Default::default()),
    ] {
        assert_eq!(world.take(input.clone()).reply, Reply::Done);
        let again = world.take(input);
        assert_eq!((again.reply, again.names.len()), (Reply::Repeat, 0));
    }
}

/// The marks of the buffer are in the log.
#[test]
fn repeats_of_buffered_inputs_are_repeats_after_a_crash() {
    let mut world = running();
    let input = world.signal_input("go", Some("k"));
    world.take(input.clone());
    world.crash();
    assert_eq!(world.take(input).reply, Reply::Repeat);
}

#[test]
fn a_close_with_unseen_inputs_is_refused() {
    let mut world = running();
    world.signal("go");
    let took = world.complete([complete_run()]);
    let message = "inputs arrived that the code has not seen".to_owned();
    assert_eq!(took.reply, Reply::TaskRefused { cause: TaskFailureCause::UnseenInput, message });
    let expected = ["TaskStarted", "TaskFailed", "SignalReceived", "TaskScheduled"];
    assert_eq!(took.names[..4], expected);
    assert!(world.run.open());
}

/// A move needs no answer from code.
#[test]
fn a_close_is_not_refused_for_what_code_need_not_see() {
    let mut world = running();
    world.move_timer("t", 50);
    assert_eq!(world.complete([complete_run()]).names.last().unwrap(), "RunCompleted");
}

/// Otherwise a steady stream of signals would keep the run open for ever.
#[test]
fn after_a_refused_close_signals_wait_for_the_redo() {
    let mut world = running();
    world.signal("go");
    world.complete([complete_run()]);
    world.start_task();
    let input = world.signal_input("late", None);
    assert_eq!(world.refused(input), Refusal::Busy);
    assert_eq!(world.refused(World::update_input("u")), Refusal::Busy);
    world.complete([complete_run()]);
    assert_eq!(world.run.liveness(), Liveness::Closed);
}

/// They are numbered before the redo starts, so it sees them.
#[test]
fn signals_are_taken_until_the_redo_starts() {
    let mut world = running();
    world.signal("go");
    world.complete([complete_run()]);
    assert_eq!(world.signal("in time").names, ["SignalReceived"]);
}

#[test]
fn signals_are_taken_again_when_the_redo_ends_without_a_close() {
    for ends in [|world: &mut World| world.complete([]), |world: &mut World| world.fail_task()] {
        let mut world = running();
        world.signal("go");
        world.complete([complete_run()]);
        world.start_task();
        ends(&mut world);
        world.signal("late");
        world.start_task();
        assert_eq!(world.signal("later").names, ["InputBuffered"]);
    }
}

/// Signals wait, timers keep their rows, answers and deliveries stay unacknowledged.
#[test]
fn a_full_buffer_takes_nothing_more() {
    let mut world = World::after([timer("t", 10), activity("a"), child("c")]);
    world.start_activity("a");
    world.signal("first");
    world.limits.buffered_inputs = 1;
    world.start_task();
    world.signal("go");
    world.go_to(3600);
    let completed = abide_core::run::Resolution::Completed(Vec::new());
    let scheduled = world.scheduled("a");
    let inputs = [
        world.signal_input("more", None),
        World::update_input("u"),
        World::move_input("t", at(4000), None),
        Input::Due { timer: abide_core::run::TimerKey::Timer("t".into()) },
        Input::Due { timer: abide_core::run::TimerKey::Activity(scheduled) },
        world.resolve_input("a", 1, completed),
        Input::RequestCancel(Default::default()),
        Input::Pause(Default::default()),
        Input::EffectAnswered { number: 1, answer: abide_core::effect::EffectOutcome::Applied },
    ];
    for input in inputs {
        assert_eq!(world.refused(input), Refusal::Busy);
    }
    world.complete([]);
    assert_eq!(world.fire("t").reply, Reply::Done);
}

/// Everything buffered becomes one log row, so bytes have a bound as well as the number of inputs.
#[test]
fn a_buffer_of_large_inputs_takes_nothing_more() {
    let mut world = running();
    world.limits.buffered_bytes = 10_000;
    let large = |world: &World, key: &str| {
        let mut input = world.signal_input(key, None);
        let Input::Signal(signal) = &mut input else { panic!("a signal") };
        signal.signal.input = vec![abide_core::payload::Payload::new(vec![7; 6_000])];
        input
    };
    for key in ["one", "two"] {
        let input = large(&world, key);
        world.take(input);
    }
    let more = world.signal_input("small", None);
    assert_eq!(world.refused(more), Refusal::Busy);
    world.complete([]);
    assert_eq!(world.signal("small").names, ["SignalReceived"]);
}

/// An empty payload has no bytes, and still takes memory.
#[test]
fn updates_that_code_has_not_judged_are_bounded_in_memory() {
    let mut world = running();
    world.limits.buffered_bytes = 10_000;
    let mut update = World::update_input("u");
    let Input::AdmitUpdate { request, .. } = &mut update else { panic!("an update") };
    request.input = vec![abide_core::payload::Payload::default(); 100];
    world.take(update);
    assert_eq!(world.refused(World::update_input("v")), Refusal::Busy);
}
