//! Idempotency keys: an input is taken once, over crashes, the close of its run and the runs after it.

use std::time::Duration;

use abide_core::{
    command::{Ask, ContinueAsNew},
    digest::Digest,
    event::{
        Mover, RunCancelRequested, RunPaused, RunTerminated, RunUnpaused, SignalReceived,
        TimerRescheduled,
    },
    ids::Key,
    payload::Extension,
    run::{Input, Movable, Refusal, Reply, RescheduleTimer, Signal, StartRun, WaitKey},
};

use crate::{
    build::*,
    world::{World, start_run},
};

fn key() -> Option<Key> {
    Some("once".into())
}

fn cancel() -> Input {
    Input::RequestCancel(RunCancelRequested { key: key(), ..Default::default() })
}

fn pause() -> Input {
    Input::Pause(RunPaused { key: key(), ..Default::default() })
}

fn unpause() -> Input {
    Input::Unpause(RunUnpaused { key: key(), ..Default::default() })
}

fn terminate() -> Input {
    Input::Terminate(RunTerminated { key: key(), ..Default::default() })
}

/// Asks twice, and again after a crash: only the first takes effect.
#[track_caller]
fn takes_once(world: &mut World, input: &Input) {
    assert_eq!(world.take(input.clone()).reply, Reply::Done);
    for _ in 0..2 {
        let repeat = world.take(input.clone());
        assert_eq!((repeat.reply, repeat.names.len()), (Reply::Repeat, 0));
        world.crash();
    }
}

#[test]
fn a_repeat_changes_nothing() {
    let mut world = World::after([timer("t", 60)]);
    takes_once(&mut world, &cancel());
    takes_once(&mut world, &pause());
    takes_once(&mut world, &unpause());
    takes_once(&mut world, &terminate());
}

#[test]
fn a_repeat_of_what_was_undone_since_does_not_do_it_again() {
    let mut world = World::after([]);
    world.take(pause());
    world.unpause();
    assert_eq!(world.take(pause()).reply, Reply::Repeat);
    assert!(!world.run.paused);
}

#[test]
fn what_waits_in_the_buffer_was_taken() {
    let mut world = World::after([timer("t", 60)]);
    world.signal("go");
    world.start_task();
    takes_once(&mut world, &pause());
}

#[test]
fn a_closed_run_knows_what_it_took() {
    let mut world = World::after([timer("t", 60)]);
    let moved = World::move_input("t", at(90), Some("once"));
    for input in [cancel(), pause(), unpause(), moved.clone()] {
        world.take(input);
    }
    world.terminate();
    for input in [cancel(), pause(), unpause(), moved] {
        assert_eq!(world.take(input).reply, Reply::Repeat);
    }
    assert_eq!(world.refused(terminate()), Refusal::RunClosed, "this one has another key");
}

#[test]
fn the_next_run_of_the_chain_knows_what_was_taken() {
    let mut world = World::after([]);
    for input in [pause(), unpause(), cancel()] {
        world.take(input);
    }
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took = world.task([Ask::ContinueAsNew(Box::new(next))]);
    let mut next = world.successor(&took);
    for input in [pause(), unpause(), cancel()] {
        assert_eq!(next.take(input).reply, Reply::Repeat);
    }
    assert!(!next.run.paused && !next.run.cancel_requested);
}

/// The second request is reported as a repeat; a repeat of that must not reach the next run.
#[test]
fn a_second_cancel_request_is_remembered_too() {
    let mut world = World::after([]);
    world.request_cancel();
    assert_eq!(world.take(cancel()).names, ["CancelRepeated"]);
    world.crash();
    assert_eq!(world.take(cancel()).names.len(), 0);
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took = world.task([Ask::ContinueAsNew(Box::new(next))]);
    let mut next = world.successor(&took);
    assert_eq!(next.take(cancel()).reply, Reply::Repeat);
    assert!(!next.run.cancel_requested);
}

#[test]
fn operations_do_not_share_their_keys() {
    let mut world = World::after([]);
    let input = world.signal_input("go", Some("once"));
    world.take(input);
    assert_eq!(world.take(pause()).reply, Reply::Done);
}

/// A signal with a key, and with this in it.
fn signal(name: &str, text: &str) -> Input {
    let (name, input) = (name.into(), payloads(text));
    let signal = SignalReceived { name, input, key: key(), ..SignalReceived::default() };
    Input::Signal(Box::new(Signal { signal, extension: Extension::new() }))
}

/// The very same is a repeat; the same key with anything else is refused.
#[track_caller]
fn knows_the_signal(world: &mut World) {
    assert_eq!(world.take(signal("pay", "10")).reply, Reply::Repeat);
    for other in [signal("pay", "20"), signal("ship", "10")] {
        assert_eq!(world.refused(other), Refusal::KeyReused("once".into()));
    }
}

#[test]
fn a_key_that_comes_back_with_another_signal_is_refused() {
    let mut world = World::after([timer("t", 60)]);
    world.take(signal("pay", "10"));
    knows_the_signal(&mut world);
    world.crash();
    knows_the_signal(&mut world);
    world.terminate();
    knows_the_signal(&mut world);
}

#[test]
fn a_signal_in_the_buffer_keeps_its_key_from_another() {
    let mut world = World::after([timer("t", 60)]);
    world.signal("go");
    world.start_task();
    world.take(signal("pay", "10"));
    knows_the_signal(&mut world);
    world.crash();
    knows_the_signal(&mut world);
}

