//! Tasks are delivered to workers, requeued when a worker is lost, and never delivered twice on purpose.

use std::time::Duration;

use abide_core::{
    attempt::{ActivityToken, AttemptName, AttemptReport},
    command::{Ask, Command},
    dispatch::Dispatch,
    event::{Delivery, UpdateRequest},
    ids::{EventNumber, RunId},
    limits::Limits,
    operation::{
        Alive, AnyAnswer, CallError, Done, Query, QueryAnswer, QueryRequest, ReportAttempt, Signal,
        Update, UpdateAnswer, UpdateWait,
    },
    payload::Payload,
    report::{Report, ReportAnswer, TaskCompletion},
    run::{Refusal, Resolution},
};
use abide_shard::message::Message;
use abide_store::rows::LogLimit;
use bytes::Bytes;

use crate::harness::{Reads, World, activity, same_shard, shard_of, target, worker};

const GRACE: Duration = Duration::from_secs(5);

/// A run with one started activity; the worker took it with its completion.
fn with_activity(world: &mut World, delivery: Delivery) -> ActivityToken {
    world.start("w");
    let token = world.take_task();
    let completion = TaskCompletion {
        commands: vec![Command::from(activity("a", delivery))],
        eager_activities: 1,
        ..TaskCompletion::default()
    };
    world
        .report(shard_of("w"), Report::CompleteTask(token, Box::new(completion)))
        .expect("it is taken");
    activity_token(world.dispatches.pop())
}

fn activity_token(dispatch: Option<Dispatch>) -> ActivityToken {
    match dispatch {
        Some(Dispatch::Activity { token, .. }) => token,
        other => panic!("not an activity: {other:?}"),
    }
}

fn resolve(world: &mut World, token: ActivityToken) -> Result<ReportAnswer, CallError> {
    world.report(shard_of("w"), Report::ResolveActivity(token, Resolution::Completed(Vec::new())))
}

#[test]
fn an_eager_start_is_in_the_row_that_schedules_the_activity() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    let rows = world.tables.log(shard_of("w"), token.run, 0, LogLimit::rows(10));
    assert_eq!(rows.len(), 2);
    assert!(!rows[1].notes.is_empty(), "the start is a note of the same row");
    assert!(resolve(&mut world, token).is_ok());
}

#[test]
fn an_eager_activity_that_ends_before_it_is_sent_is_not_sent() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.commit_at_once = false;
    let completion = TaskCompletion {
        commands: vec![Command::from(activity("a", Delivery::AtMostOnce))],
        eager_activities: 1,
        ..TaskCompletion::default()
    };
    let completed = world.say(shard_of("w"), Report::CompleteTask(token, Box::new(completion)));
    let done = AttemptReport::Resolved(Resolution::Completed(Vec::new()));
    let ended = world.call(shard_of("w"), ReportAttempt { attempt: by_id("a"), report: done });
    world.commit_at_once = true;
    world.commit(Ok(()));
    assert!(world.acknowledged[&completed].is_ok() && world.replies[&ended].is_ok());
    assert!(world.dispatches.is_empty(), "{:?}", world.dispatches);
}

#[test]
fn an_activity_that_was_sent_with_one_task_is_not_sent_again_with_the_next() {
    let mut world = World::new();
    with_activity(&mut world, Delivery::AtLeastOnce);
    world.signal("w", "key").expect("it is taken");
    let token = world.take_task();
    let completion = TaskCompletion { eager_activities: 1, ..TaskCompletion::default() };
    world
        .report(shard_of("w"), Report::CompleteTask(token, Box::new(completion)))
        .expect("it is taken");
    assert!(world.dispatches.is_empty());
}

#[test]
fn a_completion_counts_only_for_the_current_attempt() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    assert!(resolve(&mut world, token.clone()).is_ok());
    assert_eq!(resolve(&mut world, token).unwrap_err(), Refusal::StaleAttempt.into());
}

