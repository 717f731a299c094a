//! Updates: admitted in memory, accepted and completed by events, rejected without a trace. A task
//! whose only cause is an update is scheduled in memory.

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::{Body, Fact, UpdateAdmitted, UpdateOutcome, UpdateRequest},
    failure::{Failure, FailureKind},
    limits::Limits,
    payload::Payload,
    run::{Input, Liveness, Refusal, Reply, Stage, StartRun, Task},
};

use crate::{
    build::*,
    world::{World, start_run},
};

/// An idle run that was asked for an update.
fn asked() -> World {
    let mut world = World::after([timer("t", 60)]);
    assert_eq!(world.update("u"), Stage::Admitted);
    world
}

/// A run that took an update over from the run before it.
fn carried() -> World {
    let admitted = UpdateAdmitted { update: "u".into(), request: request("set") };
    World::begin(StartRun { inputs: vec![Body::new(admitted)], ..start_run() })
}

#[test]
fn asking_writes_nothing() {
    let mut world = World::after([]);
    assert!(world.take(World::update_input("u")).names.is_empty());
    assert_eq!(world.run.liveness(), Liveness::TaskWaiting);
    assert!(world.run.task_pending());
}

#[test]
fn the_caller_asks_again_after_a_crash() {
    let mut world = asked();
    world.crash();
    assert_eq!(world.run.update_stage(&"u".into()), None);
    assert_eq!(world.update("u"), Stage::Admitted);
}

#[test]
fn a_task_brings_its_updates_in_order_of_arrival() {
    let mut world = asked();
    world.update("b");
    world.update("a");
    let given = world.start_task();
    let updates: Vec<_> = given.updates.iter().map(|(update, _)| update.as_str()).collect();
    assert_eq!(updates, ["u", "b", "a"]);
}

/// A worker may encode the same arguments in another way than the caller, with another key.
#[test]
fn history_has_the_request_as_the_caller_sent_it() {
    let as_worker = UpdateRequest { input: vec![Payload::new("other bytes")], ..request("set") };
    for mut world in [asked(), carried()] {
        let accept = Ask::AcceptUpdate { update: "u".into(), request: as_worker.clone() };
        world.task([accept]);
        let Fact::UpdateAccepted(accepted) = world.fact("UpdateAccepted") else { panic!() };
        assert_eq!(accepted.request.input, request("set").input);
        assert_eq!(world.update("u"), Stage::Accepted, "a repeat is known");
    }
}

#[test]
fn every_stage_is_told_to_who_asks_again() {
    let mut world = asked();
    assert_eq!(world.update("u"), Stage::Admitted);
    world.task([accept("u")]);
    assert_eq!(world.update("u"), Stage::Accepted);
    world.signal("go");
    world.task([complete_update("u")]);
    let outcome = UpdateOutcome::Completed(payloads("done"));
    assert_eq!(world.update("u"), Stage::Completed(outcome.clone()));
    world.crash();
    world.terminate();
    assert_eq!(world.update("u"), Stage::Completed(outcome));
    assert_eq!(world.refused(World::update_input("new")), Refusal::RunClosed);
}

#[test]
fn an_update_may_be_accepted_and_completed_in_one_task() {
    let mut world = asked();
    let took = world.task([accept("u"), complete_update("u")]);
    let expected =
        ["TaskScheduled", "TaskStarted", "TaskCompleted", "UpdateAccepted", "UpdateCompleted"];
    assert_eq!(took.names, expected);
    let Fact::UpdateCompleted(completed) = world.last_fact() else { panic!() };
    assert_eq!(completed.accepted, world.run.last_event - 1);
}

