//! Attempts that are completed from outside their worker.

use abide_core::{
    command::Ask,
    event::{ActivitySpec, Delivery, Fact},
    failure::{FailureKind, TimeoutKind},
    retry::RetryState,
    run::{Input, Phase, Refusal, Reply, Resolution},
};

use crate::{
    build::{activity_spec, payloads, policy, seconds},
    world::{Took, World},
};

/// A run whose activity `a` is completed from outside.
fn detached(change: impl FnOnce(&mut ActivitySpec)) -> World {
    let mut spec = activity_spec("a");
    change(&mut spec);
    let mut world = World::after([Ask::ScheduleActivity(spec)]);
    world.start_activity("a");
    assert_eq!(detach(&mut world).names, ["AttemptDetached"]);
    world
}

fn detach(world: &mut World) -> Took {
    let (scheduled, start) = (world.scheduled("a"), world.activity("a").starts);
    world.take(Input::DetachAttempt { scheduled, start })
}

fn lose(world: &World) -> Input {
    Input::LoseAttempt { scheduled: world.scheduled("a"), start: world.activity("a").starts }
}

#[test]
fn a_detached_attempt_is_not_lost_with_its_worker() {
    let mut world = detached(|spec| spec.delivery = Delivery::AtMostOnce);
    let lost = lose(&world);
    assert_eq!(world.refused(lost), Refusal::StaleAttempt);
    assert!(matches!(world.activity("a").phase, Phase::Started { detached: true, .. }));
    let names = world.complete_activity("a").names;
    assert_eq!(names, ["ActivityStarted", "ActivityCompleted", "TaskScheduled"]);
}

#[test]
fn leaving_an_attempt_twice_is_leaving_it_once() {
    let mut world = detached(|_| {});
    let again = detach(&mut world);
    assert_eq!((again.names.len(), again.reply), (0, Reply::Repeat));
}

#[test]
fn only_the_current_attempt_can_be_left() {
    let mut world = detached(|_| {});
    let scheduled = world.scheduled("a");
    let other = Input::DetachAttempt { scheduled, start: 2 };
    assert_eq!(world.refused(other), Refusal::StaleAttempt);
    world.complete_activity("a");
    let late = Input::DetachAttempt { scheduled, start: 1 };
    assert_eq!(world.refused(late), Refusal::StaleAttempt);
}

#[test]
fn the_time_of_an_attempt_is_limited_whoever_has_it() {
    let mut world = detached(|spec| {
        spec.start_to_close = Some(seconds(10));
        spec.heartbeat = Some(seconds(4));
        spec.retry = Some(policy());
    });
    world.go_to(3);
    world.heartbeat("a", "half");
    world.go_to(6);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue, "it was heard of at 3");
    world.go_to(7);
    assert_eq!(world.activity_due("a").names, ["AttemptEnded"]);
    world.go_to(8);
    world.activity_due("a");
    assert_eq!(world.start_activity("a"), 2);
    let next = world.run.activity_given(world.scheduled("a")).unwrap();
    assert_eq!(next.heartbeat, Some(payloads("half")));
    // The next attempt is its worker's own.
    let late = world.resolve_input("a", 1, Resolution::Completed(Vec::new()));
    assert_eq!(world.refused(late), Refusal::StaleAttempt);
    assert_eq!(world.lose_activity("a").names, ["AttemptEnded"]);
}

#[test]
fn an_attempt_that_nobody_completes_times_out() {
    let mut world = detached(|spec| spec.start_to_close = Some(seconds(10)));
    world.go_to(10);
    world.activity_due("a");
    let Fact::ActivityTimedOut(timed_out) = world.fact("ActivityTimedOut") else { panic!() };
    assert_eq!(timed_out.kind, TimeoutKind::StartToClose);
    assert_eq!(timed_out.retry_state, RetryState::PolicyNotSet);
    assert_eq!(timed_out.failure.kind, FailureKind::Timeout(TimeoutKind::StartToClose));
}

#[test]
fn cancelling_is_reported_only_if_code_asked_for_it() {
    let mut world = detached(|_| {});
    let cancelled = world.resolve_input("a", 1, Resolution::Cancelled(Vec::new()));
    assert_eq!(world.refused(cancelled.clone()), Refusal::CancelNotRequested);
    world.signal("stop");
    world.task([Ask::CancelActivity("a".into())]);
    let alive = world.heartbeat("a", "still here").reply;
    assert_eq!(alive, Reply::Alive { cancel_requested: true });
    let names = world.take(cancelled).names;
    assert_eq!(names, ["ActivityStarted", "ActivityCancelled", "TaskScheduled"]);
}

#[test]
fn an_activity_is_known_by_its_id_while_an_attempt_runs() {
    let spec = ActivitySpec { retry: Some(policy()), ..activity_spec("a") };
    let mut world = World::after([Ask::ScheduleActivity(spec)]);
    let running = |world: &World| world.run.running_attempt(&"a".into());
    assert_eq!(running(&world), Err(Refusal::NoAttempt("a".into())), "it waits for a worker");
    world.start_activity("a");
    assert_eq!(running(&world), Ok((world.scheduled("a"), 1)));
    world.fail_activity("a");
    assert_eq!(running(&world), Err(Refusal::NoAttempt("a".into())), "it waits for its retry");
    world.go_to(1);
    world.activity_due("a");
    world.start_activity("a");
    // The result waits for the end of a task.
    world.signal("go");
    world.start_task();
    world.complete_activity("a");
    assert_eq!(running(&world), Err(Refusal::UnknownActivity("a".into())));
    let unknown = world.run.running_attempt(&"b".into()).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no pending activity b");
}

#[test]
fn a_closed_run_has_no_attempts() {
    let mut world = detached(|_| {});
    world.terminate();
    assert_eq!(world.run.running_attempt(&"a".into()), Err(Refusal::RunClosed));
}
