//! Reset: the new run begins with a copy, gets what it must get, and both runs say so.

use abide_core::{
    codec,
    command::Ask,
    effect::{Action, AdoptChild, ChildClosed, EffectOutcome, RunOutcome},
    event::*,
    ids::EventNumber,
    run::{Close, Input, Phase, Reapply, Refusal, Reply, ResetPoint, Stage, Status},
};
use bytes::Bytes;

use crate::{
    build::*,
    world::{World, start_run},
};

const NONE: Reapply = Reapply { signals: false, updates: false };

fn reset(world: &mut World, to: ResetPoint) -> World {
    world.reset(to, Reapply::ALL).unwrap()
}

fn started(world: &World) -> RunStarted {
    match &world.events()[0].body.fact {
        Fact::RunStarted(started) => (**started).clone(),
        other => panic!("begins with {}", other.name()),
    }
}

/// Two tasks: one that started a timer, and one that saw a signal.
fn two_tasks() -> World {
    let mut world = World::after([timer("t", 60)]);
    world.pass(10);
    world.signal("first");
    world.task([]);
    world
}

#[test]
fn the_new_run_goes_on_from_the_first_task() {
    let mut world = two_tasks();
    world.pass(10);
    let new = reset(&mut world, ResetPoint::FirstTask);
    assert_eq!(
        new.history(),
        [
            "RunStarted",
            "TaskScheduled",
            "TaskStarted",
            "TaskFailed",
            "SignalReceived",
            "TaskScheduled"
        ]
    );
    let Fact::TaskFailed(failed) = new.fact("TaskFailed") else { panic!() };
    assert_eq!((failed.cause, failed.scheduled, failed.started), (TaskFailureCause::Reset, 2, 3));
    let RunStarted { run, ordinal, original_run, first_run, reset, key, .. } = started(&new);
    assert_eq!((run, ordinal, key), (run_id(9), 2, None));
    assert_eq!((original_run, first_run), (run_id(1), run_id(1)));
    let reset = reset.unwrap();
    assert_eq!((reset.base.run, reset.copied, reset.at), (run_id(1), 3, world.now));
    assert!(new.run.timers.is_empty(), "it had not been started then");
    assert_eq!((new.run.id, new.run.reset_from), (run_id(9), Some(run_id(1))));
}

#[test]
fn an_open_run_is_terminated_and_says_where_it_went() {
    let mut world = two_tasks();
    reset(&mut world, ResetPoint::LastTask);
    let Fact::RunTerminated(ended) = world.last_fact() else { panic!("{:?}", world.history()) };
    assert_eq!(ended.reason, "reset: wrong turn");
    assert_eq!(ended.reset.unwrap().run, run_id(9));
    let Status::Closed { how, next_run, .. } = world.run.status else { panic!("it is open") };
    assert_eq!((how, next_run), (Close::Terminated, Some(run_id(9))));
}

#[test]
fn a_closed_run_keeps_its_outcome_and_says_where_it_went() {
    let mut world = two_tasks();
    world.signal("last");
    world.task([Ask::FailRun(failure("no"))]);
    let history = world.history();
    reset(&mut world, ResetPoint::LastTask);
    assert_eq!(world.history(), history, "nothing follows the close");
    let Status::Closed { how, next_run, .. } = world.run.status else { panic!("it is open") };
    assert_eq!((how, next_run), (Close::Failed, Some(run_id(9))));
}

#[test]
fn events_are_copied_byte_for_byte() {
    let mut world = World::after([timer("t", 60)]);
    // A newer version has written a field that this one does not know.
    let mut bytes = codec::encode_body(&Body::new(SignalReceived::default())).to_vec();
    bytes.extend([0xf8, 0x3f, 0x07]);
    let body = codec::decode_body(Bytes::from(bytes)).unwrap();
    world.append_body(body);
    world.append(TaskScheduled::default());
    world.task([]);
    let new = reset(&mut world, ResetPoint::LastTask);
    let (old, new) = (world.events(), new.events());
    let copied = new.iter().position(is_failed).unwrap();
    assert_eq!(copied, 8);
    for (old, new) in old[1..copied].iter().zip(&new[1..copied]) {
        assert_eq!(old.body.stored(), new.body.stored());
        assert_eq!((old.number, old.time), (new.number, new.time));
    }
}

fn is_failed(event: &Event) -> bool {
    matches!(event.body.fact, Fact::TaskFailed(_))
}

