//! Children and requests to other workflows: the outbox, the answers, and what others do to this run.

use abide_core::{
    command::Ask,
    effect::{Action, ChildClosed, EffectOutcome, RunOutcome},
    event::*,
    ids::RunId,
    retry::{RetryPolicy, RetryState},
    run::{Close, Input, Refusal, Reply, StartRun, Status},
};

use crate::{
    build::*,
    world::{World, start_run},
};

/// A run that asked for a child, as event 5 and effect 1.
fn initiated() -> World {
    World::after([child("c")])
}

/// A run whose child runs.
fn running() -> World {
    let mut world = initiated();
    world.answer(1, EffectOutcome::Applied);
    world.task([]);
    world
}

fn closed(world: &World, outcome: RunOutcome) -> Action {
    let run = match world.fact("ChildInitiated") {
        Fact::ChildInitiated(initiated) => initiated.run,
        other => panic!("{other:?}"),
    };
    Action::ChildClosed(ChildClosed { initiated: 5, first_run: run, run, outcome })
}

fn outcomes() -> [(RunOutcome, &'static str); 5] {
    let (failure, retry_state) = (failure("boom"), RetryState::PolicyNotSet);
    [
        (RunOutcome::Completed(payloads("result")), "ChildCompleted"),
        (RunOutcome::Failed { failure, retry_state }, "ChildFailed"),
        (RunOutcome::TimedOut { retry_state }, "ChildTimedOut"),
        (RunOutcome::Cancelled(Vec::new()), "ChildCancelled"),
        (RunOutcome::Terminated { reason: "enough".into() }, "ChildTerminated"),
    ]
}

#[test]
fn a_child_is_started_through_the_outbox() {
    let world = initiated();
    let Action::StartChild(start) = &world.effects()[0].action else { panic!() };
    assert_eq!(start.run, RunId::of_child(world.run.id, 5, at(0)));
    assert_eq!(start.parent, Parent { run: world.run.reference(), initiated: 5, ordinal: 1 });
    assert_eq!(start.root, world.run.reference());
    assert_eq!(world.effects()[0].target, target("c"));
}

/// The parent makes recorded retries, so only it knows whether one follows.
#[test]
fn the_close_of_a_child_tells_the_state_of_recorded_retries() {
    let policy = RetryPolicy { maximum_attempts: 2, ..RetryPolicy::default() }.recorded();
    for (attempt, expected) in
        [(0, RetryState::InProgress), (2, RetryState::MaximumAttemptsReached)]
    {
        let recorded_retry = Some(policy.clone());
        let spec = ChildSpec { attempt, recorded_retry, ..child_spec("c") };
        for (outcome, name) in &outcomes()[1..3] {
            let mut world = World::after([Ask::StartChild(Box::new(spec.clone()))]);
            let action = closed(&world, outcome.clone());
            world.deliver(action);
            let state = match world.fact(name) {
                Fact::ChildFailed(failed) => failed.retry_state,
                Fact::ChildTimedOut(timed_out) => timed_out.retry_state,
                other => panic!("{other:?}"),
            };
            assert_eq!(state, expected);
        }
    }
}

#[test]
fn a_grandchild_knows_the_topmost_ancestor() {
    let mut world = World::begin(StartRun { root: Some(other()), ..start_run() });
    world.task([child("c")]);
    let Action::StartChild(start) = &world.effects()[0].action else { panic!() };
    assert_eq!(start.root, other());
}

#[test]
fn a_child_that_was_started_is_known_to_run() {
    let mut world = initiated();
    assert_eq!(world.answer(1, EffectOutcome::Applied).names, ["ChildStarted", "TaskScheduled"]);
    assert!(world.run.outbox.is_empty());
    assert!(world.run.children[&5].started);
}

#[test]
fn a_child_that_can_not_be_started_is_gone() {
    let mut world = initiated();
    let answer = EffectOutcome::Failed(DeliveryFailure::AlreadyExists);
    assert_eq!(world.answer(1, answer).names, ["ChildStartFailed", "TaskScheduled"]);
    assert!(world.run.children.is_empty() && world.run.outbox.is_empty());
}

#[test]
fn an_answer_is_taken_once() {
    let mut world = initiated();
    world.answer(1, EffectOutcome::Applied);
    assert_eq!(world.answer(1, EffectOutcome::Applied).reply, Reply::Repeat);
    assert_eq!(world.answer(99, EffectOutcome::Applied).reply, Reply::Repeat);
}

#[test]
fn an_answer_in_the_buffer_is_taken_once() {
    let mut world = initiated();
    world.signal("go");
    world.start_task();
    assert_eq!(world.answer(1, EffectOutcome::Applied).names, ["InputBuffered"]);
    assert_eq!(world.answer(1, EffectOutcome::Applied).reply, Reply::Repeat);
    assert!(world.run.outbox.is_empty(), "the answer is durable, so nothing is sent again");
    assert_eq!(world.complete([]).names[2..4], ["ChildStarted", "TaskScheduled"]);
}

#[test]
fn every_end_of_a_child_is_told() {
    for (outcome, name) in outcomes() {
        let mut world = running();
        let took = world.deliver(closed(&world, outcome));
        assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Applied));
        assert_eq!(took.names, [name, "TaskScheduled"]);
        assert!(world.run.children.is_empty());
    }
}