/// Doing the task again would not make it smaller.
#[test]
fn who_asked_for_an_update_is_told_that_its_outcome_is_too_large() {
    let mut world = asked();
    let bound = Limits::default().payload_bytes;
    let outcome = UpdateOutcome::Completed(vec![Payload::new("x".repeat(bound + 1))]);
    world.task([accept("u"), Ask::CompleteUpdate { update: "u".into(), outcome }]);
    let Stage::Completed(UpdateOutcome::Failed(failure)) = world.update("u") else { panic!() };
    assert!(failure.message.contains(&bound.to_string()), "{}", failure.message);

    let mut world = asked();
    let failure = Failure { message: "x".repeat(bound + 1), ..Failure::default() };
    let told =
        &world.task([Ask::RejectUpdate { update: "u".into(), failure }]).decision.rejected[0].1;
    assert!(told.message.contains(&bound.to_string()), "{}", told.message);
}

/// The worker goes back to the last completed task.
#[test]
fn a_task_that_only_rejects_leaves_nothing() {
    let mut world = asked();
    let took = world.task([reject("u")]);
    assert_eq!((took.reply, took.names.len()), (Reply::TaskDiscarded, 0));
    assert_eq!(took.decision.rejected, [("u".into(), failure("no"))]);
    assert_eq!(world.run.task, Task::Idle);
    assert_eq!(world.run.update_stage(&"u".into()), None);
}

/// Code that does not know an update must not leave its caller waiting.
#[test]
fn an_update_without_answer_is_rejected() {
    let mut world = asked();
    let took = world.task([]);
    assert_eq!(took.reply, Reply::TaskDiscarded);
    assert_eq!(took.decision.rejected[0].1.kind, FailureKind::Server);

    let mut world = asked();
    let took = world.task([timer("v", 60)]);
    assert!(matches!(took.reply, Reply::TaskTaken { .. }));
    assert_eq!(took.decision.rejected.len(), 1);
}

/// It was not part of the task.
#[test]
fn an_update_that_came_during_the_task_waits_for_the_next() {
    let mut world = asked();
    world.start_task();
    world.update("later");
    assert_eq!(world.complete([reject("u")]).decision.rejected.len(), 1);
    assert!(world.run.task_pending());
    assert_eq!(world.start_task().updates[0].0, "later".into());
}

/// Its TaskScheduled and TaskStarted have numbers that the worker saw.
#[test]
fn a_started_update_task_has_reserved_numbers() {
    let mut world = asked();
    let given = world.start_task();
    world.signal("go");
    let names = world.complete([accept("u")]).names;
    let expected =
        ["TaskScheduled", "TaskStarted", "TaskCompleted", "UpdateAccepted", "SignalReceived"];
    assert_eq!(names[..5], expected);
    assert_eq!(given.tail, world.events()[5..7]);
}

#[test]
fn a_signal_before_its_start_makes_it_a_normal_task() {
    let mut world = asked();
    assert_eq!(world.signal("go").names, ["SignalReceived", "TaskScheduled"]);
    let given = world.start_task();
    assert_eq!((given.tail.len(), given.updates.len()), (1, 1));
    let took = world.complete([reject("u")]);
    assert_eq!(took.names, ["TaskStarted", "TaskCompleted"], "a normal task is always written");
}

#[test]
fn inputs_of_a_discarded_task_are_numbered_for_the_next() {
    let mut world = asked();
    world.start_task();
    world.signal("go");
    let took = world.complete([reject("u")]);
    assert_eq!(took.reply, Reply::TaskDiscarded);
    assert_eq!(took.names, ["SignalReceived", "TaskScheduled", "BufferReleased"]);
}

#[test]
fn a_task_that_should_be_followed_is_written() {
    let mut world = asked();
    world.start_task();
    let completion =
        abide_core::run::CompleteTask { force_next: true, ..world.completion([reject("u")]) };
    let names = world.take(Input::CompleteTask(Box::new(completion))).names;
    assert_eq!(names, ["TaskScheduled", "TaskStarted", "TaskCompleted", "TaskScheduled"]);
}

#[test]
fn an_update_task_that_fails_is_written_and_keeps_its_updates() {
    let mut world = asked();
    world.start_task();
    assert_eq!(world.fail_task().names, ["TaskScheduled", "TaskStarted", "TaskFailed"]);
    world.pass(1);
    assert_eq!(world.start_task().updates.len(), 1);
}

