//! Activities: attempts are notes, the schedule and the end are events. Delivery, losses, heartbeats,
//! cancellation.

use std::time::Duration;

use abide_core::{
    command::Ask,
    event::{ActivitySpec, Delivery, Fact},
    failure::{Failure, FailureKind},
    note::Note,
    retry::{RetryPolicy, RetryState},
    run::{Heartbeat, Input, Phase, Refusal, Reply, Resolution, TimerKey},
};

use crate::{build::*, world::World};

/// A run with the pending activity `a`.
fn pending(change: impl FnOnce(&mut ActivitySpec)) -> World {
    let mut spec = activity_spec("a");
    change(&mut spec);
    World::after([Ask::ScheduleActivity(spec)])
}

/// The same with a worker that has taken it.
fn started(change: impl FnOnce(&mut ActivitySpec)) -> World {
    let mut world = pending(change);
    world.start_activity("a");
    world
}

fn at_most_once(spec: &mut ActivitySpec) {
    spec.delivery = Delivery::AtMostOnce;
    spec.retry = Some(policy());
}

fn retried(spec: &mut ActivitySpec) {
    spec.retry = Some(policy());
}

/// Code asks for the activity to be cancelled.
fn cancel(world: &mut World) -> Vec<String> {
    world.signal("stop");
    world.task([Ask::CancelActivity("a".into())]).names.split_off(2)
}

/// How the activity failed.
fn failed(world: &World) -> (FailureKind, RetryState) {
    let Fact::ActivityFailed(failed) = world.fact("ActivityFailed") else { panic!() };
    (failed.failure.kind, failed.retry_state)
}

#[test]
fn an_activity_takes_the_queue_of_its_run_and_a_derived_execution_id() {
    let world = pending(|_| {});
    let Fact::ActivityScheduled(scheduled) = world.last_fact() else { panic!() };
    assert_eq!(scheduled.spec.queue, "main");
    assert_eq!(scheduled.execution, world.run.id.execution_id(5));
}

#[test]
fn the_execution_id_stands_on_every_attempt() {
    let mut world = started(retried);
    let first = world.run.activity_given(5).unwrap();
    world.fail_activity("a");
    world.pass(1);
    world.activity_due("a");
    world.start_activity("a");
    let second = world.run.activity_given(5).unwrap();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(first.execution, second.execution);
}

/// Retries that are timers in history refer to the first attempt.
#[test]
fn a_recorded_retry_keeps_the_execution_id_of_the_first() {
    let world = pending(|spec| spec.retry_of = Some("run:3".into()));
    assert_eq!(world.activity("a").execution, "run:3".into());
}

/// Durable before it is sent.
#[test]
fn a_start_is_a_note() {
    let mut world = pending(|_| {});
    let input = world.start_activity_input("a");
    let took = world.take(input);
    assert_eq!(took.names, ["AttemptStarted"]);
    assert_eq!(took.reply, Reply::ActivityGiven { start: 1 });
}

#[test]
fn an_activity_is_taken_once() {
    let mut world = started(|_| {});
    let input = world.start_activity_input("a");
    assert_eq!(world.refused(input), Refusal::StaleAttempt);
}

#[test]
fn a_result_writes_the_start_and_the_end() {
    let mut world = started(|_| {});
    world.pass(7);
    let names = world.complete_activity("a").names;
    assert_eq!(names, ["ActivityStarted", "ActivityCompleted", "TaskScheduled"]);
    let Fact::ActivityStarted(start) = world.fact("ActivityStarted") else { panic!() };
    assert_eq!((start.at, start.attempt, start.identity.as_str()), (at(0), 1, "worker"));
    assert!(world.run.activities.is_empty() && world.run.activity_ids.is_empty());
}

#[test]
fn an_answer_is_taken_only_from_the_current_attempt() {
    let mut world = started(retried);
    let late = world.resolve_input("a", 1, Resolution::Completed(Vec::new()));
    world.lose_activity("a");
    assert_eq!(world.refused(late.clone()), Refusal::StaleAttempt);
    world.start_activity("a");
    assert_eq!(world.refused(late).to_string(), "the activity attempt is no longer current");
    let present = world.resolve_input("a", 2, Resolution::Completed(Vec::new()));
    world.take(present.clone());
    assert_eq!(world.refused(present), Refusal::StaleAttempt);
}

