//! Timers: exact, movable in place, with an origin that says why they exist.

use abide_core::{
    command::Ask,
    digest::Digest,
    event::{Fact, Guards, Mover, Origin},
    list::WaitKind,
    run::{Input, Liveness, Refusal, Reply, TimerKey},
    time::Timestamp,
};

use crate::{build::*, world::World};

/// A run that sleeps until 10 seconds after its start.
fn sleeping() -> World {
    World::after([timer("t", 10)])
}

/// Why a move to this many seconds after the start is refused.
fn refusal(world: &mut World, due: u64) -> String {
    world.refused(World::move_input("t", at(due), None)).to_string()
}

#[test]
fn a_timer_fires_when_it_is_due_and_wakes_code() {
    let mut world = sleeping();
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["TimerFired", "TaskScheduled"]);
    let Fact::TimerFired(fired) = world.fact("TimerFired") else { panic!() };
    assert_eq!((fired.started, fired.fire_at), (5, at(10)));
    assert!(world.run.timers.is_empty());
}

/// A due entry is a hint: the run decides.
#[test]
fn nothing_fires_early_or_twice() {
    let mut world = sleeping();
    world.now = Timestamp::new(at(9).seconds(), 999_999_999).unwrap();
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    world.go_to(10);
    assert_eq!(world.fire("t").reply, Reply::Done);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    assert_eq!(world.fire("never started").reply, Reply::NotDue);
}

#[test]
fn a_buffered_firing_is_not_early_although_the_clock_was_set_back() {
    let mut world = sleeping();
    world.signal("go");
    world.start_task();
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["InputBuffered"]);
    world.now = at(4);
    world.crash();
    assert_eq!(world.event("TimerFired").time, at(10));
}

#[test]
fn a_timer_in_the_past_is_due_at_once() {
    let mut world = World::new();
    world.go_to(60);
    world.task([timer("t", 10)]);
    assert_eq!(world.fire("t").reply, Reply::Done);
}

#[test]
fn a_cancelled_timer_is_gone() {
    let mut world = sleeping();
    world.signal("stop");
    assert_eq!(world.task([cancel_timer("t")]).names[2..], ["TimerCancelled"]);
    world.go_to(10);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
}

#[test]
fn a_timer_may_be_started_and_cancelled_in_one_task() {
    let mut world = World::new();
    let names = world.task([timer("t", 10), cancel_timer("t"), timer("t", 20)]).names;
    assert_eq!(names[2..], ["TimerStarted", "TimerCancelled", "TimerStarted"]);
    assert_eq!(world.timer_due("t"), Some(at(20)));
}

#[test]
fn every_origin_is_kept() {
    let origins = [
        Origin::CreateTimer,
        Origin::ExternalEvent { name: "approve".into() },
        Origin::Condition { key: Some("paid".into()), fingerprint: None },
        Origin::ActivityRetry { execution: "run:5".into() },
        Origin::ChildWorkflowRetry { workflow: "order/child-1".into() },
    ];
    for origin in origins {
        let spec = timer_spec("t", at(10), Some(origin.clone()));
        let mut world = World::after([Ask::StartTimer(spec)]);
        let Fact::TimerStarted(started) = world.last_fact() else { panic!() };
        assert_eq!(started.spec.origin, Some(origin));
        world.go_to(10);
        assert_eq!(world.fire("t").names[0], "TimerFired");
    }
}

/// The sentinel has no row in the due index.
#[test]
fn the_sentinel_is_never_due() {
    let mut world = World::after([endless("t", "approve")]);
    assert_eq!(world.timer_due("t"), None);
    assert_eq!(world.run.due_keys(), []);
    world.now = Timestamp::NEVER;
    assert_eq!(world.fire("t").reply, Reply::NotDue);
}

/// History says who and to when; code sees it with the next task.
#[test]
fn a_move_from_outside_is_one_event_and_no_task() {
    let mut world = sleeping();
    world.go_to(3);
    assert_eq!(world.move_timer("t", 50).names, ["TimerRescheduled"]);
    assert_eq!(world.timer_due("t"), Some(at(50)));
    assert_eq!(world.run.liveness(), Liveness::TimerPending);
    let Fact::TimerRescheduled(moved) = world.last_fact() else { panic!() };
    let by = Mover::Outside {
        identity: "operator".into(),
        key: None,
        received_at: at(3),
        asked: Digest::UNKNOWN,
    };
    assert_eq!((moved.fire_at, moved.by), (at(50), by));
}

#[test]
fn a_moved_timer_fires_at_its_new_time_only() {
    let mut world = sleeping();
    world.move_timer("t", 50);
    world.go_to(10);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    world.go_to(50);
    assert_eq!(world.fire("t").reply, Reply::Done);
}

#[test]
fn a_timer_may_be_moved_to_the_present() {
    let mut world = sleeping();
    world.go_to(4);
    world.move_timer("t", 4);
    assert_eq!(world.fire("t").reply, Reply::Done);
}

