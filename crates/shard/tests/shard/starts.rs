//! At most one open run per workflow id, one run per idempotency key, and the conflict and reuse policies.

use std::time::Duration;

use abide_core::{
    command::{Ask, ContinueAsNew},
    dispatch::Dispatch,
    event::{ReusePolicy, SignalReceived},
    limits::Limits,
    list::RunStatus,
    operation::{
        AnyAnswer, Begin, CallError, ConflictPolicy, Describe, Done, Query, QueryRequest,
        RunTarget, Start, Started, Terminate,
    },
    payload::Payload,
    run::Refusal,
    search::Definitions,
    time::Timestamp,
};
use abide_shard::message::Notice;
use abide_store::{RunFilter, rows::RegistryRow};
use bytes::Bytes;

use crate::harness::{Reads, World, shard_of, target, workflow};

fn start(world: &mut World, change: impl FnOnce(&mut Start)) -> Result<AnyAnswer, CallError> {
    let mut call = world.start_call("w");
    change(&mut call);
    world.ask(shard_of("w"), call)
}

fn close(world: &mut World, ask: Ask) {
    let token = world.take_task();
    world.complete(token, vec![ask]);
}

#[test]
fn an_open_run_refuses_another_start() {
    let mut world = World::new();
    let run = world.start("w");
    let error = start(&mut world, |_| {}).unwrap_err();
    assert!(matches!(error, CallError::AlreadyExists { run: open, .. } if open == run));
}