/// Its close is in the buffer.
#[test]
fn a_buffered_result_ends_the_attempt() {
    let mut world = started(|_| {});
    world.signal("go");
    world.start_task();
    assert_eq!(world.complete_activity("a").names, ["InputBuffered", "InputBuffered"]);
    let scheduled = world.scheduled("a");
    let again = world.resolve_input("a", 1, Resolution::Completed(Vec::new()));
    assert_eq!(world.refused(again), Refusal::StaleAttempt);
    assert_eq!(world.refused(Input::LoseAttempt { scheduled, start: 1 }), Refusal::StaleAttempt);
    world.go_to(3600);
    assert_eq!(world.activity_due("a").reply, Reply::NotDue);
    assert_eq!(world.complete([]).names[2..4], ["ActivityStarted", "ActivityCompleted"]);
}

#[test]
fn without_a_policy_there_is_one_attempt() {
    let mut world = started(|_| {});
    let names = world.fail_activity("a").names;
    assert_eq!(names, ["ActivityStarted", "ActivityFailed", "TaskScheduled"]);
    assert_eq!(failed(&world), (FailureKind::Application, RetryState::PolicyNotSet));
}

#[test]
fn retries_are_notes_with_growing_delays() {
    let mut world = started(retried);
    let mut delays = Vec::new();
    for _ in 0..9 {
        assert_eq!(world.fail_activity("a").names, ["AttemptEnded"]);
        let Phase::Backoff { until } = world.activity("a").phase else { panic!() };
        delays.push(until.saturating_since(world.now).as_secs());
        let early = world.start_activity_input("a");
        assert_eq!(world.refused(early), Refusal::StaleAttempt);
        world.now = until;
        assert_eq!(world.activity_due("a").names, ["AttemptReady"]);
        world.start_activity("a");
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
    assert_eq!(world.history().len(), 5, "no event per attempt");
}

#[test]
fn the_policy_limits_the_attempts() {
    let mut world = started(|spec| spec.retry = Some(policy_of(2)));
    world.fail_activity("a");
    world.pass(1);
    world.activity_due("a");
    world.start_activity("a");
    world.fail_activity("a");
    assert_eq!(failed(&world).1, RetryState::MaximumAttemptsReached);
    let Fact::ActivityStarted(start) = world.fact("ActivityStarted") else { panic!() };
    assert_eq!(start.attempt, 2);
    assert_eq!(start.last_failure, Some(failure("boom")));
}

#[test]
fn a_failure_may_forbid_retries_or_choose_the_delay() {
    let mut world = started(retried);
    let mut fatal = failure("boom");
    fatal.next_retry_delay = Some(seconds(3600));
    world.resolve("a", Resolution::Failed(fatal.clone()));
    assert!(matches!(world.activity("a").phase, Phase::Backoff { until } if until == at(3600)));
    world.go_to(3600);
    world.activity_due("a");
    world.start_activity("a");
    fatal.non_retryable = true;
    world.resolve("a", Resolution::Failed(fatal));
    assert_eq!(failed(&world).1, RetryState::NonRetryableFailure);
}

/// A recorded retry of a policy of three attempts.
fn recorded(attempt: u32) -> impl FnOnce(&mut ActivitySpec) {
    move |spec| {
        spec.retry = Some(RetryPolicy { recorded: true, ..policy_of(3) });
        spec.attempt = attempt;
    }
}

/// They are timers in history, made by the worker.
#[test]
fn recorded_retries_are_not_made_by_the_server() {
    let mut world = started(recorded(0));
    assert_eq!(world.fail_activity("a").names[1], "ActivityFailed");
    assert_eq!(failed(&world).1, RetryState::InProgress, "code goes on with the next attempt");
}

#[test]
fn a_recorded_retry_knows_which_attempt_it_is() {
    let mut world = started(recorded(2));
    assert_eq!(world.run.activity_given(world.scheduled("a")).unwrap().attempt, 2);
    world.fail_activity("a");
    let Fact::ActivityStarted(start) = world.fact("ActivityStarted") else { panic!() };
    assert_eq!((start.attempt, failed(&world).1), (2, RetryState::InProgress));
    let first = started(recorded(0));
    assert_eq!(first.run.activity_given(first.scheduled("a")).unwrap().attempt, 1);
}

#[test]
fn the_last_recorded_retry_says_why_no_other_follows() {
    let mut world = started(recorded(3));
    world.fail_activity("a");
    assert_eq!(failed(&world).1, RetryState::MaximumAttemptsReached);

    let mut world = started(recorded(1));
    let fatal = Failure { non_retryable: true, ..failure("fatal") };
    world.resolve("a", Resolution::Failed(fatal));
    assert_eq!(failed(&world).1, RetryState::NonRetryableFailure);

    let mut world = started(|spec| {
        recorded(1)(spec);
        spec.schedule_to_close = Some(seconds(1));
    });
    world.fail_activity("a");
    assert_eq!(failed(&world).1, RetryState::Timeout, "the next attempt would be too late");
}

/// The number comes from a worker, so it may be anything.
#[test]
fn an_absurd_attempt_number_does_no_harm() {
    let mut world = started(|spec| {
        spec.retry = Some(RetryPolicy {
            initial_interval: Duration::ZERO,
            maximum_interval: Duration::MAX,
            ..policy()
        });
        spec.attempt = u32::MAX;
    });
    world.fail_activity("a");
    assert_eq!(world.activity("a").attempt, u32::MAX);
}

/// The worker said that it failed, so trying again is no second effect.
#[test]
fn an_at_most_once_attempt_that_failed_is_repeated() {
    let mut world = started(at_most_once);
    assert_eq!(world.fail_activity("a").names, ["AttemptEnded"]);
}

#[test]
fn an_at_most_once_attempt_that_timed_out_is_not_repeated() {
    let mut world = started(at_most_once);
    world.go_to(60);
    assert_eq!(world.activity_due("a").names[1], "ActivityTimedOut");
    let Fact::ActivityTimedOut(end) = world.fact("ActivityTimedOut") else { panic!() };
    assert_eq!(end.retry_state, RetryState::NonRetryableFailure);
}

#[test]
fn a_lost_at_most_once_attempt_fails_as_worker_lost() {
    let mut world = started(at_most_once);
    let names = world.lose_activity("a").names;
    assert_eq!(names, ["ActivityStarted", "ActivityFailed", "TaskScheduled"]);
    assert_eq!(failed(&world), (FailureKind::WorkerLost, RetryState::NonRetryableFailure));
}

/// The first two immediately; an activity that kills its worker slows down.
#[test]
fn lost_attempts_are_repeated_uncounted_and_slower_from_the_third() {
    let mut world = pending(|spec| spec.retry = Some(policy_of(1)));
    let mut delays = Vec::new();
    for start in 1..6 {
        assert_eq!(world.start_activity("a"), start);
        assert_eq!(world.lose_activity("a").names, ["AttemptEnded"]);
        match world.activity("a").phase {
            Phase::Backoff { until } => {
                delays.push(until.saturating_since(world.now).as_secs());
                world.now = until;
                world.activity_due("a");
            }
            _ => delays.push(0),
        }
    }
    assert_eq!(delays, [0, 0, 1, 2, 4]);
    assert_eq!(world.activity("a").attempt, 1);
}

/// A worker that lacks a key cannot use up the attempts of an activity, or fail it.
#[test]
fn an_attempt_that_is_handed_back_is_given_again_uncounted() {
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        let mut world = pending(|spec| {
            (spec.retry, spec.delivery) = (Some(policy_of(1)), delivery);
        });
        world.start_activity("a");
        let handed_back = Resolution::Failed(Failure::hand_back("no key"));
        assert_eq!(world.resolve("a", handed_back).names, ["AttemptEnded"]);
        assert_eq!(world.activity("a").attempt, 1, "{delivery:?}");
        let last_failure = world.activity("a").last_failure.clone();
        assert_eq!(last_failure.map(|failure| failure.message), Some("no key".to_owned()));
        assert_eq!(world.start_activity("a"), 2);
    }
}

