//! Tasks that fail, time out, are lost with their worker, or do not fit the history.

use abide_core::{
    event::{Fact, TaskFailureCause},
    note::Note,
    run::{Liveness, Refusal, Reply, Task},
};

use crate::{build::*, world::World};

/// A run whose first task has failed.
fn failed() -> World {
    let mut world = World::new();
    world.start_task();
    world.fail_task();
    world
}

/// A run whose code does not fit, tried with `build-1`.
fn blocked() -> World {
    let mut world = World::new();
    world.start_task();
    world.block_task();
    world
}

#[test]
fn the_first_failure_is_an_event() {
    let mut world = World::new();
    world.start_task();
    assert_eq!(world.fail_task().names, ["TaskStarted", "TaskFailed"]);
    assert!(matches!(world.run.task, Task::Retry(_)));
}

/// The retry's TaskScheduled stays in memory until it completes.
#[test]
fn a_retry_writes_its_schedule_with_its_completion() {
    let mut world = failed();
    world.pass(1);
    let given = world.start_task();
    assert_eq!(given.attempt, 2);
    let took = world.complete([timer("t", 60)]);
    assert_eq!(took.names, ["TaskScheduled", "TaskStarted", "TaskCompleted", "TimerStarted"]);
    let Fact::TaskScheduled(scheduled) = world.fact("TaskScheduled") else { panic!() };
    assert_eq!(scheduled.attempt, 2);
    assert_eq!(given.tail, world.events()[4..6]);
}

#[test]
fn later_failures_are_notes() {
    let mut world = failed();
    for attempt in 2..5 {
        world.pass(600);
        assert_eq!(world.start_task().attempt, attempt);
        assert_eq!(world.fail_task().names, ["TaskAttemptFailed"]);
    }
}

