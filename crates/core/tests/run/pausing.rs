//! Pause: inputs are recorded, timers fire into history, running attempts go on, a started task may
//! complete; nothing new is scheduled or handed out.

use abide_core::{
    list::RunStatus,
    run::{Input, Liveness, Refusal, Reply, ResumeSource, Task, Touch},
};

use crate::{build::*, world::World};

/// A paused run with a timer, an activity without a worker and one that runs.
fn paused() -> World {
    let mut world = World::after([timer("t", 10), activity("a"), activity("b")]);
    world.start_activity("b");
    world.pause();
    world
}

#[test]
fn a_pause_is_an_event_without_task() {
    let mut world = World::after([]);
    assert_eq!(world.pause().names, ["RunPaused"]);
    assert_eq!(world.run.liveness(), Liveness::Paused);
    assert_eq!(world.unpause().names, ["RunUnpaused"]);
}

#[test]
fn a_run_is_paused_once() {
    let mut world = paused();
    let refusal = world.refused(Input::Pause(Default::default()));
    assert_eq!(refusal.to_string(), "the run is already paused");
    world.unpause();
    let refusal = world.refused(Input::Unpause(Default::default()));
    assert_eq!(refusal.to_string(), "the run is not paused");
}

#[test]
fn inputs_are_recorded_and_shown_after_the_pause() {
    let mut world = paused();
    assert_eq!(world.signal("go").names, ["SignalReceived"]);
    assert_eq!(world.run.task, Task::Idle);
    world.crash();
    assert_eq!(world.unpause().names, ["RunUnpaused", "TaskScheduled"]);
}

#[test]
fn timers_fire_into_history() {
    let mut world = paused();
    world.go_to(10);
    assert_eq!(world.fire("t").names, ["TimerFired"]);
}

#[test]
fn a_running_attempt_goes_on() {
    let mut world = paused();
    world.heartbeat("b", "1");
    assert_eq!(world.complete_activity("b").names, ["ActivityStarted", "ActivityCompleted"]);
}

#[test]
fn nothing_is_handed_out() {
    let mut world = paused();
    let activity = world.start_activity_input("a");
    assert_eq!(world.refused(activity), Refusal::Held);
    let task = world.next_start();
    assert_eq!(world.refused(Input::StartTask(task)), Refusal::Held);
    world.update("u");
    assert!(!world.run.task_pending(), "not for an update either");
    world.unpause();
    world.start_activity("a");
    world.start_task();
}

#[test]
fn a_scheduled_task_waits_for_the_end_of_the_pause() {
    let mut world = World::new();
    world.pause();
    assert!(!world.run.task_pending());
    world.unpause();
    assert!(world.run.task_pending());
}

#[test]
fn a_started_task_may_complete() {
    let mut world = World::new();
    world.start_task();
    assert_eq!(world.pause().names, ["InputBuffered"]);
    world.signal("go");
    let took = world.complete([activity("a")]);
    assert!(matches!(took.reply, Reply::TaskTaken { .. }));
    assert_eq!(took.names[3..], ["RunPaused", "SignalReceived", "BufferReleased"]);
    assert_eq!(world.run.task, Task::Idle);
    assert_eq!(world.unpause().names, ["RunUnpaused", "TaskScheduled"]);
}

/// Inputs are judged on the state with the buffer.
#[test]
fn a_buffered_pause_is_a_pause() {
    let mut world = World::new();
    world.start_task();
    world.pause();
    assert_eq!(world.refused(Input::Pause(Default::default())), Refusal::Paused);
    world.unpause();
    assert_eq!(world.refused(Input::Unpause(Default::default())), Refusal::NotPaused);
    world.complete([]);
    assert!(!world.run.paused);
}

#[test]
fn a_failed_task_keeps_its_retry_over_a_pause() {
    let mut world = World::new();
    world.start_task();
    world.fail_task();
    world.pause();
    world.unpause();
    assert!(matches!(world.run.task, Task::Retry(_)));
    world.pass(1);
    assert_eq!(world.start_task().attempt, 2);
}

#[test]
fn a_paused_run_may_be_terminated() {
    let mut world = paused();
    assert_eq!(world.terminate().names, ["RunTerminated"]);
}

#[test]
fn an_operator_can_end_a_pause() {
    assert!(paused().run.resume_sources().contains(&ResumeSource::Operator));
}

/// What was acknowledged is shown, also while a task is in flight and the event is not numbered yet.
#[test]
fn a_pause_during_a_task_is_shown_at_once() {
    let mut world = World::after([timer("t", 10)]);
    world.signal("go");
    world.start_task();
    assert_eq!(world.pause().names, ["InputBuffered"]);
    assert!(world.run.take_touched().contains(&Touch::Run), "lists show it too");
    let described = world.run.describe();
    assert_eq!((described.status, described.liveness), (RunStatus::Paused, Liveness::TaskRunning));
    assert!(described.resume_sources.contains(&ResumeSource::Operator));
    world.request_cancel();
    world.move_timer("t", 30);
    let described = world.run.describe();
    assert!(described.cancel_requested);
    assert_eq!(described.waits[0].until, at(30));

    world.unpause();
    assert_eq!(world.run.describe().status, RunStatus::Running);
    world.pause();
    world.complete([]);
    let described = world.run.describe();
    assert_eq!((described.status, described.liveness), (RunStatus::Paused, Liveness::Paused));
}
