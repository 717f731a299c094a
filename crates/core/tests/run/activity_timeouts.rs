//! The four timeouts of an activity.

use abide_core::{
    command::Ask,
    event::{ActivitySpec, ActivityTimedOut, Fact},
    failure::TimeoutKind,
    retry::RetryState,
    run::{Phase, Reply},
};

use crate::{build::*, world::World};

fn pending(change: impl FnOnce(&mut ActivitySpec)) -> World {
    let mut spec = activity_spec("a");
    change(&mut spec);
    World::after([Ask::ScheduleActivity(spec)])
}

fn started(change: impl FnOnce(&mut ActivitySpec)) -> World {
    let mut world = pending(change);
    world.start_activity("a");
    world
}

/// Nothing is due a moment before; then the activity's due time comes.
fn falls_due(world: &mut World, due: u64) -> Vec<String> {
    world.go_to(due - 1);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue);
    world.go_to(due);
    world.activity_due("a").names
}

fn timed_out(world: &World) -> ActivityTimedOut {
    match world.fact("ActivityTimedOut") {
        Fact::ActivityTimedOut(end) => end,
        other => panic!("{other:?}"),
    }
}

fn end(world: &World) -> (TimeoutKind, RetryState) {
    let end = timed_out(world);
    (end.kind, end.retry_state)
}

/// No worker has taken it, so there is no start to write.
#[test]
fn schedule_to_start_ends_the_activity() {
    let mut world = pending(|spec| {
        spec.schedule_to_start = Some(seconds(5));
        spec.retry = Some(policy());
    });
    assert_eq!(falls_due(&mut world, 5), ["ActivityTimedOut", "TaskScheduled"]);
    assert_eq!(end(&world), (TimeoutKind::ScheduleToStart, RetryState::Timeout));
}

/// The time of the event that schedules it is the time of history, which does not go back.
#[test]
fn limits_count_from_the_true_time_although_the_clock_was_set_back() {
    let limited = |limit: fn(&mut ActivitySpec)| {
        let mut world = World::new();
        world.go_to(100);
        world.signal("go");
        world.go_to(20);
        let mut spec = activity_spec("a");
        limit(&mut spec);
        world.task([Ask::ScheduleActivity(spec)]);
        assert_eq!(world.event("ActivityScheduled").time, at(100));
        world
    };
    let mut to_start = limited(|spec| spec.schedule_to_start = Some(seconds(5)));
    assert_eq!(falls_due(&mut to_start, 25), ["ActivityTimedOut", "TaskScheduled"]);
    assert_eq!(end(&to_start).0, TimeoutKind::ScheduleToStart);
    let mut to_close = limited(|spec| spec.schedule_to_close = Some(seconds(7)));
    assert_eq!(falls_due(&mut to_close, 27), ["ActivityTimedOut", "TaskScheduled"]);
    assert_eq!(end(&to_close).0, TimeoutKind::ScheduleToClose);
}

#[test]
fn schedule_to_start_counts_anew_for_each_attempt() {
    let mut world = started(|spec| {
        spec.schedule_to_start = Some(seconds(5));
        spec.retry = Some(policy());
    });
    world.go_to(4);
    world.fail_activity("a");
    world.go_to(5);
    world.activity_due("a");
    assert_eq!(world.activity("a").due(), Some(at(10)));
}

#[test]
fn start_to_close_ends_the_attempt() {
    let mut world = started(|spec| spec.retry = Some(policy_of(2)));
    assert_eq!(falls_due(&mut world, 60), ["AttemptEnded"]);
    world.go_to(61);
    world.activity_due("a");
    world.start_activity("a");
    assert_eq!(falls_due(&mut world, 121)[..2], ["ActivityStarted", "ActivityTimedOut"]);
    let (kind, state) = end(&world);
    assert_eq!((kind, state), (TimeoutKind::StartToClose, RetryState::MaximumAttemptsReached));
    let cause = &timed_out(&world).failure.causes[0];
    assert_eq!(cause.message, "start-to-close timeout", "why the attempt before it failed");
}

#[test]
fn schedule_to_close_ends_the_activity_in_every_phase() {
    let change = |spec: &mut ActivitySpec| {
        spec.schedule_to_close = Some(seconds(30));
        spec.retry = Some(policy());
    };
    let ready = pending(change);
    let running = started(change);
    let mut waiting = started(change);
    let mut slow = failure("boom");
    slow.next_retry_delay = Some(seconds(29));
    waiting.resolve("a", abide_core::run::Resolution::Failed(slow));
    for mut world in [ready, running, waiting] {
        world.go_to(30);
        let names = world.activity_due("a").names;
        assert!(names.contains(&"ActivityTimedOut".into()), "{names:?}");
        assert_eq!(end(&world), (TimeoutKind::ScheduleToClose, RetryState::Timeout));
    }
}

