//! Updates of runs whose code does not fit their history fail immediately, unless the caller waits for
//! the repair.

use abide_core::{
    command::Ask,
    dispatch::{QueueKey, WorkKind},
    event::{Blocked, TaskFailureCause, UpdateOutcome, UpdateRequest},
    operation::{
        AnyAnswer, AwaitUpdate, CallError, ConflictPolicy, StartUpdate, Started, Ticket, Update,
        UpdateAnswer, UpdateWait,
    },
    report::Report,
    run::Stage,
};
use abide_shard::message::Message;

use crate::harness::{World, shard_of, target, worker};

fn asked(update: &str, wait_while_blocked: bool) -> StartUpdate {
    let request = UpdateRequest { name: "pay".into(), ..UpdateRequest::default() };
    let until = UpdateWait::Completed;
    StartUpdate { update: update.into(), request, until, wait_while_blocked }
}

fn update(world: &mut World, update: &str, wait_while_blocked: bool) -> Ticket {
    let StartUpdate { update, request, until, .. } = asked(update, wait_while_blocked);
    let call = Update { target: target("w"), update, request, until, wait_while_blocked };
    world.call(shard_of("w"), call)
}

fn look_up(world: &mut World, until: UpdateWait) -> Result<AnyAnswer, CallError> {
    let (target, update) = (target("w"), "u".into());
    let call = AwaitUpdate { target, update, until, wait_while_blocked: false };
    world.ask(shard_of("w"), call)
}

fn accept(update: &str) -> Ask {
    Ask::AcceptUpdate { update: update.into(), request: asked(update, false).request }
}

fn complete(update: &str) -> Ask {
    Ask::CompleteUpdate { update: update.into(), outcome: UpdateOutcome::Completed(Vec::new()) }
}

fn mismatch() -> Blocked {
    Blocked { expected: "TimerStarted timer-1".into(), at: 5, ..Blocked::default() }
}

/// The worker reports that its code does not fit the history.
fn block(world: &mut World) {
    let token = world.take_task();
    let (cause, failure) = (TaskFailureCause::ReplayBlocked, Default::default());
    let report = Report::FailTask { token, cause, failure, blocked: Some(mismatch()) };
    world.report(shard_of("w"), report).expect("it is taken");
}

/// A worker with a different build takes the task and completes it with these commands.
fn repair(world: &mut World, asks: Vec<Ask>) {
    let offer = world.offers.pop().expect("the task is offered");
    let other = abide_core::dispatch::Worker { build: Some("repaired".into()), ..worker("other") };
    world.send(offer.shard, Message::Matched(offer, other));
    let Some(abide_core::dispatch::Dispatch::Workflow { token, .. }) = world.dispatches.pop()
    else {
        panic!("it is sent");
    };
    world.complete(token, asks);
}

/// A run that has completed a task.
fn started() -> World {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    world
}

fn told(world: &mut World, ticket: Ticket) -> Result<AnyAnswer, CallError> {
    world.replies.remove(&ticket).expect("the caller is told")
}

#[track_caller]
fn is_blocked(reply: Result<AnyAnswer, CallError>) {
    assert_eq!(reply.expect_err("the run is blocked"), CallError::Blocked(Box::new(mismatch())));
}

#[test]
fn an_update_of_a_blocked_run_is_answered_at_once_and_not_made() {
    let mut world = started();
    world.signal("w", "go").unwrap();
    block(&mut world);
    let ticket = update(&mut world, "u", false);
    is_blocked(told(&mut world, ticket));
    repair(&mut world, Vec::new());
    let error = look_up(&mut world, UpdateWait::Admitted).unwrap_err();
    assert_eq!(error.to_string(), "there is no update u in this run");
}

#[test]
fn an_update_that_waits_when_the_run_is_blocked_is_answered_and_not_made() {
    let mut world = started();
    let ticket = update(&mut world, "u", false);
    assert!(!world.replies.contains_key(&ticket), "code has not judged it");
    block(&mut world);
    is_blocked(told(&mut world, ticket));
    repair(&mut world, Vec::new());
    look_up(&mut world, UpdateWait::Admitted).unwrap_err();
}