#[test]
fn an_update_task_that_times_out_is_written() {
    let mut world = asked();
    world.start_task();
    assert_eq!(world.time_out_task().names, ["TaskScheduled", "TaskStarted", "TaskTimedOut"]);
}

#[test]
fn a_lost_update_task_leaves_nothing() {
    let mut world = asked();
    world.start_task();
    assert!(world.lose_task().names.is_empty());
    assert_eq!(world.start_task().updates.len(), 1);
}

/// Nothing of the task was promised to anybody.
#[test]
fn terminating_a_started_update_task_writes_no_task() {
    let mut world = asked();
    world.start_task();
    assert_eq!(world.terminate().names, ["RunTerminated"]);
}

/// The server forgot the update; the command brings the request.
#[test]
fn an_update_can_be_accepted_although_the_server_forgot_it() {
    let mut world = asked();
    world.signal("go");
    world.crash();
    world.task([accept("u")]);
    let Fact::UpdateAccepted(accepted) = world.last_fact() else { panic!() };
    assert_eq!(accepted.request, request("set"));
    assert_eq!(world.update("u"), Stage::Accepted);
}

#[test]
fn so_many_updates_may_wait_for_their_outcome() {
    let mut world = World::after([]);
    world.limits.pending_updates = 2;
    world.update("a");
    world.task([accept("a")]);
    world.update("b");
    let refusal = world.refused(World::update_input("c")).to_string();
    assert_eq!(refusal, "updates without outcome would exceed the limit of 2");
    assert_eq!(world.update("b"), Stage::Admitted, "a repeat is no further update");
}

#[test]
fn so_many_updates_may_a_run_have() {
    let mut world = World::after([]);
    world.limits.updates = 1;
    world.update("a");
    world.task([accept("a"), complete_update("a")]);
    let refusal = world.refused(World::update_input("b")).to_string();
    assert_eq!(refusal, "updates of the run would exceed the limit of 1");
}

#[test]
fn an_update_waits_for_a_delayed_first_task() {
    let mut world = World::begin(StartRun { first_task_at: Some(at(60)), ..start_run() });
    world.update("u");
    assert!(!world.run.task_pending());
    world.go_to(60);
    world.due(abide_core::run::TimerKey::FirstTask);
    assert_eq!(world.start_task().updates.len(), 1);
}

#[test]
fn a_carried_update_is_an_event_and_part_of_the_first_task() {
    let mut world = carried();
    assert_eq!(world.history(), ["RunStarted", "UpdateAdmitted", "TaskScheduled"]);
    assert_eq!(world.update("u"), Stage::Admitted);
    world.task([accept("u"), complete_update("u")]);
    assert!(matches!(world.update("u"), Stage::Completed(_)));
}

/// It has an event, so its rejection must be durable.
#[test]
fn the_rejection_of_a_carried_update_is_a_note() {
    let mut world = carried();
    let took = world.task([reject("u")]);
    assert_eq!(took.names, ["TaskStarted", "TaskCompleted", "UpdateRejected"]);
    assert_eq!(took.decision.rejected.len(), 1);
    world.crash();
    assert_eq!(world.update("u"), Stage::Rejected(failure("no")));
}

#[test]
fn a_carried_update_without_answer_is_rejected() {
    let mut world = carried();
    let took = world.task([]);
    assert_eq!(took.decision.rejected.len(), 1);
    assert!(matches!(world.update("u"), Stage::Rejected(_)));
    assert_eq!(world.run.pending_updates(), 0);
}

#[test]
fn a_carried_update_that_was_rejected_cannot_be_accepted_later() {
    let mut world = carried();
    world.task([reject("u")]);
    world.signal("go");
    let Reply::TaskRefused { message, .. } = world.task([accept("u")]).reply else { panic!() };
    assert_eq!(message, "command 1: update u was already rejected");
}