#[test]
fn an_open_run_can_be_used_with_a_signal() {
    let mut world = World::new();
    let run = world.start("w");
    let reply = start(&mut world, |call| {
        call.conflict = ConflictPolicy::UseExisting;
        call.signal = Some(SignalReceived { name: "hello".into(), ..Default::default() });
    });
    assert!(
        matches!(reply, Ok(AnyAnswer::Started(Started { run: used, started: false, .. })) if used == run)
    );
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

/// The delay does not depend on the client's clock.
#[test]
fn a_delay_is_counted_from_the_start_by_the_engine() {
    let mut world = World::new();
    let delay = Duration::from_secs(60);
    start(&mut world, |call| call.begin = Begin::After(delay)).unwrap();
    let run = world.run("w");
    assert_eq!(run.first_task_at, Some(run.started_at.saturating_add(delay)));
}

#[test]
fn a_run_that_has_not_begun_refuses_queries_until_it_has() {
    let mut world = World::new();
    let delay = Duration::from_secs(60);
    start(&mut world, |call| call.begin = Begin::After(delay)).unwrap();
    let begins_at = world.run("w").started_at.saturating_add(delay);
    let query = |world: &mut World| {
        let query = QueryRequest::new("status", Vec::new());
        world.call(shard_of("w"), Query { target: target("w"), query })
    };
    let early = query(&mut world);
    let refused = world.replies[&early].as_ref().unwrap_err();
    assert_eq!(*refused, CallError::Refused(Refusal::NotBegun { begins_at }));
    world.pass(delay);
    let waiting = query(&mut world);
    assert!(!world.replies.contains_key(&waiting));
    let token = world.take_task();
    world.complete(token, Vec::new());
    assert!(matches!(world.take("session"), Dispatch::Query { .. }));
}

#[test]
fn a_beginning_that_never_comes_is_refused() {
    let mut world = World::new();
    for begin in [Begin::After(Duration::MAX), Begin::At(Timestamp::NEVER)] {
        let error = start(&mut world, |call| call.begin = begin).unwrap_err();
        assert!(matches!(error, CallError::Invalid(invalid) if invalid.field == "begin"));
    }
}

#[test]
fn what_waited_for_a_busy_run_goes_to_the_run_that_follows_it() {
    let mut world = World::with_limits(Limits { buffered_inputs: 0, ..Limits::default() });
    world.start("w");
    let token = world.take_task();
    let mut call = world.start_call("w");
    call.conflict = ConflictPolicy::UseExisting;
    call.signal = Some(SignalReceived { name: "hello".into(), ..Default::default() });
    let ticket = world.call(shard_of("w"), call);
    assert!(!world.replies.contains_key(&ticket), "it waits for the task to end");
    let spec = world.run("w").spec;
    let next = ContinueAsNew { spec, signals: Vec::new(), updates: Vec::new() };
    world.complete(token, vec![Ask::ContinueAsNew(Box::new(next))]);
    let next = world.run("w");
    let reply = world.replies.remove(&ticket).expect("it is answered");
    let used = matches!(reply, Ok(AnyAnswer::Started(Started { run, started: false, .. })) if run == next.id);
    assert!(used, "{reply:?}");
    assert_eq!(world.history("w", next.id), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

#[test]
fn what_waited_for_a_run_that_is_replaced_goes_to_the_new_one() {
    let mut world = World::with_limits(Limits { buffered_inputs: 0, ..Limits::default() });
    world.start("w");
    world.take_task();
    let mut call = world.start_call("w");
    call.conflict = ConflictPolicy::UseExisting;
    call.signal = Some(SignalReceived { name: "hello".into(), ..Default::default() });
    let ticket = world.call(shard_of("w"), call);
    start(&mut world, |call| call.conflict = ConflictPolicy::TerminateExisting).expect("it is new");
    let next = world.run("w");
    assert_eq!(next.ordinal, 2);
    let reply = world.replies.remove(&ticket).expect("it is answered");
    let used = matches!(reply, Ok(AnyAnswer::Started(Started { run, started: false, .. })) if run == next.id);
    assert!(used, "{reply:?}");
}

#[test]
fn a_repeated_start_finds_its_run_also_before_that_is_committed() {
    let mut world = World::new();
    world.start("w");
    world.commit_at_once = false;
    let calls: Vec<_> = ["a", "b"]
        .map(|key| Start {
            key: Some(key.into()),
            conflict: ConflictPolicy::TerminateExisting,
            ..world.start_call("w")
        })
        .into();
    let first = world.call(shard_of("w"), calls[0].clone());
    world.call(shard_of("w"), calls[1].clone());
    let again = world.call(shard_of("w"), calls[0].clone());
    world.commit(Ok(()));
    world.commit(Ok(()));
    let mut told = |ticket| match world.replies.remove(&ticket) {
        Some(Ok(AnyAnswer::Started(Started { run, .. }))) => run,
        other => panic!("not started: {other:?}"),
    };
    assert_eq!(told(first), told(again));
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 3);
}

#[test]
fn an_open_run_can_be_replaced_in_one_batch() {
    let mut world = World::new();
    let old = world.start("w");
    world.commit_at_once = false;
    let mut call = world.start_call("w");
    call.conflict = ConflictPolicy::TerminateExisting;
    let started = world.call(shard_of("w"), call);
    world.commit(Ok(()));
    assert!(world.commits.is_empty());
    let Some(Ok(AnyAnswer::Started(Started { run: new, .. }))) = world.replies.remove(&started)
    else {
        panic!("not started");
    };
    assert_eq!(world.history("w", old), ["RunStarted", "TaskScheduled", "RunTerminated"]);
    assert_eq!(world.history("w", new), ["RunStarted", "TaskScheduled"]);
}

#[test]
fn a_repeated_start_finds_its_run_by_key_among_all_runs() {
    let mut world = World::new();
    let first = start(&mut world, |call| call.key = Some("one".into()));
    close(&mut world, Ask::CompleteRun(Vec::new()));
    start(&mut world, |call| call.key = Some("two".into())).unwrap();
    close(&mut world, Ask::CompleteRun(Vec::new()));
    world.crash();
    let again = start(&mut world, |call| call.key = Some("one".into()));
    let run = |reply| match reply {
        Ok(AnyAnswer::Started(Started { run, started: true, .. })) => run,
        other => panic!("{other:?}"),
    };
    assert_eq!(run(first), run(again));
}

#[test]
fn the_id_of_a_closed_workflow_is_used_again_as_its_policy_says() {
    for (ask, policy, allowed) in [
        (Ask::CompleteRun(Vec::new()), ReusePolicy::Allow, true),
        (Ask::CompleteRun(Vec::new()), ReusePolicy::AllowIfFailed, false),
        (Ask::CompleteRun(Vec::new()), ReusePolicy::Reject, false),
        (Ask::FailRun(Default::default()), ReusePolicy::AllowIfFailed, true),
        (Ask::FailRun(Default::default()), ReusePolicy::Reject, false),
    ] {
        let mut world = World::new();
        world.start("w");
        close(&mut world, ask.clone());
        let reply = start(&mut world, |call| call.reuse = policy);
        assert_eq!(reply.is_ok(), allowed, "{ask:?} {policy:?}");
    }
}

#[test]
fn bad_requests_say_what_is_wrong_and_change_nothing() {
    let mut world = World::new();
    let reply = start(&mut world, |call| call.spec.queue.clear());
    assert_eq!(reply.unwrap_err().to_string(), "queue is empty");
    let reply = start(&mut world, |call| call.spec.workflow_type = "t".repeat(1001));
    let text = "workflow type has 1001 bytes, the limit is 1000";
    assert_eq!(reply.unwrap_err().to_string(), text);
    let reply = start(&mut world, |call| call.spec.cron = Some("soon".into()));
    assert_eq!(
        reply.unwrap_err().to_string(),
        "cron \"soon\" is not a cron expression: it has 1 of the 5 fields minute, hour, day, month, weekday"
    );
    let reply = world.ask(shard_of("w"), Describe { target: target("w") });
    assert_eq!(reply.unwrap_err(), CallError::NotFound);
    assert!(world.tables.runs(&RunFilter::default(), 1).is_empty());
}

#[test]
fn a_start_that_read_the_current_run_before_another_began_looks_again() {
    let mut world = World::with_limits(Limits { cached_runs: 0, ..Limits::default() });
    world.start("w");
    world.reads = Reads::Held;
    let replace = |world: &mut World| {
        let call = world.start_call("w");
        let call = Start { conflict: ConflictPolicy::TerminateExisting, ..call };
        world.call(shard_of("w"), call);
    };
    replace(&mut world);
    world.answer_read();
    // The first call knows the current run and reads it; the second looks up which run is current.
    replace(&mut world);
    world.reads = Reads::Answered;
    world.answer_read();
    world.answer_read();
    assert_eq!(world.run("w").ordinal, 3);
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 3);
}

#[test]
fn a_start_comes_to_its_end_although_no_run_stays_in_memory() {
    let mut world =
        World::with_limits(Limits { cached_runs: 0, page_rows: 1, ..Limits::default() });
    for key in ["one", "two"] {
        start(&mut world, |call| call.key = Some(key.into())).unwrap();
        close(&mut world, Ask::CompleteRun(Vec::new()));
    }
    // The shard reads all older runs to find the key; meanwhile the current run is evicted.
    start(&mut world, |call| call.key = Some("three".into())).unwrap();
    assert_eq!(world.run("w").ordinal, 3);
}

/// Rows may be as large as a request, so that many at once would need much memory.
#[test]
fn pages_of_a_log_end_by_their_bytes() {
    let mut world = World::with_limits(Limits { log_page_bytes: 1, ..Limits::default() });
    world.start("w");
    for key in ["one", "two", "three"] {
        world.signal("w", key).unwrap();
    }
    let before = world.describe("w");
    world.crash();
    assert_eq!(world.describe("w"), before);
    assert_eq!(world.largest_page, 1);
}

/// Refused because the key was used for a different request.
#[track_caller]
fn key_is_reused(reply: Result<AnyAnswer, CallError>) {
    assert_eq!(reply.expect_err("the key was used"), Refusal::KeyReused("one".into()).into());
}

#[test]
fn a_key_that_comes_back_with_another_start_is_refused() {
    let mut world = World::new();
    let keyed = |call: &mut Start| call.key = Some("one".into());
    let other_input = |call: &mut Start| {
        keyed(call);
        call.spec.input = vec![Payload::new("other")];
    };
    let other_type = |call: &mut Start| {
        keyed(call);
        call.spec.workflow_type = "other".into();
    };
    start(&mut world, keyed).unwrap();
    for _ in 0..2 {
        key_is_reused(start(&mut world, other_input));
        key_is_reused(start(&mut world, other_type));
        start(&mut world, keyed).expect("the same is a repeat");
        world.crash();
    }
    // The run that has the key is no longer the current one.
    start(&mut world, |call| call.conflict = ConflictPolicy::TerminateExisting).unwrap();
    for _ in 0..2 {
        key_is_reused(start(&mut world, other_input));
        key_is_reused(start(&mut world, other_type));
        start(&mut world, keyed).expect("the same is a repeat");
        world.crash();
    }
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 2);
}

