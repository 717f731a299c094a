//! How runs end and what follows them: continue-as-new, retry, cron, timeouts.

use abide_core::{
    command::{Ask, ContinueAsNew},
    effect::Action,
    event::*,
    failure::{FailureKind, TimeoutKind},
    retry::RetryState,
    run::{Close, CompleteTask, Input, Reply, Stage, StartRun, Status, Task, TimerKey},
};

use crate::{
    build::*,
    world::{Took, World, start_run},
};

fn how(world: &World) -> Close {
    match world.run.status {
        Status::Closed { how, .. } => how,
        Status::Open => panic!("the run is open"),
    }
}

fn next_run(world: &World) -> Option<abide_core::ids::RunId> {
    match world.run.status {
        Status::Closed { next_run, .. } => next_run,
        Status::Open => panic!("the run is open"),
    }
}

fn fail_run() -> Ask {
    Ask::FailRun(failure("boom"))
}

/// Completes a task by continuing as new with these events and updates.
fn continue_as_new(world: &mut World, signals: Vec<u64>, updates: Vec<&str>) -> Took {
    let carried = world.events().into_iter().filter(|event| match &event.body.fact {
        Fact::UpdateAccepted(accepted) => updates.contains(&accepted.update.as_str()),
        _ => signals.contains(&event.number),
    });
    let carried = carried.map(|event| event.body).collect();
    let updates = updates.into_iter().map(Into::into).collect();
    let next = Ask::ContinueAsNew(Box::new(ContinueAsNew { spec: spec(), signals, updates }));
    world.start_task();
    let completion = CompleteTask { carried, ..world.completion([next]) };
    world.take(Input::CompleteTask(Box::new(completion)))
}

#[test]
fn every_way_to_close_by_code() {
    let cases = [
        (complete_run(), "RunCompleted", Close::Completed),
        (fail_run(), "RunFailed", Close::Failed),
        (Ask::CancelRun(Vec::new()), "RunCancelled", Close::Cancelled),
    ];
    for (ask, name, close) in cases {
        let mut world = World::new();
        let took = world.task([timer("t", 60), activity("a"), open_wait("w", None), ask]);
        assert_eq!(took.names.last().unwrap(), name);
        assert_eq!((how(&world), next_run(&world)), (close, None));
        let run = &world.run;
        assert!(run.timers.is_empty() && run.activities.is_empty() && run.waits.is_empty());
        assert_eq!(run.task, Task::Idle);
    }
}

#[test]
fn a_new_run_goes_on_in_the_same_chain() {
    let mut world = World::with(RunSpec { execution_timeout: Some(seconds(90)), ..spec() });
    world.go_to(5);
    let took = continue_as_new(&mut world, Vec::new(), Vec::new());
    assert_eq!((how(&world), next_run(&world)), (Close::ContinuedAsNew, Some(run_id(2))));
    let next = world.successor(&took);
    let run = &next.run;
    assert_eq!((run.id, run.ordinal, run.attempt), (run_id(2), 2, 1));
    assert_eq!((run.first_run, run.original_run), (run_id(1), run_id(2)));
    assert_eq!(run.expires_at, Some(at(90)), "the chain's time was fixed at its beginning");
    let Fact::RunStarted(started) = next.fact("RunStarted") else { panic!() };
    let previous = started.previous.unwrap();
    assert_eq!((previous.run, previous.initiator), (run_id(1), Initiator::ContinueAsNew));
}

/// Also fields of a newer version survive, because the bytes are copied.
#[test]
fn carried_signals_keep_their_bodies_and_keys() {
    let mut world = World::new();
    let input = world.signal_input("unread", Some("k"));
    world.take(input);
    world.signal("read");
    let unread = world.events()[2].body.stored().cloned();
    world.go_to(9);
    let took = continue_as_new(&mut world, vec![3], Vec::new());
    let mut next = world.successor(&took);
    assert_eq!(next.history(), ["RunStarted", "SignalReceived", "TaskScheduled"]);
    assert_eq!(next.events()[1].body.stored().cloned(), unread);
    let again = next.signal_input("unread", Some("k"));
    assert_eq!(next.take(again).reply, Reply::Repeat);
}

