//! A timer that fired before a task is moved by the code of that task: the firing is void, and the timer
//! is armed again. Only that task can do so.

use abide_core::{
    command::Ask,
    event::{Fact, Guards, TaskFailureCause, TimerSpec, WaitDetails},
    run::{Refusal, Reply, WaitKey},
};

use crate::{
    build::*,
    world::{Took, World},
};

/// A sleep until 10 that has fired after a signal, and no task has seen either.
fn fired() -> World {
    let mut world = World::after([timer("t", 10)]);
    world.signal("more time");
    world.go_to(10);
    world.fire("t");
    world
}

fn no_such_timer(took: &Took) -> bool {
    let Reply::TaskRefused { cause: TaskFailureCause::BadCommand, message } = &took.reply else {
        return false;
    };
    message.contains("there is no open timer t")
}

#[test]
fn the_task_that_sees_a_firing_can_still_move_the_timer() {
    let mut world = fired();
    assert_eq!(world.timer_due("t"), None, "it does not fire again by itself");
    assert_eq!(world.task([move_timer("t", 60)]).names[2..], ["TimerRescheduled"]);
    assert_eq!(world.timer_due("t"), Some(at(60)));
    world.go_to(59);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    world.go_to(60);
    assert_eq!(world.fire("t").names, ["TimerFired", "TaskScheduled"]);
    let Fact::TimerFired(again) = world.events()[world.events().len() - 2].body.fact.clone() else {
        panic!()
    };
    assert_eq!((again.started, again.fire_at), (5, at(60)), "it is the timer that it was");
}

#[test]
fn a_timer_that_is_armed_again_keeps_what_it_was_asked_for() {
    let guards = Guards { not_after: Some(at(90)), max_extensions: Some(1) };
    let Ask::StartTimer(spec) = guarded("t", 10, guards) else { panic!() };
    let details = Some(WaitDetails { subject: "an order".into(), ..WaitDetails::default() });
    let mut world = World::after([Ask::StartTimer(TimerSpec { details, ..spec })]);
    world.move_timer("t", 20);
    let before = world.run.shown_wait(&WaitKey::Timer("t".into())).unwrap();
    world.go_to(20);
    world.fire("t");
    world.task([move_timer("t", 60)]);
    let after = world.run.shown_wait(&WaitKey::Timer("t".into())).unwrap();
    assert_eq!((after.until, after.since, after.moves), (at(60), before.since, before.moves));
    assert_eq!((after.guards, after.details), (before.guards, before.details));
    let refused = world.refused(World::move_input("t", at(70), None));
    assert_eq!(refused, Refusal::TooManyMoves { limit: 1 }, "no moves were won by it");
}

#[test]
fn the_deadline_of_a_condition_is_armed_again_and_shown_as_one_wait() {
    let mut world = World::after([open_wait("w", Some("t")), deadline("t", 10)]);
    let wait = WaitKey::Condition("w".into());
    world.go_to(10);
    world.fire("t");
    let passed = world.run.shown_wait(&wait).unwrap();
    assert_eq!((passed.until, passed.timer), (at(10), None), "it shows the deadline that came");
    world.task([move_timer("t", 60)]);
    let open = world.run.shown_wait(&wait).unwrap();
    assert_eq!((open.until, open.timer), (at(60), Some("t".into())));
    assert_eq!(world.run.shown_waits().len(), 1);
    world.take(World::move_input("t", at(70), None));
    world.go_to(70);
    world.fire("t");
    assert_eq!(world.task([Ask::TimeOutWait("w".into())]).names[2..], ["WaitTimedOut"]);
}

#[test]
fn a_timer_that_is_armed_again_can_be_moved_and_cancelled_in_the_same_task() {
    let mut world = fired();
    let asks = [move_timer("t", 60), move_timer("t", 70), cancel_timer("t")];
    let names = world.task(asks).names;
    assert_eq!(names[2..], ["TimerRescheduled", "TimerRescheduled", "TimerCancelled"]);
    assert!(world.run.timers.is_empty());
    let mut world = fired();
    let asks = [move_timer("t", 60), cancel_timer("t"), move_timer("t", 70)];
    assert!(no_such_timer(&world.task(asks)), "what code has cancelled is over");
}

#[test]
fn a_timer_that_fired_cannot_be_cancelled_without_a_move() {
    let mut world = fired();
    assert!(no_such_timer(&world.task([cancel_timer("t")])));
}

#[test]
fn an_id_that_is_used_again_belongs_to_the_new_timer() {
    let mut world = fired();
    world.task([timer("t", 30), move_timer("t", 40)]);
    assert_eq!(world.timer_due("t"), Some(at(40)));
    assert_eq!(world.run.timers[&"t".into()].since, at(10));
}

#[test]
fn only_the_task_that_sees_the_firing_can_move_the_timer() {
    let mut world = fired();
    world.task([]);
    world.signal("late");
    assert!(no_such_timer(&world.task([move_timer("t", 60)])));
}

#[test]
fn what_fails_times_out_or_crashes_before_that_task_leaves_the_move_possible() {
    let troubles: [fn(&mut World); 5] = [
        |world| drop(world.fail_task()),
        |world| drop(world.time_out_task()),
        |world| drop(world.lose_task()),
        |world| drop(world.block_task()),
        |world| drop(world.crash()),
    ];
    for trouble in troubles {
        let mut world = fired();
        world.start_task();
        trouble(&mut world);
        world.repair();
        world.crash();
        world.signal("more");
        world.pass(30);
        world.task([move_timer("t", 60)]);
        assert_eq!(world.timer_due("t"), Some(at(60)));
    }
}

#[test]
fn a_firing_that_was_buffered_can_be_overtaken_by_the_next_task() {
    let mut world = World::after([timer("t", 10)]);
    world.signal("a");
    world.start_task();
    world.signal("more time");
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["InputBuffered"]);
    world.complete([]);
    world.task([move_timer("t", 60)]);
    assert_eq!(world.timer_due("t"), Some(at(60)));
    assert!(!world.run.timers[&"t".into()].firing);
}

#[test]
fn from_outside_a_timer_that_fired_cannot_be_moved() {
    let mut world = fired();
    let moved = || World::move_input("t", at(60), None);
    assert_eq!(world.refused(moved()), Refusal::TimerFired("t".into()));
    world.task([]);
    assert_eq!(world.refused(moved()), Refusal::UnknownTimer("t".into()));
}

#[test]
fn a_move_to_a_time_that_has_passed_lets_the_timer_fire_again_at_once() {
    let mut world = fired();
    world.go_to(90);
    world.task([move_timer("t", 60)]);
    assert_eq!(world.fire("t").reply, Reply::Done);
}

#[test]
fn what_is_armed_again_has_room_also_at_the_limit_of_timers() {
    let mut world = fired();
    world.limits.pending_timers = 1;
    let took = world.task([timer("u", 30), move_timer("t", 60)]);
    assert!(matches!(took.reply, Reply::TaskTaken { .. }), "{:?}", took.reply);
    assert_eq!(world.run.timers.len(), 2);
}

#[test]
fn a_run_that_has_seen_its_firings_remembers_none() {
    let mut world = fired();
    assert_eq!(world.run.fired.len(), 1);
    world.task([]);
    assert_eq!(world.run.fired, []);
    let mut world = fired();
    world.terminate();
    assert_eq!(world.run.fired, []);
}