#[test]
fn later_signals_follow_once_and_in_order() {
    let mut world = World::after([timer("t", 60)]);
    for name in ["a", "b"] {
        let input = world.signal_input(name, Some(name));
        world.take(input);
        world.task([]);
    }
    world.signal("c");
    world.start_task();
    let buffered = world.signal_input("d", Some("d"));
    world.take(buffered);
    let mut new = reset(&mut world, ResetPoint::FirstTask);
    assert_eq!(signals(&new), ["a", "b", "c", "d"]);
    let again = new.signal_input("d", Some("d"));
    assert_eq!(new.take(again).reply, Reply::Repeat);
}

fn signals(world: &World) -> Vec<String> {
    let name = |event: &Event| match &event.body.fact {
        Fact::SignalReceived(signal) => Some(signal.name.clone()),
        _ => None,
    };
    world.events().iter().filter_map(name).collect()
}

#[test]
fn dropped_signals_stay_dropped_when_they_are_repeated() {
    let mut world = World::after([timer("t", 60)]);
    let input = world.signal_input("a", Some("a"));
    world.take(input);
    world.task([]);
    let mut new = world.reset(ResetPoint::FirstTask, NONE).unwrap();
    assert_eq!(signals(&new), [""; 0]);
    let again = new.signal_input("a", Some("a"));
    assert_eq!(new.take(again).reply, Reply::Repeat);
    assert_eq!(signals(&new), [""; 0]);
}

#[test]
fn later_updates_are_admitted_again() {
    let mut world = World::after([timer("t", 60)]);
    world.update("u");
    world.task([accept("u"), complete_update("u")]);
    let mut new = reset(&mut world, ResetPoint::FirstTask);
    assert_eq!(new.fact("UpdateAdmitted").name(), "UpdateAdmitted");
    assert_eq!(new.update("u"), Stage::Admitted);
    let mut new = World::after([timer("t", 60)]);
    new.update("u");
    new.task([accept("u"), complete_update("u")]);
    let mut dropped = new.reset(ResetPoint::FirstTask, NONE).unwrap();
    assert_eq!(dropped.update("u"), Stage::CompletedIn(run_id(1)));
}

/// A rejection is no event. It counts as long as the task in which code rejected the update is copied.
#[test]
fn an_update_that_was_carried_over_and_rejected_stays_rejected() {
    let mut world = World::after([timer("t", 60)]);
    world.update("u");
    world.task([accept("u"), complete_update("u")]);
    let mut new = reset(&mut world, ResetPoint::FirstTask);
    new.task([reject("u")]);
    new.signal("later");
    new.task([]);
    let mut again = reset(&mut new, ResetPoint::LastTask);
    assert_eq!(again.update("u"), Stage::Rejected(failure("no")));
    again.check_every_snapshot();

    let mut new = reset(&mut world, ResetPoint::FirstTask);
    new.task([reject("u")]);
    let mut again = reset(&mut new, ResetPoint::LastTask);
    assert_eq!(again.update("u"), Stage::Admitted, "the code judges it again");
}

#[test]
fn timers_keep_their_due_time_and_activities_begin_again() {
    let mut world = World::after([timer("t", 60), activity("a")]);
    world.start_activity("a");
    world.signal("go");
    world.task([]);
    world.pass(100);
    world.fire("t");
    world.complete_activity("a");
    world.task([complete_run()]);
    world.pass(100);
    let new = reset(&mut world, ResetPoint::Event(9));
    assert_eq!(new.timer_due("t"), Some(at(60)), "it fires at once");
    let pending = new.activity("a");
    assert_eq!((pending.attempt, pending.starts), (1, 0));
    assert_eq!(pending.phase, Phase::Ready { since: world.now });
    assert_eq!(pending.scheduled_at, world.now, "its limits count from the reset");
}

#[test]
fn timeouts_of_the_run_begin_again() {
    let spec =
        RunSpec { run_timeout: Some(seconds(60)), execution_timeout: Some(seconds(100)), ..spec() };
    let mut world = World::with(spec);
    world.task([timer("t", 500)]);
    world.pass(200);
    world.due(abide_core::run::TimerKey::Deadline);
    let new = reset(&mut world, ResetPoint::FirstTask);
    assert_eq!(new.run.deadline(), Some(at(260)));
    assert_eq!(new.run.expires_at, Some(at(300)));
    assert_eq!(new.run.started_at, at(200));
}

/// The place of the task that a reset goes back to.
fn place(world: &mut World, to: ResetPoint) -> Result<EventNumber, Refusal> {
    world.clone().reset(to, Reapply::ALL).map(|new| new.run.copied)
}