#[test]
fn a_start_that_is_repeated_with_another_signal_is_refused() {
    let mut world = World::new();
    let signalled = |world: &mut World, text: Option<&'static str>| {
        start(world, |call| {
            call.key = Some("one".into());
            call.signal = text.map(|text| SignalReceived {
                name: "hello".into(),
                input: vec![Payload::new(text)],
                ..SignalReceived::default()
            });
        })
    };
    signalled(&mut world, Some("first")).unwrap();
    for _ in 0..2 {
        key_is_reused(signalled(&mut world, Some("second")));
        signalled(&mut world, Some("first")).expect("the same is a repeat");
        world.crash();
    }
    let run = world.run("w").id;
    let history = world.history("w", run);
    assert_eq!(history.iter().filter(|name| **name == "SignalReceived").count(), 1);

    let mut world = World::new();
    signalled(&mut world, None).unwrap();
    key_is_reused(signalled(&mut world, Some("first")));
}

#[test]
fn a_signal_with_start_whose_key_was_used_for_another_is_refused() {
    let mut world = World::new();
    let signalled = |world: &mut World, text: &'static str| {
        start(world, |call| {
            call.conflict = ConflictPolicy::UseExisting;
            call.signal = Some(SignalReceived {
                name: "hello".into(),
                input: vec![Payload::new(text)],
                key: Some("one".into()),
                ..SignalReceived::default()
            });
        })
    };
    signalled(&mut world, "first").unwrap();
    key_is_reused(signalled(&mut world, "second"));
    signalled(&mut world, "first").expect("the same is a repeat");
}

