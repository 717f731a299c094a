//! Runs that are evicted while a worker has their task, or while an update waits for one: they take no
//! memory, and nothing of what was in flight is lost.

use std::time::Duration;

use abide_core::{
    attempt::ActivityToken,
    command::{Ask, ContinueAsNew},
    dispatch::{Dispatch, QueueKey, WorkKind},
    event::{Fact, UpdateRequest},
    failure::Failure,
    ids::RunId,
    limits::Limits,
    operation::{
        AnyAnswer, CallError, Signal, Start, Started, Ticket, Update, UpdateAnswer, UpdateWait,
    },
    payload::Payload,
    report::{Report, ReportAnswer, TaskCompletion, TaskToken},
    run::{Refusal, Resolution},
};
use abide_shard::message::{Message, Work};
use abide_store::rows::LogLimit;

use crate::harness::{Reads, World, activity, shard_of, signal, target, worker};

/// Bytes of input of a large run, and what a shard caches: two of them.
const LARGE: usize = 100_000;

/// Runs of a test.
const RUNS: usize = 8;

fn world() -> World {
    World::with_limits(Limits { cached_bytes: 2 * LARGE + 50_000, ..Limits::default() })
}

/// Workflow ids on one shard, the first of which is "w".
fn ids() -> Vec<String> {
    let others = (0..).map(|number| format!("w-{number}"));
    let all = std::iter::once("w".to_owned()).chain(others);
    all.filter(|id| shard_of(id) == shard_of("w")).take(RUNS).collect()
}

fn start(world: &mut World, id: &str) -> RunId {
    let mut call: Start = world.start_call(id);
    call.spec.input = vec![Payload::new(vec![7; LARGE])];
    match world.ask(shard_of(id), call) {
        Ok(AnyAnswer::Started(Started { run, started: true, .. })) => run,
        other => panic!("not started: {other:?}"),
    }
}

/// Starts large runs, whose tasks a worker takes.
fn taken(world: &mut World) -> Vec<(String, RunId, TaskToken)> {
    let start = |id: String| {
        let run = start(world, &id);
        (id, run, world.take_task())
    };
    ids().into_iter().map(start).collect()
}

/// Number of these runs that are in memory.
fn cached<'a>(world: &World, runs: impl IntoIterator<Item = &'a RunId>) -> usize {
    let shard = &world.shards[&shard_of("w")];
    runs.into_iter().filter(|run| shard.peek(**run).is_some()).count()
}

/// Makes the shard evict the run "w", by starting runs that are used after it. A worker has their tasks
/// too: runs with nothing in flight would leave before it.
fn evict(world: &mut World, run: RunId) {
    for id in ids().iter().skip(1) {
        start(world, id);
        world.take("another session");
    }
    assert_eq!(cached(world, [&run]), 0, "it is evicted");
    world.offers.clear();
}

#[test]
fn runs_whose_task_a_worker_has_leave_memory_and_their_tasks_complete() {
    let mut world = world();
    let taken = taken(&mut world);
    assert!(cached(&world, taken.iter().map(|(_, run, _)| run)) <= 2);
    let shard = &world.shards[&shard_of("w")];
    assert!(taken.iter().all(|(_, run, token)| shard.turn(*run).unwrap().start == token.start));
    for (id, run, token) in taken {
        let reply = world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
        assert!(matches!(reply, ReportAnswer::TaskTaken { .. }), "{reply:?}");
        let history = ["RunStarted", "TaskScheduled", "TaskStarted", "TaskCompleted"];
        assert_eq!(world.history(&id, run), [&history[..], &["RunCompleted"]].concat());
    }
    assert!(world.offers.is_empty(), "no task was offered twice: {:?}", world.offers);
}

#[test]
fn small_runs_whose_task_a_worker_has_stay_in_memory_however_many() {
    let mut world = World::with_limits(Limits { cached_runs: 1, ..Limits::default() });
    let runs: Vec<_> = ids()
        .iter()
        .map(|id| {
            let run = world.start(id);
            world.take_task();
            run
        })
        .collect();
    assert_eq!(cached(&world, &runs), RUNS);
}