#[test]
fn a_counted_failure_forgets_the_losses() {
    let mut world = started(retried);
    for _ in 0..2 {
        world.lose_activity("a");
        world.start_activity("a");
    }
    world.fail_activity("a");
    assert_eq!(world.activity("a").losses, 0);
    assert_eq!(world.activity("a").attempt, 2);
}

#[test]
fn heartbeats_are_written_now_and_then() {
    let mut world = started(|_| {});
    assert_eq!(world.heartbeat("a", "1").names, ["Heartbeat"]);
    world.pass(4);
    assert!(world.heartbeat("a", "2").names.is_empty());
    world.pass(1);
    assert_eq!(world.heartbeat("a", "3").names, ["Heartbeat"]);
}

/// It is a sign of life, and the next attempt goes on from the details before.
#[test]
fn a_heartbeat_without_room_is_neither_written_nor_kept() {
    for (kept, resumed) in [(None, "1"), (Some("2"), "2")] {
        let mut world = started(|spec| {
            retried(spec);
            spec.heartbeat = Some(seconds(10));
        });
        assert_eq!(world.heartbeat_with_room("a", "1", false).names, ["Heartbeat"], "the first");
        world.pass(2);
        if let Some(details) = kept {
            world.heartbeat("a", details);
        }
        let before = world.run.volatile.heartbeats.memory();
        world.pass(2);
        let large = "3".repeat(1 << 20);
        assert!(world.heartbeat_with_room("a", &large, false).names.is_empty());
        assert!(world.run.volatile.heartbeats.memory() <= before + 1_000);
        let checked = world.run.next_check_at(&TimerKey::Activity(world.scheduled("a")));
        assert_eq!(checked, Some(world.now.saturating_add(seconds(10))), "it is alive");
        world.fail_activity("a");
        assert_eq!(world.activity("a").heartbeat, Some(payloads(resumed)));
        assert_eq!(world.run.volatile.heartbeats.memory(), 0);
    }
}