#[test]
fn a_lost_worker_has_a_grace_and_then_the_attempt_is_repeated() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.offers.clear();
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    world.pass(GRACE - Duration::from_nanos(1));
    assert!(world.offers.is_empty());
    world.pass(Duration::from_nanos(1));
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
    assert_eq!(resolve(&mut world, token).unwrap_err(), Refusal::StaleAttempt.into());
    assert!(resolve(&mut world, again).is_ok());
}

#[test]
fn a_worker_that_comes_back_in_time_keeps_its_attempt_over_a_restart() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtMostOnce);
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    let present = Report::PresentAttempt(token.clone(), "session".into());
    assert!(matches!(world.report(shard_of("w"), present), Ok(ReportAnswer::Alive { .. })));
    world.pass(2 * GRACE);
    assert!(resolve(&mut world, token).is_ok());
}

/// An embedded engine has all its workers inside, so none comes back after it.
#[test]
fn an_attempt_of_a_worker_that_ended_with_its_engine_is_lost_at_once() {
    let limits = Limits { workers_outlive_owner: false, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.offers.clear();
    world.owner = "next node";
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
}

/// The shard begins again within its engine, whose workers are alive.
#[test]
fn a_reset_shard_waits_for_the_workers_inside_its_engine() {
    let limits = Limits { workers_outlive_owner: false, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.offers.clear();
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    assert!(world.offers.is_empty());
    let present = Report::PresentAttempt(token.clone(), "session".into());
    assert!(matches!(world.report(shard_of("w"), present), Ok(ReportAnswer::Alive { .. })));
    assert!(resolve(&mut world, token).is_ok());
}

/// Heartbeats may come before the worker has heard of the restart and presents its attempts.
#[test]
fn heartbeats_after_a_restart_put_off_the_loss_of_an_attempt() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    let almost = GRACE - Duration::from_nanos(1);
    for _ in 0..3 {
        world.pass(almost);
        let beat = Report::Heartbeat(token.clone(), Vec::new());
        assert!(matches!(world.report(shard_of("w"), beat), Ok(ReportAnswer::Alive { .. })));
    }
    world.pass(almost);
    assert!(world.offers.is_empty(), "its worker was there a moment ago");
    world.pass(Duration::from_nanos(1));
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
}

/// Two reads open a shard, and one loads the run.
#[test]
fn a_presentation_that_waits_for_a_read_does_not_outlive_its_session() {
    for answered in 0..3 {
        let mut world = World::new();
        let token = with_activity(&mut world, Delivery::AtLeastOnce);
        world.crash();
        world.reads = Reads::Held;
        world.send(shard_of("w"), Message::Tick);
        for _ in 0..answered {
            world.answer_read();
        }
        let present = Report::PresentAttempt(token.clone(), "session".into());
        let presented = world.say(shard_of("w"), present);
        world.send(shard_of("w"), Message::SessionLost("session".into()));
        let answer = world.acknowledged.remove(&presented);
        assert!(matches!(answer, Some(Err(CallError::Unavailable(_)))), "{answered}: {answer:?}");
        world.reads = Reads::Answered;
        while !world.held.is_empty() {
            world.answer_read();
        }
        world.pass(GRACE);
        let again = activity_token(Some(world.take("other")));
        assert_eq!((token.start, again.start), (1, 2), "{answered}");
    }
}

#[test]
fn a_late_heartbeat_of_a_lost_worker_does_not_keep_its_attempt() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.offers.clear();
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    let beat = Report::Heartbeat(token.clone(), Vec::new());
    assert!(matches!(world.report(shard_of("w"), beat), Ok(ReportAnswer::Alive { .. })));
    world.pass(GRACE);
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
}

/// The session may have ended while the shard was away, so that the shard has not heard of it.
#[test]
fn a_heartbeat_that_is_first_after_a_restart_does_not_keep_an_attempt() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    world.crash();
    // It is so large that it is written, which touches the activity.
    let beat = Report::Heartbeat(token.clone(), vec![Payload::new(vec![7; 20_000])]);
    assert!(matches!(world.report(shard_of("w"), beat), Ok(ReportAnswer::Alive { .. })));
    world.pass(GRACE);
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
}