#[test]
fn tasks_of_evicted_runs_are_offered_again_when_their_worker_is_lost() {
    let mut world = world();
    let taken = taken(&mut world);
    world.send(shard_of("w"), Message::SessionLost("other".into()));
    assert!(world.offers.is_empty(), "another session had nothing");
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    assert_eq!(world.offers.len(), RUNS);
    assert!(cached(&world, taken.iter().map(|(_, run, _)| run)) <= 2);
    for (_, _, token) in taken {
        let late = Report::CompleteTask(token, Box::default());
        let late = world.report(shard_of("w"), late);
        assert_eq!(late.unwrap_err(), Refusal::StaleTask.into(), "the lost worker is too late");
    }
    while !world.offers.is_empty() {
        let token = world.take_task();
        world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    }
}

#[test]
fn a_lost_session_lets_its_runs_leave_memory() {
    let limits = Limits { cached_runs: 1, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let runs: Vec<_> = ids()
        .iter()
        .map(|id| {
            let run = world.start(id);
            world.take_task();
            run
        })
        .collect();
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    assert_eq!(cached(&world, &runs), 1);
}

/// The last run used stays for a while, because its next input often follows at once.
#[test]
fn a_run_that_is_too_large_leaves_memory_when_it_was_not_used_for_a_while() {
    let mut world = World::with_limits(Limits { cached_bytes: LARGE / 2, ..Limits::default() });
    let run = start(&mut world, "w");
    for _ in 0..5 {
        world.pass(Duration::from_secs(2));
        world.signal("w", "again").expect("it is taken");
        assert_eq!(cached(&world, [&run]), 1, "it is in use");
    }
    world.pass(Duration::from_secs(3));
    world.pass(Duration::from_secs(3));
    assert_eq!(cached(&world, [&run]), 0);
    let wake_at = world.shards[&shard_of("w")].wake_at();
    assert!(wake_at.is_none_or(|at| at > world.now.saturating_add(Duration::from_secs(3))));
    let token = world.take_task();
    world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
}

/// A worker that is lost again and again delays the task, and the delay outlives an eviction.
#[test]
fn a_task_that_lost_its_worker_three_times_waits_also_if_its_run_is_evicted() {
    let mut world = world();
    let run = start(&mut world, "w");
    for _ in 0..3 {
        world.take_task();
        world.send(shard_of("w"), Message::SessionLost("session".into()));
    }
    evict(&mut world, run);
    world.describe("w");
    refill(&mut world);
    let offer = world.offers.iter().find(|offer| offer.run == run).cloned().expect("it has a row");
    world.offers.clear();
    world.send(shard_of("w"), Message::Matched(offer, worker("session")));
    assert!(world.dispatches.is_empty(), "it is not given out yet");
    world.pass(Duration::from_secs(1));
    assert!(world.offers.iter().any(|offer| offer.run == run), "but later");
}

#[test]
fn the_task_of_an_evicted_run_times_out() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    evict(&mut world, run);
    world.pass(Limits::default().task_timeout);
    let history = ["RunStarted", "TaskScheduled", "TaskStarted", "TaskTimedOut"];
    assert_eq!(world.history("w", run), history);
    let late = world.report(shard_of("w"), Report::CompleteTask(token, Box::default()));
    assert_eq!(late.unwrap_err(), Refusal::StaleTask.into());
}

#[test]
fn a_completed_task_of_an_evicted_run_does_not_time_out() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    evict(&mut world, run);
    world.complete(token, Vec::new());
    let wake_at = world.shards[&shard_of("w")].wake_at();
    assert!(wake_at.is_none_or(|at| at >= world.now.saturating_add(Duration::from_secs(10))));
    world.pass(Limits::default().task_timeout);
    assert_eq!(world.history("w", run).last(), Some(&"TaskCompleted"));
}

#[test]
fn what_comes_while_a_worker_has_the_task_of_an_evicted_run_waits_for_its_end() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    evict(&mut world, run);
    world.signal("w", "first").expect("it is taken");
    assert_eq!(world.history("w", run).len(), 2, "it is buffered");
    refill(&mut world);
    evict_again(&mut world, run);
    world.complete(token, Vec::new());
    let end = ["TaskStarted", "TaskCompleted", "SignalReceived", "TaskScheduled"];
    assert_eq!(world.history("w", run)[2..], end);
}

/// The queue of all runs has room again.
fn refill(world: &mut World) {
    let kind = WorkKind::Workflow;
    let queue = QueueKey { namespace: "default".into(), queue: "queue".into(), kind };
    world.send(shard_of("w"), Message::Refill(queue.into()));
}