/// Whatever the attempt before it wrote a moment ago.
#[test]
fn the_first_heartbeat_of_every_attempt_is_written() {
    let mut world = started(retried);
    world.heartbeat("a", "1");
    world.fail_activity("a");
    world.pass(1);
    world.activity_due("a");
    world.start_activity("a");
    assert_eq!(world.heartbeat("a", "2").names, ["Heartbeat"]);
}

/// What was not written goes into the note of the attempt's end.
#[test]
fn the_next_attempt_gets_the_last_details() {
    for ends in
        [|world: &mut World| world.fail_activity("a"), |world: &mut World| world.lose_activity("a")]
    {
        let mut world = started(retried);
        world.heartbeat("a", "1");
        world.pass(1);
        world.heartbeat("a", "2");
        ends(&mut world);
        world.crash();
        assert_eq!(world.run.activity_given(5).unwrap().heartbeat, Some(payloads("2")));
    }
}

#[test]
fn a_crash_costs_only_heartbeats_that_were_not_written() {
    let mut world = started(retried);
    world.heartbeat("a", "1");
    world.pass(1);
    world.heartbeat("a", "2");
    world.crash();
    assert_eq!(world.activity("a").heartbeat, Some(payloads("1")));
}

/// No details are details too.
#[test]
fn empty_heartbeats_survive() {
    let mut world = started(retried);
    let details = Vec::new();
    world.take(Input::Heartbeat(Heartbeat { scheduled: 5, start: 1, details, room: true }));
    world.crash();
    assert_eq!(world.activity("a").heartbeat, Some(Vec::new()));
}

#[test]
fn a_heartbeat_of_another_attempt_is_refused() {
    let mut world = started(|_| {});
    let beat = Heartbeat { scheduled: 5, start: 2, details: Vec::new(), room: true };
    assert_eq!(world.refused(Input::Heartbeat(beat)), Refusal::StaleAttempt);
}

#[test]
fn an_activity_that_no_worker_has_is_cancelled_at_once() {
    let mut world = pending(|_| {});
    assert_eq!(
        cancel(&mut world),
        ["ActivityCancelRequested", "ActivityCancelled", "TaskScheduled"]
    );
    assert!(world.run.activities.is_empty());
}

#[test]
fn an_activity_that_waits_for_its_next_attempt_is_cancelled_at_once() {
    let mut world = started(retried);
    world.fail_activity("a");
    assert_eq!(cancel(&mut world)[..2], ["ActivityCancelRequested", "ActivityCancelled"]);
}