#[test]
fn a_repeated_start_of_an_older_run_does_not_make_that_one_current() {
    let mut world = World::with_limits(Limits { cached_runs: 0, ..Limits::default() });
    let keyed = |world: &mut World, key: &str| start(world, |call| call.key = Some(key.into()));
    let started = |reply| match reply {
        Ok(AnyAnswer::Started(Started { run, .. })) => run,
        other => panic!("not started: {other:?}"),
    };
    let first = started(keyed(&mut world, "one"));
    close(&mut world, Ask::CompleteRun(Vec::new()));
    let second = started(keyed(&mut world, "two"));
    assert_eq!(started(keyed(&mut world, "one")), first);
    let third = keyed(&mut world, "three");
    assert!(
        matches!(third, Err(CallError::AlreadyExists { run, .. }) if run == second),
        "two runs are open: {third:?}"
    );
}

/// The answer to a termination is lost, another run starts, and the caller repeats its request.
#[test]
fn a_repeated_termination_that_names_no_run_does_not_end_a_later_one() {
    let mut world = World::with_limits(Limits { cached_runs: 0, ..Limits::default() });
    let end = |run| Terminate {
        target: RunTarget { run, ..target("w") },
        reason: "enough".into(),
        identity: "operator".into(),
        details: Vec::new(),
        key: Some("end".into()),
    };
    world.start("w");
    world.ask(shard_of("w"), end(None)).expect("it ends");
    for _ in 0..2 {
        let run = world.start("w");
        let repeat = world.ask(shard_of("w"), end(None));
        assert!(matches!(repeat, Ok(AnyAnswer::Done(Done { repeat: true, .. }))), "{repeat:?}");
        assert_eq!(world.describe("w").status, RunStatus::Running);
        let named = world.ask(shard_of("w"), end(Some(run)));
        assert!(matches!(named, Ok(AnyAnswer::Done(Done { repeat: false, .. }))), "{named:?}");
    }
}

#[test]
fn search_attributes_that_cannot_be_read_refuse_the_start_and_are_told() {
    let mut world = World::new();
    let name = Definitions::registry_name(&workflow("w").namespace);
    let garbage = RegistryRow { name, version: 1, value: Bytes::from_static(b"?") };
    assert!(world.tables.put_registry(garbage));
    let mut call = world.start_call("w");
    let payload = Payload { data: Bytes::from_static(b"5"), ..Payload::default() };
    call.spec.search_attributes = [("Amount".to_owned(), payload)].into();
    let refused = world.ask(shard_of("w"), call);
    assert!(matches!(refused, Err(CallError::Unavailable(_))), "{refused:?}");
    let [Notice::UnreadableAttributes(reason)] = &world.notices[..] else {
        panic!("{:?}", world.notices)
    };
    assert!(reason.contains(workflow("w").namespace.as_str()), "{reason}");
    world.start("w");
}
