//! A clock that is set forward and back again. Stored timers fire at the correct time, timers in memory
//! fire on time, and the time of a run never goes backward.

use std::time::Duration;

use abide_core::{
    codec,
    event::{Event, Fact},
    ids::RunId,
    operation::{AnyAnswer, AwaitClose, CallError, Done},
    time::Timestamp,
};
use abide_store::rows::LogLimit;

use crate::harness::{World, shard_of, target, timer};

const HOUR: Duration = Duration::from_secs(3600);

/// A world whose clock was an hour ahead for a while. The workflow "old" recorded events at that time.
fn after_a_jump() -> (World, RunId) {
    let mut world = World::new();
    let run = world.start("old");
    let true_time = world.now;
    world.pass(HOUR);
    world.signal("old", "ahead").expect("it is taken");
    world.now = true_time;
    world.pass(Duration::ZERO);
    // A wake-up scheduled for that time reopens the shard.
    world.pass(Duration::ZERO);
    (world, run)
}

fn events(world: &World, id: &str, run: RunId) -> Vec<Event> {
    let rows = world.tables.log(shard_of(id), run, 0, LogLimit::rows(usize::MAX));
    rows.into_iter().flat_map(|row| codec::decode_events(row.events).expect("it decodes")).collect()
}

/// Another workflow id on the shard of "old".
fn beside_old() -> String {
    let ids = (0..).map(|n| format!("new-{n}"));
    ids.into_iter()
        .find(|id| shard_of(id) == shard_of("old"))
        .expect("there are more ids than shards")
}

#[test]
fn a_new_run_starts_at_the_true_time_and_its_sleep_ends_in_time() {
    let (mut world, _) = after_a_jump();
    let id = beside_old();
    let run = world.start(&id);
    assert_eq!(events(&world, &id, run)[0].time, world.now);
    let token = world.take_task();
    let fire_at = world.now.saturating_add(Duration::from_secs(2));
    world.complete(token, vec![timer("t", fire_at)]);
    assert!(world.shards[&shard_of("old")].wake_at() <= Some(fire_at));
    world.pass(Duration::from_secs(2));
    let last = events(&world, &id, run).pop().unwrap();
    assert_eq!((last.body.fact.name(), last.time), ("TaskScheduled", world.now));
}

#[test]
fn the_times_in_a_history_never_go_back() {
    let (mut world, run) = after_a_jump();
    world.signal("old", "back").unwrap();
    let events = events(&world, "old", run);
    let times: Vec<Timestamp> = events.iter().map(|event| event.time).collect();
    assert!(times.is_sorted(), "{times:?}");
    let received = events.iter().rev().find_map(|event| match &event.body.fact {
        Fact::SignalReceived(signal) => Some(signal.received_at),
        _ => None,
    });
    assert_eq!(received, Some(world.now), "it was received at the true time");
}

#[test]
fn a_timer_that_was_set_before_the_jump_fires_once_and_not_before_its_time() {
    let mut world = World::new();
    let run = world.start("old");
    let token = world.take_task();
    let true_time = world.now;
    let fire_at = true_time.saturating_add(2 * HOUR);
    world.complete(token, vec![timer("t", fire_at)]);
    world.pass(HOUR);
    world.now = true_time;
    world.pass(Duration::ZERO);
    let fired = |world: &World| {
        world.history("old", run).iter().filter(|name| **name == "TimerFired").count()
    };
    world.pass(2 * HOUR - Duration::from_nanos(1));
    assert_eq!(fired(&world), 0);
    world.pass(Duration::from_nanos(1));
    world.pass(HOUR);
    assert_eq!(fired(&world), 1);
}

#[test]
fn a_task_that_was_given_during_the_jump_goes_to_another_worker_in_time() {
    let mut world = World::new();
    world.start("old");
    let true_time = world.now;
    world.pass(HOUR);
    world.take_task();
    world.offers.clear();
    world.now = true_time;
    world.pass(Duration::ZERO);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.offers.len(), 1, "its first worker never answered");
}

#[test]
fn who_waits_for_a_run_waits_on_when_the_clock_is_set_back() {
    let mut world = World::new();
    world.start("w");
    let true_time = world.now;
    world.pass(HOUR);
    let waits = world.call(shard_of("w"), AwaitClose { target: target("w") });
    world.commit_at_once = false;
    let writes = world.call(shard_of("w"), crate::durability::signal_call("a"));
    world.commit_at_once = true;
    world.now = true_time;
    world.commit(Ok(()));
    let told = world.replies.remove(&writes);
    assert!(matches!(told, Some(Err(CallError::Reset))), "it may have happened: {told:?}");
    world.pass(Duration::ZERO);
    assert!(!world.replies.contains_key(&waits));
    assert!(matches!(world.signal("w", "a"), Ok(AnyAnswer::Done(Done { repeat: true, .. }))));
}

#[test]
fn a_clock_that_is_corrected_a_little_disturbs_nobody() {
    let mut world = World::new();
    world.start("old");
    let waits = world.call(shard_of("old"), AwaitClose { target: target("old") });
    let epoch = world.tables.shard(shard_of("old")).epoch;
    world.pass(Duration::from_secs(10));
    let shown = world.now;
    world.now = Timestamp::from_unix_millis(shown.unix_millis() - 900);
    world.pass(Duration::ZERO);
    assert!(world.signal("old", "a").is_ok());
    assert_eq!(world.tables.shard(shard_of("old")).epoch, epoch, "it stayed open");
    assert!(!world.replies.contains_key(&waits));
}
