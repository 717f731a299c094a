//! A store that accepts no writes: mutations are refused immediately, reads continue, and mutations work
//! again once the store accepts writes.

use std::time::Duration;

use abide_core::{
    dispatch::Dispatch,
    event::RunTerminated,
    limits::Limits,
    operation::{
        AnyAnswer, AwaitClose, AwaitEvents, CallError, Closed, Describe, Done, Events, Query,
        QueryAnswer, QueryRequest, Terminate,
    },
    report::Report,
    run::Close,
};
use abide_shard::message::Notice;
use abide_store::CommitError;

use crate::harness::{Reads, World, shard_of, target, timer};

const HOUR: Duration = Duration::from_secs(3600);

fn full() -> CommitError {
    CommitError::Full("no space left".into())
}

/// A workflow that sleeps for an hour, on a store that has become full.
fn sleeping_on_a_full_disk() -> World {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    let fire_at = world.now.saturating_add(HOUR);
    world.complete(token, vec![timer("t", fire_at)]);
    world.trouble = Some(full());
    refused(world.signal("w", "lost"));
    world
}

fn refused(answer: Result<AnyAnswer, CallError>) {
    match answer {
        Err(CallError::Unavailable(why)) => assert!(why.contains("full"), "{why}"),
        other => panic!("not refused: {other:?}"),
    }
}

fn terminate() -> Terminate {
    let RunTerminated { reason, identity, details, key, .. } = RunTerminated::default();
    Terminate { target: target("w"), reason, identity, details, key }
}

#[test]
fn while_the_disk_is_full_changes_are_refused_at_once_and_reads_go_on() {
    let mut world = sleeping_on_a_full_disk();
    for second in 0..100 {
        refused(world.signal("w", "lost"));
        let start = world.start_call("w");
        refused(world.ask(shard_of("w"), start));
        assert_eq!(world.run("w").timers.len(), 1, "after {second} s");
        let history = world.ask(shard_of("w"), AwaitEvents { target: target("w"), after: 0 });
        assert!(matches!(history, Ok(AnyAnswer::Events(Events { .. }))), "{history:?}");
        let missing = Describe { target: target(&format!("other-{second}")) };
        let shard = missing.target.workflow.slot().shard();
        if shard == shard_of("w") {
            assert_eq!(world.ask(shard, missing).unwrap_err(), CallError::NotFound);
        }
        world.pass(Duration::from_secs(1));
    }
    assert!(world.notices.contains(&Notice::ReadOnly(full())));
}

/// The claim of the earlier owner stands until the store accepts the next one.
#[test]
fn what_an_earlier_owner_still_writes_is_shown_by_the_next_one() {
    let mut world = World::new();
    world.start("w");
    let shard = shard_of("w");
    let mut earlier = world.shards.remove(&shard).expect("it is open");
    (world.owner, world.trouble) = ("next", Some(full()));
    assert_eq!(world.describe("w").last_event, 2);
    for (key, last_event) in [("one", 3), ("two", 4)] {
        let next = world.shards.insert(shard, earlier).expect("it is open");
        world.trouble = None;
        world.signal("w", key).expect("its epoch is still the last");
        earlier = world.shards.insert(shard, next).expect("it is open");
        world.trouble = Some(full());
        assert_eq!(world.describe("w").last_event, last_event);
    }
}

#[test]
fn when_there_is_room_again_everything_goes_on_within_a_second() {
    let mut world = sleeping_on_a_full_disk();
    let run = world.run("w").id;
    let waiter = world.call(shard_of("w"), AwaitClose { target: target("w") });
    world.pass(HOUR);
    refused(world.signal("w", "lost"));
    assert!(!world.history("w", run).contains(&"TimerFired"));
    world.trouble = None;
    world.pass(Duration::from_secs(1));
    world.pass(Duration::ZERO);
    assert_eq!(world.history("w", run).last(), Some(&"TaskScheduled"), "the timer has fired");
    assert!(matches!(world.signal("w", "kept"), Ok(AnyAnswer::Done(Done { repeat: false, .. }))));
    assert!(!world.replies.contains_key(&waiter), "who waited before waits on");
    world.ask(shard_of("w"), terminate()).unwrap();
    let closed = world.replies.remove(&waiter);
    assert!(
        matches!(closed, Some(Ok(AnyAnswer::Closed(Closed { how: Close::Terminated, .. })))),
        "{closed:?}"
    );
}