#[test]
fn an_at_most_once_attempt_fails_when_its_worker_stays_away() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtMostOnce);
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    world.pass(GRACE);
    let history = world.history("w", token.run);
    assert_eq!(
        history[history.len() - 3..],
        ["ActivityStarted", "ActivityFailed", "TaskScheduled"]
    );
    assert_eq!(resolve(&mut world, token).unwrap_err(), Refusal::StaleAttempt.into());
}

/// Restarts within the grace of a lost worker do not put its end off for ever.
#[test]
fn the_grace_of_a_lost_worker_goes_on_over_restarts() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtLeastOnce);
    let mut waited = Duration::ZERO;
    while world.offers.is_empty() {
        assert!(waited < 2 * GRACE, "it is waited for again and again");
        world.crash();
        world.send(shard_of("w"), Message::Tick);
        world.offers.clear();
        for _ in 0..3 {
            world.pass(GRACE / 4);
            waited += GRACE / 4;
        }
    }
    let again = activity_token(Some(world.take("other")));
    assert_eq!((token.start, again.start), (1, 2));
}

#[test]
fn a_worker_that_was_waited_for_has_the_whole_grace_at_the_next_restart() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtMostOnce);
    for _ in 0..3 {
        world.crash();
        world.send(shard_of("w"), Message::Tick);
        world.pass(GRACE - Duration::from_nanos(1));
        let present = Report::PresentAttempt(token.clone(), "session".into());
        assert!(matches!(world.report(shard_of("w"), present), Ok(ReportAnswer::Alive { .. })));
    }
    assert!(resolve(&mut world, token).is_ok());
}

/// An attempt that its worker has detached, for completion from outside.
fn detached(world: &mut World) -> ActivityToken {
    let token = with_activity(world, Delivery::AtMostOnce);
    let left = world.report(shard_of("w"), Report::DetachAttempt(token.clone()));
    assert!(matches!(left, Ok(ReportAnswer::Done { repeat: false, .. })), "{left:?}");
    token
}

fn report(world: &mut World, name: AttemptName) -> Result<AnyAnswer, CallError> {
    let done = AttemptReport::Resolved(Resolution::Completed(Vec::new()));
    world.ask(shard_of("w"), ReportAttempt { attempt: name, report: done })
}

fn by_id(activity: &str) -> AttemptName {
    AttemptName::Activity(target("w"), activity.into())
}

#[test]
fn a_detached_attempt_outlives_its_worker_and_its_shard() {
    let mut world = World::new();
    let token = detached(&mut world);
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    world.pass(2 * GRACE);
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    world.pass(2 * GRACE);
    let present = Report::PresentAttempt(token.clone(), "session".into());
    assert_eq!(world.report(shard_of("w"), present).unwrap_err(), Refusal::StaleAttempt.into());
    assert!(report(&mut world, AttemptName::Token(token.clone())).is_ok());
    let again = report(&mut world, AttemptName::Token(token));
    assert_eq!(again.unwrap_err(), Refusal::StaleAttempt.into());
}

#[test]
fn an_attempt_that_was_left_just_before_its_worker_is_given_up_stays() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtMostOnce);
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    world.pass(GRACE - Duration::from_nanos(1));
    world.report(shard_of("w"), Report::DetachAttempt(token.clone())).expect("it is taken");
    world.pass(GRACE);
    assert!(report(&mut world, by_id("a")).is_ok());
    let late = resolve(&mut world, token);
    assert_eq!(late.unwrap_err(), Refusal::StaleAttempt.into());
}

#[test]
fn a_crash_before_an_attempt_was_left_loses_it_with_its_worker() {
    let mut world = World::new();
    let token = with_activity(&mut world, Delivery::AtMostOnce);
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    world.pass(GRACE);
    let late = world.report(shard_of("w"), Report::DetachAttempt(token));
    assert_eq!(late.unwrap_err(), Refusal::StaleAttempt.into());
    assert_eq!(report(&mut world, by_id("a")).unwrap_err(), unknown("a"));
}

fn unknown(activity: &str) -> CallError {
    Refusal::UnknownActivity(activity.into()).into()
}