/// Each run numbers its timers from the start, so a repeated reschedule must not hit a timer of the
/// new run.
#[test]
fn keys_of_moves_are_carried_over() {
    let mut world = World::after([timer("t", 60)]);
    let input = World::move_input("t", at(90), Some("k"));
    assert_eq!(world.take(input.clone()).reply, Reply::Done);
    world.signal("wake");
    let took = continue_as_new(&mut world, Vec::new(), Vec::new());
    let mut next = world.successor(&took);
    next.task([timer("t", 60)]);
    assert_eq!(next.take(input).reply, Reply::Repeat);
}

#[test]
fn keys_of_read_signals_are_carried_too_the_newest_of_them() {
    let mut world = World::new();
    for key in ["old", "middle", "new"] {
        let input = world.signal_input("go", Some(key));
        world.take(input);
    }
    world.limits.carried_keys = 2;
    let took = continue_as_new(&mut world, Vec::new(), Vec::new());
    let mut next = world.successor(&took);
    for (key, reply) in [("old", Reply::Done), ("middle", Reply::Repeat), ("new", Reply::Repeat)] {
        let input = next.signal_input("go", Some(key));
        assert_eq!(next.take(input).reply, reply, "{key}");
    }
}

#[test]
fn carried_keys_have_a_bound_in_bytes_too() {
    let mut world = World::new();
    for key in ["old", "middle", "new"] {
        let input = world.signal_input("go", Some(key));
        world.take(input);
    }
    world.limits.carried_key_bytes = "middle".len() + "new".len();
    let took = continue_as_new(&mut world, Vec::new(), Vec::new());
    let next = world.successor(&took);
    let known = |key: &str| next.run.signal_keys.contains(&key.into());
    assert_eq!(["old", "middle", "new"].map(known), [false, true, true]);
}

#[test]
fn unfinished_updates_are_delivered_to_the_new_run_again() {
    let mut world = World::new();
    world.update("u");
    world.task([accept("u")]);
    world.signal("go");
    let took = continue_as_new(&mut world, Vec::new(), vec!["u"]);
    let mut next = world.successor(&took);
    assert_eq!(next.history(), ["RunStarted", "UpdateAdmitted", "TaskScheduled"]);
    assert_eq!(next.update("u"), Stage::Admitted);
    let Fact::UpdateAdmitted(admitted) = next.fact("UpdateAdmitted") else { panic!() };
    assert_eq!(admitted.request, request("set"));
}

/// Over any number of runs.
#[test]
fn completed_updates_stay_known_with_the_run_that_has_the_outcome() {
    let mut world = World::new();
    world.update("u");
    world.task([accept("u"), complete_update("u")]);
    world.signal("go");
    let took = continue_as_new(&mut world, Vec::new(), Vec::new());
    let mut second = world.successor(&took);
    assert_eq!(second.update("u"), Stage::CompletedIn(run_id(1)));
    let took = continue_as_new(&mut second, Vec::new(), Vec::new());
    assert_eq!(second.successor(&took).update("u"), Stage::CompletedIn(run_id(1)));
}

#[test]
fn continuing_as_new_with_unseen_inputs_is_refused() {
    let mut world = World::new();
    world.start_task();
    world.signal("go");
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took = world.complete([Ask::ContinueAsNew(Box::new(next))]);
    assert!(matches!(took.reply, Reply::TaskRefused { .. }));
}

/// A run with a policy of three attempts.
fn retried() -> World {
    World::with(RunSpec { retry: Some(policy_of(3)), ..spec() })
}

#[test]
fn an_update_accepted_by_the_task_that_continues_as_new_is_carried_over() {
    let mut world = World::after([]);
    world.update("u");
    world.start_task();
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: vec!["u".into()] };
    let took = world.complete([accept("u"), Ask::ContinueAsNew(Box::new(next))]);
    let successor = world.successor(&took);
    assert_eq!(successor.history(), ["RunStarted", "UpdateAdmitted", "TaskScheduled"]);
}

#[test]
fn a_failed_run_is_tried_again_after_the_delay() {
    let mut world = retried();
    world.go_to(5);
    let took = world.task([fail_run()]);
    let Fact::RunFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!((failed.retry_state, failed.next_run), (RetryState::InProgress, Some(run_id(2))));
    let next = world.successor(&took);
    assert_eq!((next.run.attempt, next.run.first_task_at), (2, Some(at(6))));
    assert_eq!(next.history(), ["RunStarted"]);
    let Fact::RunStarted(started) = next.last_fact() else { panic!() };
    let previous = started.previous.unwrap();
    assert_eq!((previous.initiator, previous.failure), (Initiator::Retry, Some(failure("boom"))));
}