#[test]
fn a_caller_may_wait_until_the_run_is_repaired() {
    let mut world = started();
    let before = update(&mut world, "u", true);
    block(&mut world);
    let after = update(&mut world, "v", true);
    assert!(world.replies.is_empty(), "both wait");
    let asks = ["u", "v"].into_iter().flat_map(|update| [accept(update), complete(update)]);
    repair(&mut world, asks.collect());
    for ticket in [before, after] {
        let reply = told(&mut world, ticket);
        let stage = |reply: &Result<AnyAnswer, CallError>| {
            matches!(
                reply,
                Ok(AnyAnswer::Update(UpdateAnswer::Reached { stage: Stage::Completed(_), .. }))
            )
        };
        assert!(stage(&reply), "{reply:?}");
    }
}

/// Accepted updates stay accepted, and completed updates return their outcome although the run is blocked.
#[test]
fn an_accepted_update_is_told_as_far_as_it_is() {
    let mut world = started();
    let waiting = update(&mut world, "u", false);
    let done = update(&mut world, "v", false);
    let token = world.take_task();
    world.complete(token, vec![accept("u"), accept("v"), complete("v")]);
    told(&mut world, done).unwrap();
    world.signal("w", "go").unwrap();
    block(&mut world);
    is_blocked(told(&mut world, waiting));
    is_blocked(look_up(&mut world, UpdateWait::Completed));
    for until in [UpdateWait::Admitted, UpdateWait::Accepted] {
        let reply = look_up(&mut world, until);
        let accepted = matches!(
            reply,
            Ok(AnyAnswer::Update(UpdateAnswer::Reached { stage: Stage::Accepted, .. }))
        );
        assert!(accepted, "{reply:?}");
    }
    let done = update(&mut world, "v", false);
    told(&mut world, done).expect("its outcome is known");
    repair(&mut world, vec![complete("u")]);
    look_up(&mut world, UpdateWait::Completed).expect("the repaired code completes it");
}

#[test]
fn a_start_with_an_update_uses_a_blocked_run_and_says_that_it_is() {
    let mut world = started();
    world.signal("w", "go").unwrap();
    block(&mut world);
    let mut start = world.start_call("w");
    start.conflict = ConflictPolicy::UseExisting;
    start.update = Some(Box::new(asked("u", false)));
    let reply = world.ask(shard_of("w"), start.clone());
    let Ok(AnyAnswer::Started(Started { started: false, update: Some(update), .. })) = reply else {
        panic!("the run is there: {reply:?}");
    };
    is_blocked(update.map(AnyAnswer::from));
    start.update = Some(Box::new(asked("u", true)));
    let ticket = world.call(shard_of("w"), start);
    assert!(!world.replies.contains_key(&ticket), "it waits");
    repair(&mut world, vec![accept("u"), complete("u")]);
    told(&mut world, ticket).expect("both are done");
}

/// Workers name queues freely, so a name costs no read unless there is something to find.
#[test]
fn a_new_build_is_a_reason_to_read_only_where_runs_are_held() {
    let mut world = started();
    world.signal("w", "go").unwrap();
    let queue = |queue: &str, kind| {
        let namespace = "default".into();
        std::sync::Arc::new(QueueKey { namespace, queue: queue.into(), kind })
    };
    let announce = |world: &mut World, queue| {
        let before = world.task_reads;
        world.send(shard_of("w"), Message::NewBuild(queue, "repaired".into()));
        world.task_reads - before
    };
    let own = world.offers.last().expect("the task is offered").queue.queue.clone();
    assert_eq!(announce(&mut world, queue(&own, WorkKind::Workflow)), 0, "nothing is held");
    block(&mut world);
    assert_eq!(announce(&mut world, queue("other", WorkKind::Workflow)), 0);
    assert_eq!(announce(&mut world, queue(&own, WorkKind::Activity)), 0);
    assert!(announce(&mut world, queue(&own, WorkKind::Workflow)) > 0, "a run is blocked");
    world.crash();
    assert!(announce(&mut world, queue(&own, WorkKind::Workflow)) > 0, "it still is");
}