#[test]
fn an_activity_is_completed_once_whether_by_token_or_by_id() {
    let mut world = World::new();
    let token = detached(&mut world);
    assert_eq!(report(&mut world, by_id("b")).unwrap_err(), unknown("b"));
    let elsewhere = ActivityToken { run: RunId::MAX, ..token.clone() };
    let wrong_run = report(&mut world, AttemptName::Token(elsewhere));
    assert_eq!(wrong_run.unwrap_err(), CallError::NotFound);
    let too_large = Payload { data: vec![0; 3 << 20].into(), ..Payload::default() };
    let large = AttemptReport::Resolved(Resolution::Completed(vec![too_large]));
    let large = world.ask(shard_of("w"), ReportAttempt { attempt: by_id("a"), report: large });
    assert!(matches!(large, Err(CallError::Invalid(_))), "{large:?}");
    let alive = AttemptReport::Heartbeat(Vec::new());
    let alive = world.ask(shard_of("w"), ReportAttempt { attempt: by_id("a"), report: alive });
    assert!(matches!(alive, Ok(AnyAnswer::Alive(Alive { cancel_requested: false }))), "{alive:?}");
    assert!(report(&mut world, by_id("a")).is_ok());
    assert_eq!(report(&mut world, by_id("a")).unwrap_err(), unknown("a"));
    let by_token = report(&mut world, AttemptName::Token(token));
    assert_eq!(by_token.unwrap_err(), Refusal::StaleAttempt.into());
}

#[test]
fn a_started_task_goes_back_when_its_worker_is_lost() {
    let mut world = World::new();
    world.start("w");
    world.take_task();
    assert!(world.offers.is_empty());
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    assert_eq!(world.offers.len(), 1);
}

#[test]
fn the_worker_that_has_the_run_in_memory_gets_only_what_is_new() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    world.signal("w", "a").unwrap();
    let Dispatch::Workflow { recent, last_event, given, .. } = world.take("session") else {
        panic!("a workflow task");
    };
    assert_eq!((numbers(recent), last_event, given.previous), (vec![3, 4, 5, 6], 6, 4));
}

#[test]
fn the_first_task_comes_with_the_whole_history() {
    let mut world = World::new();
    world.start("w");
    let Dispatch::Workflow { recent, last_event, .. } = world.take("session") else {
        panic!("a workflow task");
    };
    assert_eq!((numbers(recent), last_event), (vec![1, 2], 2));
}

/// The shard has just read all of it, so the worker need not.
#[test]
fn after_a_restart_a_task_comes_with_the_whole_history() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    world.crash();
    world.signal("w", "a").unwrap();
    let Dispatch::Workflow { recent, last_event, .. } = world.take("another") else {
        panic!("a workflow task");
    };
    assert_eq!((numbers(recent), last_event), ((1..=6).collect(), 6));
}

fn numbers(rows: Option<Vec<Bytes>>) -> Vec<EventNumber> {
    let events = |row| abide_core::codec::decode_events(row).expect("readable");
    rows.expect("rows at hand").into_iter().flat_map(events).map(|event| event.number).collect()
}

#[test]
fn an_update_task_that_is_rejected_leaves_nothing() {
    let mut world = World::new();
    let run = world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let before = world.history("w", run);
    let call = Update {
        target: target("w"),
        update: "u".into(),
        request: UpdateRequest { name: "change".into(), ..Default::default() },
        until: UpdateWait::Completed,
        wait_while_blocked: false,
    };
    let ticket = world.call(shard_of("w"), call);
    let token = world.take_task();
    let reject = Ask::RejectUpdate { update: "u".into(), failure: Default::default() };
    assert!(matches!(world.complete(token, vec![reject]), ReportAnswer::TaskDiscarded));
    assert!(matches!(world.replies[&ticket], Ok(AnyAnswer::Update(UpdateAnswer::Rejected(_)))));
    assert_eq!(world.history("w", run), before);
}