#[test]
fn a_read_that_waited_for_a_write_which_failed_is_told_what_is_stored() {
    let mut world = World::new();
    world.start("w");
    world.commit_at_once = false;
    let end = world.call(shard_of("w"), terminate());
    let read = world.call(shard_of("w"), Describe { target: target("w") });
    assert!(world.replies.is_empty());
    world.commit(Err(full()));
    refused(world.replies.remove(&end).expect("it is answered at once"));
    match world.replies.remove(&read) {
        Some(Ok(AnyAnswer::Description(run))) => assert!(run.status.is_open()),
        other => panic!("not described: {other:?}"),
    }
}

#[test]
fn queries_are_answered_while_the_disk_is_full_unless_a_task_comes_first() {
    let mut world = sleeping_on_a_full_disk();
    let query = QueryRequest::new("status", Vec::new());
    let call = Query { target: target("w"), query };
    let ticket = world.call(shard_of("w"), call.clone());
    let Dispatch::Query { token, .. } = world.take("session") else { panic!("a query") };
    world.report(shard_of("w"), Report::AnswerQuery(token, Ok(Vec::new()))).unwrap();
    assert!(matches!(
        world.replies.remove(&ticket),
        Some(Ok(AnyAnswer::Query(QueryAnswer(Ok(_)))))
    ));
    world.trouble = None;
    world.pass(Duration::from_secs(1));
    world.signal("w", "news").unwrap();
    world.trouble = Some(full());
    refused(world.signal("w", "lost"));
    refused(world.ask(shard_of("w"), call));
}

#[test]
fn a_store_that_can_neither_be_written_nor_read_refuses_at_once_too() {
    let mut world = sleeping_on_a_full_disk();
    world.reads = Reads::Failing;
    world.pass(Duration::from_secs(1));
    for _ in 0..3 {
        let answer = world.ask(shard_of("w"), Describe { target: target("w") });
        assert!(matches!(answer, Err(CallError::Unavailable(_))), "{answer:?}");
        refused(world.signal("w", "lost"));
        world.pass(Duration::from_secs(1));
    }
    (world.reads, world.trouble) = (Reads::Answered, None);
    world.pass(Duration::from_secs(1));
    assert!(world.signal("w", "kept").is_ok());
}

#[test]
fn runs_that_are_read_while_the_disk_is_full_leave_memory() {
    let mut world = World::with_limits(Limits { cached_runs: 2, ..Limits::default() });
    let ids = (0..).map(|n| format!("w-{n}")).filter(|id| shard_of(id) == shard_of("w"));
    let ids: Vec<_> = ids.take(5).collect();
    let runs: Vec<_> = ids.iter().map(|id| world.start(id)).collect();
    world.trouble = Some(full());
    refused(world.signal(&ids[0], "lost"));
    for id in &ids {
        world.describe(id);
    }
    let shard = &world.shards[&shard_of("w")];
    assert!(runs.iter().filter(|run| shard.peek(**run).is_some()).count() <= 2);
}

#[test]
fn a_store_that_is_full_when_the_shard_is_first_opened_can_be_read() {
    let mut world = World::new();
    world.start("w");
    world.crash();
    world.trouble = Some(full());
    let early = world.call(shard_of("w"), Describe { target: target("w") });
    assert!(matches!(world.replies.remove(&early), Some(Ok(AnyAnswer::Description(_)))));
    refused(world.signal("w", "lost"));
}