#[test]
fn the_first_task_of_a_retry_comes_when_it_is_due() {
    let mut world = retried();
    let took = world.task([fail_run()]);
    let mut next = world.successor(&took);
    assert_eq!(next.due(TimerKey::FirstTask).reply, Reply::NotDue);
    next.signal("go");
    assert_eq!(next.run.task, Task::Idle, "a signal does not cut the delay short");
    next.go_to(1);
    assert_eq!(next.due(TimerKey::FirstTask).names, ["TaskScheduled"]);
    assert_eq!(next.due(TimerKey::FirstTask).reply, Reply::NotDue);
}

#[test]
fn attempts_of_a_chain_are_counted_and_limited() {
    let mut world = retried();
    for attempt in 1..=3 {
        assert_eq!(world.run.attempt, attempt);
        world.now = world.run.first_task_at.unwrap_or(world.now);
        world.due(TimerKey::FirstTask);
        let took = world.task([fail_run()]);
        if attempt < 3 {
            world = world.successor(&took);
        }
    }
    let Fact::RunFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!(failed.retry_state, RetryState::MaximumAttemptsReached);
    assert_eq!(failed.next_run, None);
}

#[test]
fn a_failure_may_forbid_a_retry() {
    let mut world = retried();
    let mut fatal = failure("boom");
    fatal.non_retryable = true;
    world.task([Ask::FailRun(fatal)]);
    let Fact::RunFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!((failed.retry_state, failed.next_run), (RetryState::NonRetryableFailure, None));
}

#[test]
fn no_retry_begins_after_the_chains_time() {
    let retry = Some(policy());
    let mut world = World::with(RunSpec { retry, execution_timeout: Some(seconds(10)), ..spec() });
    world.go_to(9);
    world.task([fail_run()]);
    let Fact::RunFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!((failed.retry_state, failed.next_run), (RetryState::Timeout, None));
}

/// A run that begins at each full hour; worlds begin at 08:00.
fn hourly() -> World {
    World::with(RunSpec { cron: Some("0 * * * *".into()), ..spec() })
}

#[test]
fn a_completed_cron_run_is_followed_at_the_next_time() {
    let mut world = hourly();
    world.go_to(60);
    let took = world.task([complete_run()]);
    assert_eq!(next_run(&world), Some(run_id(2)));
    let mut next = world.successor(&took);
    assert_eq!((next.run.first_task_at, next.run.attempt), (Some(at(3600)), 1));
    assert_eq!(next.run.last_result, Some(payloads("result")));
    next.go_to(3600);
    next.due(TimerKey::FirstTask);
    let took = next.task([fail_run()]);
    let third = next.successor(&took);
    assert_eq!(third.run.first_task_at, Some(at(7200)));
    assert_eq!(third.run.last_result, Some(payloads("result")), "a failure keeps the last result");
    let Fact::RunStarted(started) = third.last_fact() else { panic!() };
    assert_eq!(started.previous.unwrap().initiator, Initiator::Cron);
}

#[test]
fn a_retry_comes_before_cron() {
    let (retry, cron) = (Some(policy_of(2)), Some("0 * * * *".into()));
    let mut world = World::with(RunSpec { retry, cron, ..spec() });
    let took = world.task([fail_run()]);
    let mut second = world.successor(&took);
    assert_eq!(second.run.first_task_at, Some(at(1)));
    second.go_to(1);
    second.due(TimerKey::FirstTask);
    let took = second.task([fail_run()]);
    let third = second.successor(&took);
    assert_eq!((third.run.attempt, third.run.first_task_at), (1, Some(at(3600))));
}

#[test]
fn cron_ends_with_the_chains_time_and_with_a_cancel_or_terminate() {
    let cron = Some("0 * * * *".to_owned());
    let execution_timeout = Some(seconds(3600));
    let mut world = World::with(RunSpec { cron, execution_timeout, ..spec() });
    world.task([complete_run()]);
    assert_eq!(next_run(&world), None);
    let mut world = hourly();
    world.task([Ask::CancelRun(Vec::new())]);
    assert_eq!(next_run(&world), None);
    let mut world = hourly();
    world.terminate();
    assert_eq!(next_run(&world), None);
}

