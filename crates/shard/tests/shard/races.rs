//! Races: parked requests, reads in flight, resets.

use std::time::Duration;

use abide_core::{
    command::{Ask, ContinueAsNew},
    dispatch::{Dispatch, Worker},
    effect::{Action, Effect},
    event::{
        ChildSpec, Delivery, RunSpec, SignalReceived, Target, TaskFailureCause, UpdateRequest,
    },
    ids::RunId,
    limits::Limits,
    operation::{
        AnyAnswer, ConflictPolicy, Done, RescheduleTimer, Signal, Started, Update, UpdateAnswer,
        UpdateWait,
    },
    report::{Report, ReportAnswer, TaskToken},
};
use abide_shard::message::{EffectKey, Envelope, Mail, Message};
use abide_store::{
    Batch, CommitError, RunFilter, Write,
    rows::{LogRow, RunStatus},
};

use crate::harness::{World, activity, shard_of, target, timer, worker, workflow};

fn spec() -> RunSpec {
    RunSpec { workflow_type: "type".into(), queue: "queue".into(), ..RunSpec::default() }
}

fn continue_as_new(updates: Vec<&str>) -> Ask {
    let updates = updates.into_iter().map(Into::into).collect();
    Ask::ContinueAsNew(Box::new(ContinueAsNew { spec: spec(), signals: Vec::new(), updates }))
}

fn child(id: &str) -> Ask {
    Ask::StartChild(Box::new(ChildSpec {
        workflow: workflow(id),
        spec: spec(),
        parent_close: Default::default(),
        reuse: Default::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }))
}

/// A run whose close was refused and whose task was started again: it accepts no signals now.
fn busy(world: &mut World) -> TaskToken {
    world.start("w");
    let token = world.take_task();
    world.signal("w", "unseen").expect("it is taken");
    let reply = world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    assert!(matches!(reply, ReportAnswer::TaskRefused { .. }));
    world.take_task()
}

fn signal_with_start(world: &mut World) -> u64 {
    let mut call = world.start_call("w");
    call.conflict = ConflictPolicy::UseExisting;
    call.signal = Some(SignalReceived { name: "hello".into(), ..Default::default() });
    world.call(shard_of("w"), call)
}

fn update(request: &UpdateRequest, until: UpdateWait) -> Update {
    Update {
        target: target("w"),
        update: "u".into(),
        request: request.clone(),
        until,
        wait_while_blocked: false,
    }
}

fn running(world: &World) -> usize {
    let rows = world.tables.runs(&RunFilter::default(), 99);
    rows.iter().filter(|row| row.status == RunStatus::Running).count()
}

#[test]
fn a_parked_start_finds_the_run_that_followed() {
    let mut world = World::new();
    let token = busy(&mut world);
    let ticket = signal_with_start(&mut world);
    world.complete(token, vec![continue_as_new(Vec::new())]);
    let reply = world.replies.remove(&ticket);
    assert!(matches!(reply, Some(Ok(AnyAnswer::Started(Started { started: false, .. })))));
    assert_eq!(running(&world), 1);
}

#[test]
fn a_parked_start_finds_the_run_that_replaced() {
    let mut world = World::new();
    busy(&mut world);
    signal_with_start(&mut world);
    let mut call = world.start_call("w");
    call.conflict = ConflictPolicy::TerminateExisting;
    world.call(shard_of("w"), call);
    assert_eq!(running(&world), 1);
}

#[test]
fn parked_signals_go_to_the_run_that_followed() {
    let mut world = World::new();
    let token = busy(&mut world);
    let signal = SignalReceived { name: "s".into(), ..Default::default() };
    let ticket = world
        .call(shard_of("w"), Signal { target: target("w"), signal, extension: Default::default() });
    let key = EffectKey { workflow: workflow("source"), run: RunId::MAX, number: 1 };
    let effect = Effect {
        target: Target { workflow: workflow("w"), run: None, child: None },
        action: Action::Signal { name: "s".into(), input: Vec::new(), header: Default::default() },
        initiated: Some(9),
    };
    world.send(shard_of("w"), Mail::Deliver(Box::new(Envelope { key, effect })).into());
    world.complete(token, vec![continue_as_new(Vec::new())]);
    assert!(matches!(world.replies.remove(&ticket), Some(Ok(AnyAnswer::Done(Done { .. })))));
    let next = world.run("w").id;
    let signals = |name: &&&str| **name == "SignalReceived";
    assert_eq!(world.history("w", next).iter().filter(signals).count(), 2);
}