/// The close proves that the child did start.
#[test]
fn a_close_that_overtakes_the_start_writes_the_start_first() {
    for (outcome, name) in outcomes() {
        let mut world = initiated();
        let took = world.deliver(closed(&world, outcome));
        assert_eq!(took.names, ["ChildStarted", name, "TaskScheduled"]);
        assert_eq!(world.answer(1, EffectOutcome::Applied).reply, Reply::Repeat);
    }
}

#[test]
fn a_close_that_overtakes_the_start_in_the_buffer_writes_one_start() {
    let mut world = initiated();
    world.signal("go");
    world.start_task();
    world.answer(1, EffectOutcome::Applied);
    let action = closed(&world, RunOutcome::Completed(Vec::new()));
    assert_eq!(world.deliver(action.clone()).names, ["InputBuffered"]);
    assert!(world.deliver(action).names.is_empty(), "a repeat");
    assert_eq!(world.complete([]).names[2..4], ["ChildStarted", "ChildCompleted"]);
}

#[test]
fn a_close_of_an_unknown_child_changes_nothing() {
    let mut world = running();
    let action = closed(&world, RunOutcome::Completed(Vec::new()));
    world.deliver(action.clone());
    let again = world.deliver(action);
    assert_eq!((again.reply, again.names.len()), (Reply::Delivered(EffectOutcome::Applied), 0));
}

/// What a closing parent does to its children, in order of their start.
#[test]
fn the_parent_close_policies() {
    let mut world = World::after([
        child_with("a", ParentClosePolicy::Terminate),
        child_with("b", ParentClosePolicy::Abandon),
        child_with("c", ParentClosePolicy::RequestCancel),
    ]);
    for number in 1..=3 {
        world.answer(number, EffectOutcome::Applied);
    }
    world.task([complete_run()]);
    let sent: Vec<_> = world.effects().iter().map(|effect| (*effect).clone()).collect();
    let cancel = |mode| Action::Cancel { mode, reason: "the parent closed".into() };
    let actions: Vec<_> = sent.iter().map(|effect| effect.action.clone()).collect();
    assert_eq!(actions, [cancel(CancelMode::Terminate), cancel(CancelMode::Request)]);
    assert_eq!(sent[0].target, Target { child: Some(5), ..target("a") });
}

/// The start is still in flight: the cancel follows it.
#[test]
fn a_child_that_is_being_started_is_ended_too() {
    let mut world = initiated();
    world.terminate();
    let actions: Vec<_> = world.run.outbox.values().map(|effect| &effect.action).collect();
    assert!(matches!(actions[..], [Action::StartChild(_), Action::Cancel { .. }]));
    assert!(world.run.outbox.values().all(|effect| effect.initiated.is_none()));
}

#[test]
fn a_child_that_has_closed_is_left_alone() {
    let mut world = running();
    world.deliver(closed(&world, RunOutcome::Completed(Vec::new())));
    world.task([complete_run()]);
    assert!(world.run.outbox.is_empty());
}

/// No event waits for the answer, but the outbox row must be deleted.
#[test]
fn a_closed_run_settles_its_effects() {
    let mut world = World::after([child("c"), signal_external("go")]);
    world.terminate();
    for number in 1..=3 {
        assert_eq!(world.answer(number, EffectOutcome::Applied).names, ["EffectSettled"]);
        assert_eq!(world.answer(number, EffectOutcome::Applied).reply, Reply::Repeat);
    }
    assert!(world.run.outbox.is_empty());
}

#[test]
fn requests_to_others_and_their_answers() {
    let gone = EffectOutcome::Failed(DeliveryFailure::NotFound);
    let cases = [
        (signal_external("go"), EffectOutcome::Applied, "ExternalSignalDelivered"),
        (signal_external("go"), gone, "ExternalSignalFailed"),
        (cancel_external(CancelMode::Request), EffectOutcome::Applied, "ExternalCancelDelivered"),
        (cancel_external(CancelMode::Terminate), gone, "ExternalCancelFailed"),
    ];
    for (ask, answer, name) in cases {
        let mut world = World::after([ask]);
        assert_eq!(world.effects()[0].initiated, Some(5));
        assert_eq!(world.answer(1, answer).names, [name, "TaskScheduled"]);
        assert!(world.run.externals.is_empty() && world.run.outbox.is_empty());
        assert_eq!(world.answer(1, answer).reply, Reply::Repeat);
    }
}