/// Uses the other runs, so that "w" is the least recently used.
fn evict_again(world: &mut World, run: RunId) {
    for id in ids().iter().skip(1) {
        world.describe(id);
    }
    assert_eq!(cached(world, [&run]), 0, "it is evicted");
    world.offers.clear();
}

/// A run whose close was refused takes no signal before the end of its task.
#[test]
fn a_signal_that_waits_for_a_busy_run_comes_through_after_the_run_was_evicted() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    world.signal("w", "unseen").expect("it is taken");
    let reply = world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    assert!(matches!(reply, ReportAnswer::TaskRefused { .. }));
    world.take_task();
    let call =
        Signal { target: target("w"), signal: signal("late"), extension: Default::default() };
    let ticket = world.call(shard_of("w"), call);
    evict(&mut world, run);
    assert!(!world.replies.contains_key(&ticket));
    world.send(shard_of("w"), Message::SessionLost("session".into()));
    assert!(world.replies[&ticket].is_ok());
    let signals = world.history("w", run).iter().filter(|name| **name == "SignalReceived").count();
    assert_eq!(signals, 2);
}

fn update(world: &mut World) -> Ticket {
    let request = UpdateRequest { name: "change".into(), ..UpdateRequest::default() };
    let call = Update {
        target: target("w"),
        update: "u".into(),
        request,
        until: UpdateWait::Accepted,
        wait_while_blocked: false,
    };
    world.call(shard_of("w"), call)
}

#[test]
fn an_update_waits_for_a_task_also_if_its_run_is_evicted() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let ticket = update(&mut world);
    evict(&mut world, run);
    // The queue had no room for the offer, and has some now. The run need not be read for that.
    refill(&mut world);
    assert_eq!(cached(&world, [&run]), 0);
    world.offers.retain(|offer| offer.run == run && offer.work == Work::Workflow);
    let token = world.take_task();
    let request = UpdateRequest { name: "change".into(), ..UpdateRequest::default() };
    world.complete(token, vec![Ask::AcceptUpdate { update: "u".into(), request }]);
    let answer = world.replies.remove(&ticket);
    let Some(Ok(AnyAnswer::Update(UpdateAnswer::Reached { .. }))) = answer else {
        panic!("not accepted: {answer:?}")
    };
}

/// Updates that code has not judged are only in memory, so evicted runs cannot give theirs back.
#[test]
fn a_shard_has_room_for_few_large_updates_whatever_runs_they_are_for() {
    let limits = Limits { waiting_update_bytes: 2 * LARGE, cached_bytes: 1, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let update = |id: &str, update: &str, bytes: usize| Update {
        target: target(id),
        update: update.into(),
        request: UpdateRequest {
            name: "change".into(),
            input: vec![Payload::new(vec![7; bytes])],
            ..UpdateRequest::default()
        },
        until: UpdateWait::Admitted,
        wait_while_blocked: false,
    };
    let mut accepted = 0;
    for id in ids() {
        world.start(&id);
        match world.ask(shard_of(&id), update(&id, "u", LARGE)) {
            Ok(_) => accepted += 1,
            Err(error) => assert_eq!(error, CallError::Overloaded),
        }
    }
    assert_eq!(accepted, 2);
    let last = ids().pop().expect("there are ids");
    let small = world.ask(shard_of(&last), update(&last, "small", 1_000));
    assert!(small.is_ok(), "small ones do not wait for large ones: {small:?}");
    world.offers.retain(|offer| offer.workflow.workflow.as_str() == "w");
    let token = world.take_task();
    let request = UpdateRequest { name: "change".into(), ..UpdateRequest::default() };
    world.complete(token, vec![Ask::AcceptUpdate { update: "u".into(), request }]);
    let large = world.ask(shard_of(&last), update(&last, "u", LARGE));
    assert!(large.is_ok(), "there is room again: {large:?}");
}

#[test]
fn a_heartbeat_outlives_the_eviction_of_its_run() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    world.complete(token, vec![activity("a", Default::default())]);
    let Dispatch::Activity { token, .. } = world.take("session") else { panic!("not an activity") };
    for details in ["written", "in memory"] {
        let beat = Report::Heartbeat(token.clone(), vec![Payload::new(details)]);
        world.report(shard_of("w"), beat).expect("it is taken");
    }
    evict(&mut world, run);
    let failed = Report::ResolveActivity(token, Resolution::Failed(Failure::default()));
    world.report(shard_of("w"), failed).expect("it is taken");
    world.pass(Duration::from_secs(1));
    let Dispatch::Activity { given, .. } = world.take("session") else { panic!("not an activity") };
    assert_eq!(given.heartbeat, Some(vec![Payload::new("in memory")]));
}