#[test]
fn a_caller_that_waits_for_an_update_follows_it_into_the_next_run() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let request = UpdateRequest { name: "change".into(), ..Default::default() };
    let ticket = world.call(shard_of("w"), update(&request, UpdateWait::Completed));
    let token = world.take_task();
    let accept = Ask::AcceptUpdate { update: "u".into(), request: request.clone() };
    world.complete(token, vec![accept.clone(), continue_as_new(vec!["u"])]);
    assert!(!world.replies.contains_key(&ticket));
    let token = world.take_task();
    let outcome = abide_core::event::UpdateOutcome::Completed(Vec::new());
    world.complete(token, vec![accept, Ask::CompleteUpdate { update: "u".into(), outcome }]);
    assert!(matches!(
        world.replies.remove(&ticket),
        Some(Ok(AnyAnswer::Update(UpdateAnswer::Reached { .. })))
    ));
}

#[test]
fn a_reset_gives_workers_their_credit_back() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, vec![activity("a", Delivery::AtLeastOnce)]);
    let offer = world.offers.pop().expect("the activity is offered");
    world.commit_at_once = false;
    world.send(offer.shard, Message::Matched(offer, worker("session")));
    world.commit(Err(CommitError::Unavailable("the disk is full".into())));
    assert_eq!((world.dispatches.len(), world.unmatched), (0, 1));
}

/// The stored due time has passed, but a heartbeat has moved the deadline in memory. That timer must
/// survive while many near timers are loaded.
#[test]
fn a_silent_attempt_times_out_however_many_timers_are_near() {
    let mut world = World::with_limits(Limits { near_timers: 3, ..Limits::default() });
    let run = world.start("w");
    let token = world.take_task();
    let Ask::ScheduleActivity(mut activity) = activity("a", Delivery::AtLeastOnce) else { return };
    activity.heartbeat = Some(Duration::from_secs(10));
    activity.start_to_close = Some(Duration::from_secs(1000));
    activity.retry = None;
    world.complete(token, vec![Ask::ScheduleActivity(activity)]);
    let Dispatch::Activity { token, .. } = world.take("session") else { panic!("an activity") };
    for _ in 0..2 {
        world.report(shard_of("w"), Report::Heartbeat(token.clone(), Vec::new())).unwrap();
        world.pass(Duration::from_secs(3));
    }
    world.pass(Duration::from_secs(4));
    for id in neighbours("w", 4) {
        world.offers.clear();
        world.start(&id);
        let token = world.take_task();
        let at = world.now.saturating_add(Duration::from_secs(1));
        world.complete(token, vec![timer("t", at)]);
    }
    world.pass(Duration::from_secs(60));
    assert!(world.history("w", run).contains(&"ActivityTimedOut"));
}

/// Workflow ids on the shard of this one.
fn neighbours(id: &str, count: usize) -> Vec<String> {
    let ids = (0..).map(|n| format!("neighbour-{n}"));
    ids.filter(|other| shard_of(other) == shard_of(id)).take(count).collect()
}

#[test]
fn a_blocked_task_of_an_unnamed_build_is_no_hot_loop() {
    let mut world = World::new();
    world.start("w");
    let offer = world.offers.pop().expect("the task is offered");
    let unnamed = Worker { session: "s".into(), identity: "w".into(), build: None };
    world.send(offer.shard, Message::Matched(offer, unnamed));
    let Some(Dispatch::Workflow { token, .. }) = world.dispatches.pop() else { panic!("a task") };
    let report = Report::FailTask {
        token,
        cause: TaskFailureCause::ReplayBlocked,
        failure: Default::default(),
        blocked: Some(Default::default()),
    };
    world.report(shard_of("w"), report).unwrap();
    assert!(world.offers.is_empty(), "it waits before it is tried again");
    world.pass(Duration::from_secs(1));
    assert_eq!(world.offers.len(), 1);
}