#[test]
fn an_update_with_an_outcome_keeps_it() {
    let mut world = asked();
    world.task([accept("u"), complete_update("u")]);
    world.signal("go");
    let took = world.task([reject("u")]);
    let Reply::TaskRefused { message, .. } = took.reply else { panic!() };
    assert_eq!(message, "command 1: update u was already accepted");
    assert_eq!(world.update("u"), Stage::Completed(UpdateOutcome::Completed(payloads("done"))));
}

/// A failed outcome is an outcome.
#[test]
fn an_update_may_fail() {
    let mut world = asked();
    let outcome = UpdateOutcome::Failed(failure("boom"));
    let fails = Ask::CompleteUpdate { update: "u".into(), outcome: outcome.clone() };
    world.task([accept("u"), fails]);
    assert_eq!(world.update("u"), Stage::Completed(outcome));
}

/// The same id with something else.
fn other(update: &str) -> Input {
    let request = UpdateRequest { input: payloads("2"), ..request("set") };
    Input::AdmitUpdate { update: update.into(), request, wait_while_blocked: false }
}

#[test]
fn an_id_that_comes_back_with_another_update_is_refused_at_every_stage() {
    let reused = Refusal::KeyReused("u".into());
    let mut world = asked();
    assert_eq!(world.refused(other("u")), reused);
    world.task([accept("u")]);
    assert_eq!(world.refused(other("u")), reused);
    world.crash();
    assert_eq!(world.refused(other("u")), reused);
    world.signal("go");
    world.task([complete_update("u")]);
    assert_eq!(world.refused(other("u")), reused);
    world.terminate();
    assert_eq!(world.refused(other("u")), reused);
    assert!(matches!(world.update("u"), Stage::Completed(_)), "the same is a repeat");
}

#[test]
fn a_carried_update_keeps_its_id_from_another() {
    let reused = Refusal::KeyReused("u".into());
    let mut world = carried();
    assert_eq!(world.refused(other("u")), reused);
    world.task([reject("u")]);
    world.crash();
    assert_eq!(world.refused(other("u")), reused);
}

#[test]
fn the_next_run_knows_what_a_completed_update_asked_for() {
    let mut world = asked();
    world.task([accept("u"), complete_update("u")]);
    world.signal("go");
    let next = ContinueAsNew { spec: spec(), signals: Vec::new(), updates: Vec::new() };
    let took = world.task([Ask::ContinueAsNew(Box::new(next))]);
    let mut next = world.successor(&took);
    assert_eq!(next.refused(other("u")), Refusal::KeyReused("u".into()));
    assert_eq!(next.update("u"), Stage::CompletedIn(world.run.id));
}

/// Code cannot judge them before it is repaired, and their callers are told so.
#[test]
fn updates_are_withdrawn_when_the_run_is_blocked_unless_a_caller_waits() {
    let mut world = asked();
    let patient = |update: &str| {
        let (update, request) = (update.into(), request("set"));
        Input::AdmitUpdate { update, request, wait_while_blocked: true }
    };
    world.take(patient("v"));
    world.update("w");
    world.take(patient("w"));
    world.start_task();
    world.block_task();
    assert_eq!(world.run.update_stage(&"u".into()), None);
    assert_eq!(world.run.update_stage(&"v".into()), Some(Stage::Admitted));
    assert_eq!(world.run.update_stage(&"w".into()), Some(Stage::Admitted));
    world.start_with("build-2").unwrap();
    let given = world.run.volatile.turn.as_ref().unwrap();
    assert_eq!(given.updates, ["v".into(), "w".into()]);
}

/// The next task shows the signal to the code, and the update with it.
#[test]
fn an_update_stays_when_something_new_makes_the_code_run_at_once() {
    let mut world = asked();
    world.start_task();
    world.signal("go");
    world.block_task();
    assert_eq!(world.run.update_stage(&"u".into()), Some(Stage::Admitted));
    world.start_task();
    world.block_task();
    assert_eq!(world.run.update_stage(&"u".into()), None);
}