#[test]
fn a_failed_task_waits_longer_each_time() {
    let mut world = failed();
    let mut waits = Vec::new();
    for _ in 0..12 {
        let not_before = world.run.task_not_before(world.now).unwrap();
        let start = world.next_start();
        let too_early = abide_core::run::Input::StartTask(start);
        assert_eq!(world.refused(too_early), Refusal::StaleTask);
        waits.push(not_before.saturating_since(world.now).as_secs());
        world.now = not_before;
        world.start_task();
        world.fail_task();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
}

/// The clock was an hour ahead when the task failed, or when the run had its last event.
#[test]
fn a_failure_at_a_time_that_is_still_to_come_holds_no_task_back() {
    let mut world = World::new();
    let true_time = world.now;
    world.start_task();
    world.pass(3600);
    world.fail_task();
    world.now = true_time;
    assert!(world.run.task_ready(world.now));
    world.start_task();
    world.fail_task();
    let held_back = world.run.task_not_before(world.now).unwrap();
    assert_eq!(held_back.saturating_since(world.now).as_secs(), 2, "it failed at the true time");
    assert!(!world.run.task_ready(world.now));
}

/// A signal ends the waiting too: code may now do something else.
#[test]
fn new_events_make_a_retry_a_normal_task() {
    let mut world = failed();
    assert_eq!(world.signal("go").names, ["SignalReceived", "TaskScheduled"]);
    assert_eq!(world.run.task_not_before(world.now), None);
    assert_eq!(world.start_task().attempt, 1);
}

/// What came meanwhile must be shown by a task of its own, so history says how this one ended.
#[test]
fn a_retry_that_fails_with_inputs_buffered_is_written() {
    let mut world = failed();
    world.pass(1);
    world.start_task();
    world.signal("go");
    let expected =
        ["TaskScheduled", "TaskStarted", "TaskFailed", "SignalReceived", "TaskScheduled"];
    assert_eq!(world.fail_task().names[..5], expected);
}

#[test]
fn a_timeout_is_an_event_and_its_retries_are_notes() {
    let mut world = World::new();
    world.start_task();
    assert_eq!(world.time_out_task().names, ["TaskStarted", "TaskTimedOut"]);
    world.pass(1);
    world.start_task();
    assert_eq!(world.time_out_task().names, ["TaskAttemptFailed"]);
    let Note::TaskAttemptFailed(failed) = world.last_note() else { panic!() };
    assert_eq!(failed.failure.message, "start-to-close timeout");
}

/// The inputs of a failed task come before the next TaskScheduled.
#[test]
fn a_task_that_times_out_with_inputs_buffered_is_scheduled_at_once() {
    let mut world = World::new();
    world.start_task();
    world.signal("go");
    let names = world.time_out_task().names;
    assert_eq!(
        names,
        ["TaskStarted", "TaskTimedOut", "SignalReceived", "TaskScheduled", "BufferReleased"]
    );
}

#[test]
fn a_lost_start_leaves_nothing_but_counts() {
    let mut world = World::new();
    for attempt in 1..4 {
        assert_eq!(world.start_task().attempt, attempt);
        world.pass(600);
        assert!(world.lose_task().names.is_empty());
        world.pass(600);
    }
}

/// A task that kills its worker is no hot loop.
#[test]
fn lost_starts_back_off_from_the_third() {
    let mut world = World::new();
    let mut waits = Vec::new();
    for _ in 0..6 {
        world.start_task();
        world.lose_task();
        let not_before = world.run.task_not_before(world.now).unwrap_or(world.now);
        waits.push(not_before.saturating_since(world.now).as_secs());
        world.now = not_before;
    }
    assert_eq!(waits, [0, 0, 1, 2, 4, 8]);
}

#[test]
fn inputs_of_a_lost_start_are_numbered_for_the_same_task() {
    let mut world = World::new();
    world.start_task();
    world.signal("go");
    assert_eq!(world.lose_task().names, ["SignalReceived", "BufferReleased"]);
    assert_eq!(world.run.task, Task::Scheduled { number: 2 });
    assert_eq!(world.task([]).names, ["TaskStarted", "TaskCompleted"]);
}

#[test]
fn a_lost_retry_with_inputs_becomes_a_normal_task() {
    let mut world = failed();
    world.pass(1);
    world.start_task();
    world.signal("go");
    assert_eq!(world.lose_task().names, ["SignalReceived", "TaskScheduled", "BufferReleased"]);
}

#[test]
fn a_completion_forgets_lost_starts() {
    let mut world = World::new();
    for _ in 0..2 {
        world.start_task();
        world.lose_task();
    }
    world.task([]);
    world.signal("go");
    assert_eq!(world.start_task().attempt, 1);
}

#[test]
fn a_blocked_run_says_so_and_stays_open() {
    let world = blocked();
    assert_eq!(world.run.liveness(), Liveness::ReplayBlocked);
    let Fact::TaskFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!(failed.cause, TaskFailureCause::ReplayBlocked);
    assert!(failed.blocked.is_some());
}

/// No hot loop: the same code would come to the same.
#[test]
fn each_build_is_tried_once_per_history_length() {
    let mut world = blocked();
    assert_eq!(world.start_with("build-1").unwrap_err(), Refusal::BuildTried);
    world.start_with("build-2").unwrap();
    assert_eq!(world.block_task().names, ["TaskAttemptFailed"]);
    for build in ["build-1", "build-2"] {
        assert_eq!(world.start_with(build).unwrap_err(), Refusal::BuildTried);
    }
    world.crash();
    assert_eq!(world.start_with("build-2").unwrap_err(), Refusal::BuildTried);
}

#[test]
fn other_code_may_try_a_blocked_task_at_once() {
    let mut world = blocked();
    world.start_with("build-2").unwrap();
    assert!(matches!(world.complete([]).reply, Reply::TaskTaken { .. }));
    assert_eq!(world.run.liveness(), Liveness::InputPending);
}

#[test]
fn a_longer_history_is_tried_again() {
    let mut world = blocked();
    world.signal("go");
    assert!(world.start_with("build-1").is_ok());
}

#[test]
fn repair_tries_every_build_again() {
    let mut world = blocked();
    assert_eq!(world.repair().names, ["Repaired"]);
    world.crash();
    assert!(world.start_with("build-1").is_ok());
}

/// An operator who repairs does not want to wait, and a crash does not bring the waiting back.
#[test]
fn repair_ends_the_waiting_of_a_failed_task() {
    let mut world = failed();
    world.repair();
    assert!(world.run.task_ready(world.now));
    world.crash();
    assert!(world.run.task_ready(world.now));
}

#[test]
fn repair_of_a_run_that_is_not_stuck_writes_nothing() {
    let mut world = World::after([timer("t", 60)]);
    assert!(world.repair().names.is_empty());
}

/// A plain failure is not about the code: it is tried again with the same build.
#[test]
fn only_blocked_builds_are_remembered() {
    let mut world = failed();
    world.pass(1);
    assert!(world.start_with("build-1").is_ok());
}