/// What a command provokes comes after all commands.
#[test]
fn an_activity_may_be_scheduled_and_cancelled_in_one_task() {
    let mut world = World::new();
    let names = world.task([activity("a"), Ask::CancelActivity("a".into()), timer("t", 10)]).names;
    let expected =
        ["ActivityScheduled", "ActivityCancelRequested", "TimerStarted", "ActivityCancelled"];
    assert_eq!(names[2..6], expected);
}

#[test]
fn a_running_activity_learns_of_the_request_by_its_heartbeat() {
    let mut world = started(|_| {});
    assert_eq!(world.heartbeat("a", "1").reply, Reply::Alive { cancel_requested: false });
    assert_eq!(cancel(&mut world), ["ActivityCancelRequested"]);
    assert_eq!(world.heartbeat("a", "2").reply, Reply::Alive { cancel_requested: true });
    let took = world.resolve("a", Resolution::Cancelled(payloads("cleaned up")));
    assert_eq!(took.names, ["ActivityStarted", "ActivityCancelled", "TaskScheduled"]);
}

#[test]
fn a_running_activity_may_complete_although_cancel_was_requested() {
    let mut world = started(|_| {});
    cancel(&mut world);
    assert_eq!(world.complete_activity("a").names[1], "ActivityCompleted");
}

#[test]
fn an_activity_can_not_cancel_itself_unasked() {
    let mut world = started(|_| {});
    let input = world.resolve_input("a", 1, Resolution::Cancelled(Vec::new()));
    let expected = "the activity cannot report cancellation: none was requested";
    assert_eq!(world.refused(input).to_string(), expected);
}

#[test]
fn an_activity_that_should_be_cancelled_is_not_retried() {
    let mut world = started(retried);
    cancel(&mut world);
    world.fail_activity("a");
    assert_eq!(failed(&world).1, RetryState::CancelRequested);
}

#[test]
fn a_lost_attempt_that_should_be_cancelled_is_cancelled() {
    let mut world = started(retried);
    cancel(&mut world);
    assert_eq!(world.lose_activity("a").names[1], "ActivityCancelled");
}

/// The result is in the buffer when code asks for the cancellation.
#[test]
fn a_buffered_result_overtakes_a_cancel_request() {
    let mut world = started(|_| {});
    world.signal("go");
    world.start_task();
    world.complete_activity("a");
    let names = world.complete([Ask::CancelActivity("a".into())]).names;
    let expected = ["ActivityCancelRequested", "ActivityStarted", "ActivityCompleted"];
    assert_eq!(names[2..5], expected);
}

/// The timeout of an activity that no worker has is in the buffer when code asks.
#[test]
fn a_buffered_timeout_overtakes_a_cancel_request() {
    let mut world = pending(|spec| spec.schedule_to_start = Some(seconds(5)));
    world.signal("go");
    world.start_task();
    world.go_to(5);
    world.activity_due("a");
    let names = world.complete([Ask::CancelActivity("a".into())]).names;
    assert_eq!(names[2..4], ["ActivityCancelRequested", "ActivityTimedOut"]);
    assert!(!names.contains(&"ActivityCancelled".into()));
}

#[test]
fn an_activity_is_cancelled_once() {
    let mut world = pending(|_| {});
    world.signal("stop");
    let asks = [Ask::CancelActivity("a".into()), Ask::CancelActivity("a".into())];
    let names = world.task(asks).names;
    assert_eq!(names.iter().filter(|name| *name == "ActivityCancelled").count(), 1);
}

#[test]
fn a_running_attempt_survives_a_crash() {
    let mut world = started(|_| {});
    world.crash();
    assert!(matches!(world.activity("a").phase, Phase::Started { .. }));
    assert_eq!(world.complete_activity("a").reply, Reply::Done);
}

#[test]
fn the_note_of_an_end_says_when_it_goes_on() {
    let mut world = started(retried);
    world.pass(3);
    world.fail_activity("a");
    let Note::AttemptEnded(ended) = world.last_note() else { panic!() };
    assert_eq!((ended.at, ended.next_at, ended.counted, ended.start), (at(3), at(4), true, 1));
}