#[test]
fn a_task_is_named_by_any_of_its_events_or_by_its_build() {
    let mut world = two_tasks();
    assert_eq!(
        world.history()[5..],
        ["SignalReceived", "TaskScheduled", "TaskStarted", "TaskCompleted"]
    );
    for number in [7, 8, 9] {
        assert_eq!(place(&mut world, ResetPoint::Event(number)), Ok(8));
    }
    assert_eq!(place(&mut world, ResetPoint::LastTask), Ok(8));
    assert_eq!(place(&mut world, ResetPoint::Build("build-1".into())), Ok(3));
    world.signal("second");
    world.start_with("build-2").unwrap();
    world.complete([]);
    assert_eq!(place(&mut world, ResetPoint::Build("build-2".into())), Ok(12));
}

#[test]
fn a_task_that_does_not_exist_is_refused_with_those_that_do() {
    let mut world = two_tasks();
    for number in [1, 5, 6, 10, 99] {
        let refusal = place(&mut world, ResetPoint::Event(number)).unwrap_err().to_string();
        assert!(refusal.ends_with("tasks were completed by event 4, 9"), "{refusal}");
    }
    let refusal = place(&mut world, ResetPoint::Build("other".into())).unwrap_err().to_string();
    assert!(refusal.ends_with("builds of this run: build-1"), "{refusal}");
    let refusal = place(&mut world, ResetPoint::Failure).unwrap_err().to_string();
    assert!(refusal.contains("no step of the run failed"), "{refusal}");
    let refusal = place(&mut World::new(), ResetPoint::FirstTask).unwrap_err().to_string();
    assert!(refusal.contains("start the workflow again"), "{refusal}");
}

#[test]
fn before_the_failure_what_was_done_stays_done() {
    let mut world = World::after([activity("a"), activity("b")]);
    world.start_activity("a");
    world.complete_activity("a");
    world.task([]);
    world.start_activity("b");
    world.fail_activity("b");
    world.task([Ask::FailRun(failure("b failed"))]);
    let new = reset(&mut world, ResetPoint::Failure);
    assert!(new.history().contains(&"ActivityCompleted".to_owned()));
    assert_eq!(new.run.activities.len(), 1);
    assert_eq!(new.activity("b").attempt, 1);
    assert!(!new.history().contains(&"ActivityFailed".to_owned()));
}

#[test]
fn of_recorded_retries_the_whole_activity_is_repeated() {
    let first = activity_spec("a");
    let mut world = World::after([Ask::ScheduleActivity(first.clone())]);
    world.start_activity("a");
    world.fail_activity("a");
    let retry_of = Some(world.run.id.execution_id(5));
    let again = ActivitySpec { activity: "a2".into(), retry_of, attempt: 2, ..first };
    world.task([Ask::ScheduleActivity(again)]);
    world.start_activity("a2");
    world.fail_activity("a2");
    world.task([Ask::FailRun(failure("a failed"))]);
    assert_eq!(place(&mut world, ResetPoint::Failure), Ok(3));
}

#[test]
fn if_code_failed_by_itself_its_last_task_runs_again() {
    let mut world = two_tasks();
    world.signal("second");
    world.task([Ask::FailRun(failure("no"))]);
    assert_eq!(place(&mut world, ResetPoint::Failure), Ok(12));
}

/// A run with a started child, and its effect number.
fn parent() -> World {
    let mut world = World::after([child("kept")]);
    world.answer(1, EffectOutcome::Applied);
    world.task([]);
    world
}

fn adoption(world: &World) -> Option<&AdoptChild> {
    world.effects().into_iter().find_map(|effect| match &effect.action {
        Action::AdoptChild(adopt) => Some(adopt),
        _ => None,
    })
}

#[test]
fn children_stay_and_get_the_new_run_as_their_parent() {
    let mut world = parent();
    let child_run = world.run.children[&5].run;
    world.signal("go");
    world.task([child("left")]);
    world.answer(2, EffectOutcome::Applied);
    let mut new = reset(&mut world, ResetPoint::Event(9));
    let targets: Vec<_> = world.effects().iter().map(|effect| &effect.target.workflow).collect();
    assert_eq!(targets, [&workflow("left")], "only the later child is ended");
    let adopt = adoption(&new).unwrap();
    assert_eq!((adopt.run, adopt.parent.run.run, adopt.parent.ordinal), (child_run, run_id(9), 2));
    let number = *new.run.outbox.keys().next().unwrap();
    assert_eq!(new.answer(number, EffectOutcome::Applied).names, ["EffectSettled"]);
    let outcome = RunOutcome::Completed(payloads("done"));
    let closed = ChildClosed { initiated: 5, first_run: child_run, run: child_run, outcome };
    new.deliver(Action::ChildClosed(closed));
    assert_eq!(new.fact("ChildCompleted").name(), "ChildCompleted");
}