#[test]
fn a_repeated_move_is_a_repeat_also_after_more_moves() {
    let mut world = sleeping();
    let first = World::move_input("t", at(50), Some("k"));
    world.take(first.clone());
    world.move_timer("t", 60);
    world.crash();
    assert_eq!(world.take(first).reply, Reply::Repeat);
    assert_eq!(world.timer_due("t"), Some(at(60)));
}

#[test]
fn an_unknown_timer_can_not_be_moved() {
    let mut world = World::after([]);
    assert_eq!(refusal(&mut world, 50), "there is no open timer t");
}

#[test]
fn a_timer_can_not_be_moved_into_the_past() {
    let mut world = sleeping();
    world.go_to(5);
    let expected =
        "the new due time 2027-01-15T08:00:04Z is in the past: it is 2027-01-15T08:00:05Z";
    assert_eq!(refusal(&mut world, 4), expected);
}

#[test]
fn a_timer_can_not_be_moved_past_its_limit() {
    let guards = Guards { not_after: Some(at(20)), max_extensions: None };
    let mut world = World::after([guarded("t", 10, guards)]);
    let expected = "the new due time 2027-01-15T08:00:21Z is later than 2027-01-15T08:00:20Z, the latest \
                    that the timer allows";
    assert_eq!(refusal(&mut world, 21), expected);
    assert_eq!(world.move_timer("t", 20).reply, Reply::Done);
}

#[test]
fn a_timer_can_be_moved_as_often_as_it_allows() {
    let guards = Guards { not_after: None, max_extensions: Some(2) };
    let mut world = World::after([guarded("t", 10, guards)]);
    world.move_timer("t", 20);
    world.move_timer("t", 30);
    let expected = "the timer has been rescheduled 2 times, the maximum that it allows";
    assert_eq!(refusal(&mut world, 40), expected);
}

#[test]
fn moves_in_the_buffer_count() {
    let guards = Guards { not_after: None, max_extensions: Some(2) };
    let mut world = World::after([guarded("t", 10, guards)]);
    world.move_timer("t", 20);
    world.signal("go");
    world.start_task();
    world.move_timer("t", 30);
    assert_eq!(
        world.refused(World::move_input("t", at(40), None)),
        Refusal::TooManyMoves { limit: 2 }
    );
    world.complete([]);
    assert_eq!(
        world.refused(World::move_input("t", at(40), None)),
        Refusal::TooManyMoves { limit: 2 }
    );
}

#[test]
fn a_wait_without_deadline_can_not_be_given_one() {
    let mut world = World::after([endless("t", "approve")]);
    let expected = "timer t belongs to a wait without deadline, which cannot be rescheduled";
    assert_eq!(refusal(&mut world, 50), expected);
}

#[test]
fn a_timer_can_not_be_moved_to_never() {
    let mut world = sleeping();
    let refusal = world.refused(World::move_input("t", Timestamp::NEVER, None));
    assert_eq!(
        refusal.to_string(),
        "timer t cannot be rescheduled to 9999-12-31T23:59:59.999999999Z, which means never"
    );
}

/// The SDK checks code's own resets on replayed state.
#[test]
fn guards_do_not_bind_code() {
    let guards = Guards { not_after: Some(at(20)), max_extensions: Some(0) };
    let mut world = World::after([guarded("t", 10, guards)]);
    world.signal("go");
    world.task([move_timer("t", 90), move_timer("t", 95)]);
    assert_eq!(world.timer_due("t"), Some(at(95)));
    assert_eq!(world.run.timers[&"t".into()].moves, 0);
    let Fact::TimerRescheduled(moved) = world.last_fact() else { panic!() };
    assert_eq!(moved.by, Mover::Code);
}

#[test]
fn a_crash_loses_no_timer() {
    let mut world = sleeping();
    world.move_timer("t", 20);
    world.crash();
    assert_eq!(world.run.due_keys(), [TimerKey::Timer("t".into())]);
    assert_eq!(world.timer_due("t"), Some(at(20)));
}

#[test]
fn a_closed_run_has_nothing_due() {
    let mut world = sleeping();
    world.terminate();
    world.go_to(10);
    assert_eq!(world.run.due_keys(), []);
    assert_eq!(world.fire("t").reply, Reply::NotDue);
    assert_eq!(world.refused(World::move_input("t", at(50), None)), Refusal::RunClosed);
    assert_eq!(world.refused(Input::RequestCancel(Default::default())), Refusal::RunClosed);
}

/// Code of other SDKs, or older code, may not say why a timer exists. The engine does not make it up.
#[test]
fn a_timer_without_origin_stays_without() {
    let world = World::after([Ask::StartTimer(timer_spec("t", at(10), None))]);
    let Fact::TimerStarted(started) = world.last_fact() else { panic!() };
    assert_eq!(started.spec.origin, None);
    let wait = world.run.shown_waits().remove(0);
    assert_eq!((wait.kind, wait.origin), (WaitKind::Timer, None));
}