/// News of a close may overtake the answer to the start, and answers may come in any order.
#[test]
fn each_answer_settles_its_own_effect() {
    let outbox = |world: &World| world.run.outbox.keys().copied().collect::<Vec<_>>();
    let mut world = World::after([child("a"), child("b"), signal_external("go"), child("c")]);
    assert_eq!(outbox(&world), [1, 2, 3, 4]);
    let closes = |initiated| {
        let run = RunId::MAX;
        let outcome = RunOutcome::Completed(Vec::new());
        Action::ChildClosed(ChildClosed { initiated, first_run: run, run, outcome })
    };
    world.deliver(closes(6));
    assert_eq!(outbox(&world), [1, 3, 4]);
    world.answer(3, EffectOutcome::Applied);
    assert_eq!(outbox(&world), [1, 4]);
    world.answer(4, EffectOutcome::Applied);
    world.deliver(closes(8));
    world.deliver(closes(5));
    assert!(world.run.children.is_empty() && world.run.externals.is_empty());
    assert!(outbox(&world).is_empty());
}

#[test]
fn a_delivered_signal_names_its_source() {
    let mut world = World::after([]);
    world.go_to(4);
    let (name, input, header) = ("go".into(), payloads("x"), Default::default());
    let took = world.deliver(Action::Signal { name, input, header });
    assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Applied));
    let Fact::SignalReceived(signal) = world.fact("SignalReceived") else { panic!() };
    assert_eq!((signal.source, signal.received_at), (Some(other()), at(4)));
}

/// It stays in the sender's outbox.
#[test]
fn a_delivered_signal_waits_as_any_other() {
    let mut world = World::after([]);
    world.signal("go");
    world.start_task();
    world.limits.buffered_inputs = 0;
    let (name, input, header) = ("go".into(), Vec::new(), Default::default());
    let action = Action::Signal { name, input, header };
    assert_eq!(world.refused(Input::Deliver { source: other(), action }), Refusal::Busy);
}

#[test]
fn a_delivered_cancel_request_is_taken_once() {
    let mut world = World::after([]);
    let cancel = Action::Cancel { mode: CancelMode::Request, reason: "stop".into() };
    assert_eq!(world.deliver(cancel.clone()).names, ["RunCancelRequested", "TaskScheduled"]);
    let again = world.deliver(cancel);
    assert_eq!((again.reply, again.names.len()), (Reply::Delivered(EffectOutcome::Applied), 0));
}

#[test]
fn a_run_may_be_terminated_by_another() {
    let mut world = World::new();
    world.start_task();
    let cancel = Action::Cancel { mode: CancelMode::Terminate, reason: "stop".into() };
    let took = world.deliver(cancel);
    assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Applied));
    assert_eq!(took.names, ["TaskStarted", "TaskFailed", "RunTerminated"]);
}

#[test]
fn a_closed_run_answers_that_it_is_closed() {
    let mut world = World::new();
    world.terminate();
    let took = world.deliver(Action::Cancel { mode: CancelMode::Request, reason: String::new() });
    assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Failed(DeliveryFailure::Closed)));
}

#[test]
fn an_open_run_is_no_free_workflow_id() {
    let Action::StartChild(start) = initiated().effects()[0].action.clone() else { panic!() };
    let took = World::new().deliver(Action::StartChild(start));
    assert_eq!(took.reply, Reply::Delivered(EffectOutcome::Failed(DeliveryFailure::AlreadyExists)));
}

/// The parent is notified once, by the last run of the chain.
#[test]
fn a_child_tells_its_parent_how_it_closed() {
    let parent = Parent { run: other(), initiated: 5, ordinal: 1 };
    let mut world = World::begin(StartRun { parent: Some(parent), ..start_run() });
    world.task([complete_run()]);
    let effect = world.effects()[0];
    let target = Target { run: Some(other().run), ..target("other") };
    assert_eq!(effect.target, target);
    let outcome = RunOutcome::Completed(payloads("result"));
    let closed = ChildClosed { initiated: 5, first_run: run_id(1), run: run_id(1), outcome };
    assert_eq!(effect.action, Action::ChildClosed(closed));
    assert!(matches!(world.run.status, Status::Closed { how: Close::Completed, .. }));
}