#[test]
fn runs_whose_task_failed_leave_memory() {
    let mut world = World::with_limits(Limits { cached_runs: 1, ..Limits::default() });
    let ids = neighbours("w", 20);
    let mut runs = Vec::new();
    for id in &ids {
        world.offers.clear();
        runs.push(world.start(id));
        let token = world.take_task();
        let report = Report::FailTask {
            token,
            cause: Default::default(),
            failure: Default::default(),
            blocked: None,
        };
        world.report(shard_of("w"), report).unwrap();
    }
    let shard = &world.shards[&shard_of("w")];
    assert!(runs.iter().filter(|run| shard.peek(**run).is_some()).count() <= 2);
}

/// A newer version wrote an event that this version does not know: the run exists, so its id must not be
/// treated as free.
#[test]
fn a_run_that_cannot_be_read_is_not_taken_for_absent() {
    let mut world = World::new();
    let run = world.start("kid");
    world.crash();
    let shard = shard_of("kid");
    let epoch = world.tables.shard(shard).epoch;
    let events = bytes::Bytes::from_static(&[0x0a, 0x02, 0x7a, 0x00]);
    let row = LogRow { run, sequence: 2, first_event: 3, events, notes: bytes::Bytes::new() };
    let batch = Batch { shard, epoch, writes: vec![Write::AppendLog(row)] };
    world.tables.apply(&batch).expect("it is written");
    world.start("parent");
    let token = world.take_task();
    world.complete(token, vec![child("kid")]);
    let rows = world.tables.runs(&RunFilter::default(), 99);
    assert_eq!(rows.iter().filter(|row| row.workflow.as_str() == "kid").count(), 1);
}

#[test]
fn an_update_is_not_rejected_and_accepted() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let request = UpdateRequest { name: "change".into(), ..Default::default() };
    world.call(shard_of("w"), update(&request, UpdateWait::Accepted));
    let token = world.take_task();
    let reject = Ask::RejectUpdate { update: "u".into(), failure: Default::default() };
    let accept = Ask::AcceptUpdate { update: "u".into(), request };
    let reply = world.complete(token, vec![reject, accept]);
    assert!(matches!(reply, ReportAnswer::TaskRefused { .. }));
}

/// The reschedule was meant for the timer that the code has cancelled.
#[test]
fn a_buffered_move_spares_a_new_timer_of_the_same_id() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    let at = world.now.saturating_add(Duration::from_secs(100));
    world.complete(token, vec![timer("t", at)]);
    world.signal("w", "k").unwrap();
    let token = world.take_task();
    let call = RescheduleTimer {
        target: target("w"),
        what: "t".into(),
        fire_at: at.saturating_add(Duration::from_secs(5000)),
        after: None,
        identity: "operator".into(),
        key: None,
    };
    world.ask(shard_of("w"), call).unwrap();
    world.complete(token, vec![Ask::CancelTimer("t".into()), timer("t", at)]);
    let run = world.run("w");
    assert_eq!(run.timers.values().map(|timer| timer.spec.fire_at).collect::<Vec<_>>(), [at]);
}

/// A task that only carries updates is not written to the log. A signal that waits for the task's end must
/// not be lost with it.
#[test]
fn a_signal_that_came_during_a_task_for_updates_is_shown_after_a_crash() {
    let mut world = World::new();
    let run = world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let request = UpdateRequest { name: "change".into(), ..Default::default() };
    world.call(shard_of("w"), update(&request, UpdateWait::Accepted));
    world.take_task();
    world.signal("w", "k").unwrap();
    assert_eq!(world.history("w", run).last(), Some(&"TaskCompleted"), "it waits in the buffer");
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    assert_eq!(world.history("w", run).last(), Some(&"TaskScheduled"));
    let token = world.take_task();
    world.complete(token, Vec::new());
    assert!(world.tables.tasks(shard_of("w"), None, 1).is_empty(), "no row is left");
}