#[test]
fn the_next_run_of_the_chain_knows_what_a_key_was_used_for() {
    let mut world = World::after([]);
    world.take(signal("pay", "10"));
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took = world.task([Ask::ContinueAsNew(Box::new(next))]);
    let mut next = world.successor(&took);
    knows_the_signal(&mut next);
    next.crash();
    knows_the_signal(&mut next);
}

/// Logs from before digests were kept say only that the key was used.
#[test]
fn a_key_whose_use_is_not_known_is_a_repeat() {
    let mut world = World::after([]);
    world.take(signal("pay", "10"));
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let mut took = world.task([Ask::ContinueAsNew(Box::new(next))]);
    let successor = took.decision.successor.as_mut().unwrap();
    successor.previous.as_mut().unwrap().signal_digests.clear();
    let mut next = world.successor(&took);
    assert_eq!(next.take(signal("pay", "20")).reply, Reply::Repeat);
}

#[test]
fn a_key_that_comes_back_with_another_move_is_refused() {
    let mut world = World::after([timer("t", 60), timer("u", 60)]);
    let moved = || World::move_input("t", at(90), Some("once"));
    world.take(moved());
    for _ in 0..2 {
        assert_eq!(world.take(moved()).reply, Reply::Repeat);
        let later = World::move_input("t", at(91), Some("once"));
        assert_eq!(world.refused(later), Refusal::KeyReused("once".into()));
        assert_eq!(world.run.moved_to(&"once".into()), Some(at(90)), "the first one counts");
        let other = World::move_input("u", at(90), Some("once"));
        assert_eq!(world.refused(other), Refusal::KeyReused("once".into()));
        world.crash();
    }
}

fn move_after(seconds: u64, due: u64) -> Input {
    let (what, identity, after) = ("t".into(), "operator".into(), Duration::from_secs(seconds));
    let after = Some(after);
    Input::RescheduleTimer(RescheduleTimer { what, fire_at: at(due), after, identity, key: key() })
}

#[test]
fn a_move_to_a_time_from_now_is_the_same_request_when_repeated_later() {
    let mut world = World::after([timer("t", 60)]);
    world.take(move_after(80, 90));
    for _ in 0..2 {
        assert_eq!(world.take(move_after(80, 95)).reply, Reply::Repeat);
        assert_eq!(world.run.moved_to(&"once".into()), Some(at(90)), "the first one counts");
        assert_eq!(world.refused(move_after(70, 85)), Refusal::KeyReused("once".into()));
        world.crash();
    }
}

/// Logs of older code do not say which time was asked for.
#[test]
fn a_recorded_move_without_the_time_asked_for_takes_any_repeat() {
    let mut world = World::after([timer("t", 60), timer("u", 60)]);
    let by = Mover::Outside {
        identity: "operator".into(),
        key: key(),
        received_at: at(1),
        asked: Digest::UNKNOWN,
    };
    world.append(TimerRescheduled { timer: "t".into(), fire_at: at(90), by });
    for repeat in [move_after(80, 95), World::move_input("t", at(90), Some("once"))] {
        assert_eq!(world.take(repeat).reply, Reply::Repeat);
        assert_eq!(world.run.moved_to(&"once".into()), Some(at(90)));
    }
    let other = World::move_input("u", at(90), Some("once"));
    assert_eq!(world.refused(other), Refusal::KeyReused("once".into()));
}

/// A wait is moved by its own name, which is that of its timer here.
#[test]
fn a_move_may_be_repeated_by_the_name_of_the_wait() {
    let mut world = World::after([
        open_wait("w", Some("t")),
        deadline("t", 60),
        open_wait("v", Some("u")),
        deadline("u", 60),
    ]);
    world.take(World::move_input("t", at(90), Some("once")));
    let by_wait = |wait: &str| {
        let what = Movable::Wait(WaitKey::Condition(wait.into()));
        let (identity, key) = ("operator".into(), key());
        Input::RescheduleTimer(RescheduleTimer {
            what,
            fire_at: at(90),
            after: None,
            identity,
            key,
        })
    };
    assert_eq!(world.take(by_wait("w")).reply, Reply::Repeat);
    assert_eq!(world.refused(by_wait("v")), Refusal::KeyReused("once".into()));
    world.signal("go");
    world.task([cancel_timer("t"), Ask::SatisfyWait("w".into())]);
    assert_eq!(world.take(by_wait("w")).reply, Reply::Repeat, "the wait is over");
}

/// Each run of a workflow id is given the keys of the terminations before it, so they must stay few.
#[test]
fn a_workflow_id_that_is_terminated_again_and_again_keeps_the_newest_keys() {
    let (mut keys, mut sizes) = (Vec::new(), Vec::new());
    for number in 0..300 {
        let mut world = World::begin(StartRun { terminate_keys: keys, ..start_run() });
        sizes.push((world.run.snapshot_items(), world.run.memory()));
        let key = Some(number.to_string().into());
        world.take(Input::Terminate(RunTerminated { key, ..Default::default() }));
        keys = world.run.end_keys(&world.limits);
    }
    let newest: Vec<Key> = (200..300).map(|number| number.to_string().into()).collect();
    assert_eq!(keys, newest);
    let (items, bytes): (Vec<_>, Vec<_>) = sizes.into_iter().unzip();
    assert_eq!((items[50] - items[0], items[299] - items[0]), (50, 100));
    assert!(bytes[50] > bytes[0] && bytes[299] == bytes[100], "{bytes:?}");
}