#[test]
fn a_query_waits_for_the_pending_task() {
    let mut world = World::new();
    world.start("w");
    let query = QueryRequest::new("status", Vec::new());
    let ticket = world.call(shard_of("w"), Query { target: target("w"), query });
    let token = world.take_task();
    world.complete(token, Vec::new());
    let Dispatch::Query { token, .. } = world.take("session") else { panic!("a query") };
    world.report(shard_of("w"), Report::AnswerQuery(token, Ok(Vec::new()))).unwrap();
    assert!(matches!(world.replies[&ticket], Ok(AnyAnswer::Query(QueryAnswer(Ok(_))))));
}

#[test]
fn inputs_over_the_buffer_wait_unacknowledged_until_the_task_ends() {
    let mut world = World::with_limits(Limits { buffered_inputs: 1, ..Limits::default() });
    let run = world.start("w");
    let token = world.take_task();
    world.signal("w", "buffered").unwrap();
    let call = |key: &str| {
        let signal = abide_core::event::SignalReceived {
            name: "signal".into(),
            key: Some(key.into()),
            ..Default::default()
        };
        Signal { target: target("w"), signal, extension: Default::default() }
    };
    let waiting = world.call(shard_of("w"), call("waiting"));
    assert!(!world.replies.contains_key(&waiting));
    world.complete(token, Vec::new());
    assert!(matches!(world.replies[&waiting], Ok(AnyAnswer::Done(Done { .. }))));
    let signals = world.history("w", run).iter().filter(|name| **name == "SignalReceived").count();
    assert_eq!(signals, 2);
}

#[test]
fn queries_of_one_run_are_bounded_and_those_of_others_are_not_touched() {
    let mut world = World::with_limits(Limits { run_waiters: 1, ..Limits::default() });
    world.start("w");
    let other = same_shard("w");
    world.start(&other);
    let query = |world: &mut World, id: &str| {
        let query = QueryRequest::new("status", Vec::new());
        world.call(shard_of("w"), Query { target: target(id), query })
    };
    let first = query(&mut world, "w");
    let second = query(&mut world, "w");
    assert!(matches!(world.replies[&second], Err(CallError::Overloaded)));
    let others = query(&mut world, &other);
    world.send(shard_of("w"), Message::Forget(first));
    let third = query(&mut world, "w");
    assert!(!world.replies.contains_key(&others) && !world.replies.contains_key(&third));
}

/// Parked requests are accounted to their callers, so they go with them.
#[test]
fn a_parked_request_is_dropped_when_its_caller_leaves() {
    let mut world = World::with_limits(Limits { buffered_bytes: 0, ..Limits::default() });
    let run = world.start("w");
    let token = world.take_task();
    let call = Signal {
        target: target("w"),
        signal: abide_core::event::SignalReceived { name: "signal".into(), ..Default::default() },
        extension: Default::default(),
    };
    let left = world.call(shard_of("w"), call.clone());
    let stays = world.call(shard_of("w"), call);
    world.send(shard_of("w"), Message::Forget(left));
    world.complete(token, Vec::new());
    assert!(matches!(world.replies[&stays], Ok(AnyAnswer::Done(Done { .. }))));
    let signals = world.history("w", run).iter().filter(|name| **name == "SignalReceived").count();
    assert_eq!(signals, 1);
}

/// A report from outside arrives before the store's answer: the attempt is not sent to a worker, and its
/// credit is returned.
#[test]
fn an_attempt_that_is_reported_before_it_has_left_is_not_sent() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, vec![activity("a", Delivery::AtLeastOnce)]);
    let offer = world.offers.pop().expect("the activity is offered");
    world.commit_at_once = false;
    world.send(shard_of("w"), Message::Matched(offer, worker("session")));
    let done = AttemptReport::Resolved(Resolution::Completed(Vec::new()));
    let reported = world.call(shard_of("w"), ReportAttempt { attempt: by_id("a"), report: done });
    while !world.commits.is_empty() {
        world.commit(Ok(()));
    }
    assert!(world.replies[&reported].is_ok(), "{:?}", world.replies[&reported]);
    assert!(world.dispatches.is_empty(), "{:?}", world.dispatches);
    assert_eq!(world.unmatched, 1);
}