/// Heartbeats that are not written are only in memory, so evicted runs cannot give theirs back. Those that
/// find no room are written as seldom as all others: each may be as large as a payload.
#[test]
fn a_shard_has_room_for_few_large_heartbeats_and_writes_them_seldom() {
    let limits = Limits { heartbeat_bytes: 2 * LARGE, cached_bytes: 1, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let beat = |world: &mut World, token: &ActivityToken, details: u8| {
        let details = vec![Payload::new(vec![details; LARGE])];
        let report = Report::Heartbeat(token.clone(), details);
        world.report(shard_of("w"), report).expect("it is taken");
    };
    let mut tokens = Vec::new();
    for id in ids() {
        world.start(&id);
        let task = world.take_task();
        world.complete(task, vec![activity("a", Default::default())]);
        let Dispatch::Activity { token, .. } = world.take("session") else { panic!("no activity") };
        tokens.push(token);
    }
    for details in 1..=3 {
        tokens.iter().for_each(|token| beat(&mut world, token, details));
    }
    let rows = |world: &World| {
        let log = |run| world.tables.log(shard_of("w"), run, 0, LogLimit::rows(usize::MAX));
        tokens.iter().map(|token| log(token.run).len()).sum::<usize>()
    };
    let written = rows(&world);
    tokens.iter().for_each(|token| beat(&mut world, token, 4));
    assert_eq!(rows(&world), written, "they were written a moment ago");
    let mut resumed = Vec::new();
    for token in &tokens {
        let failed = Resolution::Failed(Failure::default());
        let failed = Report::ResolveActivity(token.clone(), failed);
        world.report(shard_of("w"), failed).expect("it is taken");
        world.pass(Duration::from_secs(1));
        let Dispatch::Activity { given, .. } = world.take("session") else { panic!("no activity") };
        resumed.push(given.heartbeat.expect("one was written")[0].data[0]);
    }
    assert_eq!(resumed.iter().filter(|details| **details == 4).count(), 2, "{resumed:?}");
    assert_eq!(resumed.iter().filter(|details| **details == 1).count(), RUNS - 2, "{resumed:?}");
}

/// The signals that a continue-as-new carries over are read from the log, and the run may be evicted
/// meanwhile.
#[test]
fn a_run_that_continues_as_new_may_be_evicted_while_its_signals_are_read() {
    let mut world = world();
    let run = start(&mut world, "w");
    world.signal("w", "carried").expect("it is taken");
    let token = world.take_task();
    let position = world.history("w", run).iter().position(|name| *name == "SignalReceived");
    let number = u64::try_from(position.expect("it is there")).unwrap() + 1;
    let spec = world.start_call("w").spec;
    let next = ContinueAsNew { spec, signals: vec![number], updates: Vec::new() };
    let commands = vec![Ask::ContinueAsNew(Box::new(next)).into()];
    let completion = TaskCompletion { commands, ..TaskCompletion::default() };
    world.reads = Reads::Held;
    let ticket = world.say(shard_of("w"), Report::CompleteTask(token, Box::new(completion)));
    world.reads = Reads::Answered;
    evict(&mut world, run);
    world.answer_read();
    let answer = world.acknowledged.remove(&ticket);
    assert!(matches!(answer, Some(Ok(ReportAnswer::TaskTaken { .. }))), "{answer:?}");
    let next = world.describe("w").run;
    assert_ne!(next, run);
    let facts = world.facts("w", next);
    let carried = facts.iter().any(|fact| matches!(fact, Fact::SignalReceived(_)));
    assert!(carried, "{facts:?}");
}

#[test]
fn a_reset_forgets_the_tasks_of_evicted_runs() {
    let mut world = world();
    let run = start(&mut world, "w");
    let token = world.take_task();
    evict(&mut world, run);
    world.crash();
    let late = world.report(shard_of("w"), Report::CompleteTask(token, Box::default()));
    assert_eq!(late.unwrap_err(), Refusal::StaleTask.into());
    assert!(world.offers.iter().any(|offer| offer.run == run));
}