#[test]
fn a_run_times_out() {
    let mut world = World::with(RunSpec { run_timeout: Some(seconds(10)), ..spec() });
    world.start_task();
    world.signal("go");
    assert_eq!(world.due(TimerKey::Deadline).reply, Reply::NotDue);
    world.go_to(10);
    let names = world.due(TimerKey::Deadline).names;
    let expected = ["TaskStarted", "TaskFailed", "SignalReceived", "RunTimedOut", "BufferReleased"];
    assert_eq!(names, expected, "nothing that was acknowledged is missing");
    assert_eq!(how(&world), Close::TimedOut);
}

#[test]
fn a_run_that_timed_out_is_tried_again() {
    let (retry, run_timeout) = (Some(policy()), Some(seconds(10)));
    let mut world = World::with(RunSpec { retry, run_timeout, ..spec() });
    world.go_to(10);
    let took = world.due(TimerKey::Deadline);
    let Fact::RunTimedOut(timed_out) = world.last_fact() else { panic!() };
    assert_eq!(timed_out.retry_state, RetryState::InProgress);
    let Fact::RunStarted(started) = world.successor(&took).last_fact() else { panic!() };
    let failure = started.previous.unwrap().failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout(TimeoutKind::StartToClose));
}

/// The time before the first task does not count, neither before nor after it was scheduled.
#[test]
fn the_run_timeout_begins_with_the_first_task() {
    let spec = RunSpec { run_timeout: Some(seconds(10)), ..spec() };
    let mut world = World::begin(StartRun { first_task_at: Some(at(60)), spec, ..start_run() });
    assert_eq!(world.run.deadline(), Some(at(70)));
    world.go_to(60);
    world.due(TimerKey::FirstTask);
    assert_eq!(world.run.deadline(), Some(at(70)));
    assert_eq!(world.due(TimerKey::Deadline).reply, Reply::NotDue);
}

#[test]
fn the_earlier_of_run_and_execution_timeout_holds() {
    let both = |run: u64, execution: u64| {
        let (run, execution) = (Some(seconds(run)), Some(seconds(execution)));
        let spec = RunSpec { run_timeout: run, execution_timeout: execution, ..spec() };
        World::with(spec).run.deadline()
    };
    assert_eq!((both(5, 9), both(9, 5)), (Some(at(5)), Some(at(5))));
    assert_eq!(World::new().run.deadline(), None);
}

#[test]
fn a_parent_is_not_told_while_the_chain_goes_on() {
    let parent = Some(Parent { run: other(), initiated: 5, ordinal: 1 });
    let spec = RunSpec { retry: Some(policy_of(2)), ..spec() };
    let mut world = World::begin(StartRun { parent, spec, ..start_run() });
    let took = world.task([fail_run()]);
    assert!(world.run.outbox.is_empty());
    let mut next = world.successor(&took);
    next.go_to(1);
    next.due(TimerKey::FirstTask);
    next.task([fail_run()]);
    let Action::ChildClosed(closed) = &next.effects()[0].action else { panic!() };
    assert_eq!((closed.first_run, closed.run), (run_id(1), run_id(2)));
}

#[test]
fn a_full_history_ends_the_run() {
    let mut world = World::new();
    (world.limits.events, world.limits.events_reserve) = (2, 1);
    world.start_task();
    let took = world.complete([timer("a", 10), timer("b", 10)]);
    assert_eq!(took.names, ["TaskStarted", "TaskFailed", "RunTerminated"]);
    let Reply::TaskRefused { cause, message } = took.reply else { panic!() };
    assert_eq!(cause, TaskFailureCause::Closed);
    assert_eq!(message, "the history would exceed the limit of 3 events");
}

/// The reserve is for this.
#[test]
fn a_full_history_may_be_closed_by_code() {
    let mut world = World::new();
    (world.limits.events, world.limits.events_reserve) = (2, 0);
    world.task([timer("a", 10), complete_run()]);
    assert_eq!(how(&world), Close::Completed);
}