/// There would be no time left for another attempt.
#[test]
fn schedule_to_close_cuts_retries_short() {
    let mut world = started(|spec| {
        spec.schedule_to_close = Some(seconds(5));
        spec.retry = Some(policy());
    });
    world.go_to(4);
    let names = world.fail_activity("a").names;
    assert_eq!(names[1], "ActivityFailed");
    let Fact::ActivityFailed(failed) = world.fact("ActivityFailed") else { panic!() };
    assert_eq!(failed.retry_state, RetryState::Timeout);
}

#[test]
fn an_attempt_that_ends_in_time_for_another_is_retried() {
    let mut world = started(|spec| {
        spec.schedule_to_close = Some(seconds(5));
        spec.retry = Some(policy());
    });
    world.go_to(3);
    assert_eq!(world.fail_activity("a").names, ["AttemptEnded"]);
}

#[test]
fn silence_ends_the_attempt() {
    let mut world = started(|spec| {
        spec.heartbeat = Some(seconds(10));
        spec.retry = Some(policy());
    });
    assert_eq!(falls_due(&mut world, 10), ["AttemptEnded"]);
    assert!(matches!(world.activity("a").phase, Phase::Backoff { until } if until == at(11)));
}

/// Also by heartbeats that are kept in memory.
#[test]
fn a_heartbeat_puts_the_timeout_off() {
    let mut world = started(|spec| spec.heartbeat = Some(seconds(10)));
    world.go_to(8);
    world.heartbeat("a", "1");
    world.go_to(9);
    assert!(world.heartbeat("a", "2").names.is_empty());
    let names = falls_due(&mut world, 19);
    assert_eq!(names, ["ActivityStarted", "ActivityTimedOut", "TaskScheduled"]);
    assert_eq!(end(&world), (TimeoutKind::Heartbeat, RetryState::PolicyNotSet));
    assert_eq!(timed_out(&world).failure.details, payloads("2"));
}

/// The server could not have heard anything before it was there.
#[test]
fn silence_counts_from_when_the_server_could_hear() {
    let mut world = started(|spec| spec.heartbeat = Some(seconds(10)));
    world.go_to(50);
    world.crash();
    world.run.volatile.watched_since = at(50);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue);
    assert_eq!(falls_due(&mut world, 60)[1], "ActivityTimedOut");
}

/// Both have passed: the one that leaves no hope is named.
#[test]
fn schedule_to_close_is_judged_before_the_others() {
    let mut world = started(|spec| {
        spec.schedule_to_close = Some(seconds(60));
        spec.retry = Some(policy());
    });
    world.go_to(60);
    world.activity_due("a");
    assert_eq!(end(&world).0, TimeoutKind::ScheduleToClose);
}

#[test]
fn a_timeout_is_not_retried_after_a_cancel_request() {
    let mut world = started(|spec| spec.retry = Some(policy()));
    world.signal("stop");
    world.task([Ask::CancelActivity("a".into())]);
    world.go_to(60);
    world.activity_due("a");
    assert_eq!(end(&world), (TimeoutKind::StartToClose, RetryState::CancelRequested));
}

#[test]
fn a_timeout_during_a_task_is_buffered() {
    let mut world = started(|_| {});
    world.signal("go");
    world.start_task();
    world.go_to(60);
    assert_eq!(world.activity_due("a").names, ["InputBuffered", "InputBuffered"]);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue);
    assert_eq!(world.complete([]).names[2..4], ["ActivityStarted", "ActivityTimedOut"]);
}

#[test]
fn a_policy_may_exclude_a_timeout() {
    let mut world = started(|spec| {
        let mut policy = policy();
        policy.non_retryable_types.push("Timeout:StartToClose".into());
        spec.retry = Some(policy);
    });
    world.go_to(60);
    world.activity_due("a");
    assert_eq!(end(&world).1, RetryState::NonRetryableFailure);
}

#[test]
fn an_activity_that_is_gone_is_not_due() {
    let mut world = started(|_| {});
    world.complete_activity("a");
    world.go_to(3600);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue);
}