#[test]
fn a_child_that_is_gone_counts_as_terminated() {
    let mut world = parent();
    let mut new = reset(&mut world, ResetPoint::LastTask);
    let number = *new.run.outbox.keys().next().unwrap();
    new.answer(number, EffectOutcome::Failed(DeliveryFailure::NotFound));
    let Fact::ChildTerminated(ended) = new.fact("ChildTerminated") else { panic!() };
    assert_eq!(ended.reason, "the child no longer exists");
}

#[test]
fn the_result_of_a_child_is_delivered_again() {
    let mut world = World::after([child("kept")]);
    world.signal("go");
    world.task([]);
    world.answer(1, EffectOutcome::Applied);
    let run = world.run.children[&5].run;
    let outcome = RunOutcome::Completed(payloads("done"));
    world.deliver(Action::ChildClosed(ChildClosed { initiated: 5, first_run: run, run, outcome }));
    world.task([complete_run()]);
    let new = reset(&mut world, ResetPoint::Event(8));
    let tail = &new.history()[8..];
    assert_eq!(tail, ["TaskFailed", "ChildStarted", "ChildCompleted", "TaskScheduled"]);
    assert!(new.run.outbox.is_empty(), "nothing is asked of a child that is over");
}

#[test]
fn an_adopted_child_tells_its_new_parent() {
    let old = Parent { run: other(), initiated: 5, ordinal: 1 };
    let new = Parent { ordinal: 2, ..old.clone() };
    let adopt =
        |parent: &Parent| Action::AdoptChild(AdoptChild { run: run_id(1), parent: parent.clone() });
    let mut world =
        World::begin(abide_core::run::StartRun { parent: Some(old.clone()), ..start_run() });
    world.deliver(adopt(&new));
    assert_eq!(world.run.parent, Some(new.clone()));
    assert!(world.deliver(adopt(&old)).names.is_empty(), "a request that was overtaken");
    assert_eq!(world.run.parent, Some(new));

    let mut closed =
        World::begin(abide_core::run::StartRun { parent: Some(old.clone()), ..start_run() });
    closed.task([complete_run()]);
    closed.answer(1, EffectOutcome::Failed(DeliveryFailure::Closed));
    closed.deliver(adopt(&Parent { ordinal: 2, ..old }));
    assert!(matches!(closed.effects()[0].action, Action::ChildClosed(_)), "its outcome");
}

#[test]
fn a_command_to_another_workflow_must_have_its_answer() {
    let mut world = World::after([signal_external("hello")]);
    world.signal("go");
    world.task([]);
    assert_eq!(place(&mut world, ResetPoint::LastTask), Err(Refusal::Unanswered(5)));
    assert_eq!(place(&mut world, ResetPoint::FirstTask), Ok(3), "then it is sent again");
    world.answer(1, EffectOutcome::Applied);
    let new = reset(&mut world, ResetPoint::LastTask);
    assert!(new.history().contains(&"ExternalSignalDelivered".to_owned()));
    assert!(new.run.outbox.is_empty(), "it is not sent twice");
}

#[test]
fn a_paused_run_stays_paused_and_a_pause_that_ended_is_over() {
    let mut world = two_tasks();
    world.pause();
    let mut new = reset(&mut world, ResetPoint::LastTask);
    assert!(new.run.paused);
    assert!(!new.run.task_pending());
    new.unpause();
    assert!(new.run.task_pending());

    let mut world = World::after([]);
    world.signal("go");
    world.pause();
    world.unpause();
    world.task([]);
    assert!(!reset(&mut world, ResetPoint::LastTask).run.paused);
}

#[test]
fn cancel_requests_are_not_repeated() {
    let mut world = two_tasks();
    let cancel =
        Input::RequestCancel(RunCancelRequested { key: Some("c".into()), ..Default::default() });
    world.take(cancel.clone());
    let mut new = reset(&mut world, ResetPoint::LastTask);
    assert!(!new.run.cancel_requested);
    assert_eq!(new.take(cancel).reply, Reply::Repeat, "it was meant for the old run");
}

#[test]
fn a_run_can_be_reset_again() {
    let mut world = parent();
    let mut new = reset(&mut world, ResetPoint::LastTask);
    new.task([timer("t", 60)]);
    let again = new.reset(ResetPoint::LastTask, Reapply::ALL).unwrap();
    assert_eq!(again.run.original_run, run_id(1));
    assert_eq!(again.effects().len(), 1, "the child is adopted once");
    again.check_every_snapshot();
}

#[test]
fn a_repeat_is_known_to_both_runs() {
    let mut world = two_tasks();
    let new = reset(&mut world, ResetPoint::LastTask);
    let key = abide_core::ids::Key::from("once");
    assert_eq!(world.run.reset_by(Some(&key)), Some(run_id(9)));
    assert_eq!(new.run.reset_by(Some(&key)), Some(run_id(9)));
    assert_eq!(new.run.reset_by(None), None);
}
