//! Runs continue after a restart, sleeps end on time, and parents await children on other shards.

use std::{sync::Arc, time::Duration};

use abide_core::{
    codec::decode_events,
    dispatch::{QueueKey, WorkKind, Worker},
    event::SignalReceived,
    limits::Limits,
    operation::{AwaitClose, CallError, Closed, Describe, History, Signal, Terminate},
    run::Close,
    time::Timestamp,
};
use abide_engine::{Engine, Given, Options, clock::ManualClock};
use abide_program::Node;
use abide_store::{Store, memory::MemoryStore};

use crate::support::{
    activity, ask, closed, connect, history, programs, start, start_call, target, wait_for_waits,
    work, workflow,
};

#[tokio::test]
async fn a_hello_completes() {
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), Options::default()));
    let programs = programs([("hello", vec![activity("greet")])]);
    let worker = tokio::spawn(work(Arc::clone(&engine), connect(&engine, "one"), programs));
    for n in 0..20 {
        start(&engine, &format!("hello-{n}"), "hello").await;
    }
    for n in 0..20 {
        let (_, how) = closed(&engine, &format!("hello-{n}")).await;
        assert_eq!(how, Close::Completed);
    }
    worker.abort();
}

#[tokio::test]
async fn a_month_of_sleep_ends_when_the_clock_says_so_over_a_restart() {
    let store = Arc::new(MemoryStore::default());
    let begin = Timestamp::from_unix_millis(1_800_000_000_000);
    let month = Duration::from_secs(30 * 24 * 3600);
    let programs = programs([("sleeper", vec![Node::Sleep(month)])]);

    let clock = Arc::new(ManualClock::new(begin));
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Arc::new(Engine::start(Arc::clone(&store) as Arc<dyn Store>, options.clone()));
    let worker =
        tokio::spawn(work(Arc::clone(&engine), connect(&engine, "one"), Arc::clone(&programs)));
    start(&engine, "sleeper", "sleeper").await;
    wait_for_waits(&engine, 1).await;
    worker.abort();
    drop(worker.await);
    engine.shutdown().await;

    clock.move_to(begin.saturating_add(month - Duration::from_nanos(1)));
    let engine = Arc::new(Engine::start(store, options));
    let worker = tokio::spawn(work(Arc::clone(&engine), connect(&engine, "two"), programs));
    wait_for_waits(&engine, 1).await;
    clock.move_to(begin.saturating_add(month));
    let (run, how) = closed(&engine, "sleeper").await;
    assert_eq!(how, Close::Completed);
    let history = history(&engine, &workflow("sleeper"), run).await;
    let end = history.last().expect("an event").time;
    assert_eq!(end, begin.saturating_add(month));
    worker.abort();
}

#[tokio::test]
async fn parents_await_children_and_signals_on_other_shards() {
    let store = Arc::new(MemoryStore::default());
    let engine = Arc::new(Engine::start(store, Options::default()));
    let programs = programs([
        ("parent", vec![Node::child("child"), Node::signal("go")]),
        ("child", vec![activity("work")]),
    ]);
    let worker = tokio::spawn(work(Arc::clone(&engine), connect(&engine, "one"), programs));
    start(&engine, "family", "parent").await;
    let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
    let call = Signal { target: target("family"), signal, extension: Default::default() };
    ask(&engine, call).await.expect("the signal is taken");
    assert_eq!(closed(&engine, "family").await.1, Close::Completed);
    worker.abort();
}

#[tokio::test]
async fn a_followed_history_arrives_when_it_is_written() {
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), Options::default()));
    let programs = programs([("waiter", vec![Node::signal("go")])]);
    let worker = tokio::spawn(work(Arc::clone(&engine), connect(&engine, "one"), programs));
    start(&engine, "waiter", "waiter").await;
    wait_for_waits(&engine, 1).await;
    let request = |from, follow| History { target: target("waiter"), from, follow };
    let seen = ask(&engine, request(0, None)).await.expect("a page");
    assert!(!seen.closed && !seen.more);
    let last = seen.rows.into_iter().flat_map(|row| decode_events(row).expect("readable")).last();
    let follow = request(seen.next, last.map(|event| event.number));
    let following = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { ask(&engine, follow).await.expect("a page") }
    });
    let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
    let call = Signal { target: target("waiter"), signal, extension: Default::default() };
    ask(&engine, call).await.expect("the signal is taken");
    let page = following.await.expect("it ends");
    let names: Vec<_> = page
        .rows
        .into_iter()
        .flat_map(|row| decode_events(row).expect("readable"))
        .map(|event| event.body.fact.name())
        .collect();
    assert_eq!(names[0], "SignalReceived");
    worker.abort();
}

#[tokio::test]
async fn a_session_that_comes_back_keeps_its_new_stream() {
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), Options::default()));
    let programs = programs([("hello", vec![activity("greet")])]);
    let mut old = connect(&engine, "one");
    let new = connect(&engine, "one");
    assert!(old.next().await.is_none(), "the old stream has ended");
    drop(old);
    let worker = tokio::spawn(work(Arc::clone(&engine), new, programs));
    start(&engine, "hello", "hello").await;
    assert_eq!(closed(&engine, "hello").await.1, Close::Completed);
    worker.abort();
}

#[tokio::test]
async fn an_unknown_namespace_is_refused_with_the_known_ones() {
    let engine = Engine::start(Arc::new(MemoryStore::default()), Options::default());
    let mut elsewhere = target("hello");
    elsewhere.workflow.namespace = "elsewhere".into();
    let error = ask(&engine, Describe { target: elsewhere }).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        r#"namespace "elsewhere" does not exist; known namespaces: default"#
    );
}

#[tokio::test]
async fn a_shutdown_tells_callers_and_ends_streams() {
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), Options::default()));
    engine.ready().await;
    let mut session = connect(&engine, "one");
    start(&engine, "hello", "hello").await;
    let waiting = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { ask(&engine, AwaitClose { target: target("hello") }).await }
    });
    tokio::task::yield_now().await;
    engine.shutdown().await;
    let error = waiting.await.expect("it ends").expect_err("it did not close");
    assert!(matches!(error, CallError::Unavailable(_)));
    while session.next().await.is_some() {}
}

#[tokio::test]
async fn a_caller_that_goes_away_is_forgotten_and_others_are_answered() {
    let limits = Limits { run_waiters: 1, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let engine = Engine::start(Arc::new(MemoryStore::default()), options);
    start(&engine, "hello", "hello").await;
    let close = || ask(&engine, AwaitClose { target: target("hello") });
    {
        let mut first = std::pin::pin!(close());
        tokio::select! {
            biased;
            _ = &mut first => panic!("nobody closed the run"),
            refused = close() => assert_eq!(refused.expect_err("full"), CallError::Overloaded),
        }
    }
    let terminate = Terminate {
        target: target("hello"),
        reason: "enough".into(),
        identity: "me".into(),
        details: Vec::new(),
        key: None,
    };
    let (second, ended) = tokio::join!(close(), ask(&engine, terminate));
    assert!(ended.is_ok());
    assert!(matches!(second, Ok(Closed { how: Close::Terminated, .. })));
}

#[tokio::test]
async fn credit_of_a_stream_that_was_replaced_counts_for_nothing() {
    let engine = Arc::new(Engine::start(Arc::new(MemoryStore::default()), Options::default()));
    engine.ready().await;
    let old = connect(&engine, "one");
    let late = old.credits();
    let worker =
        Worker { session: "one".into(), identity: "one".into(), build: Some("build".into()) };
    let mut new = engine.connect(worker, None);
    let queue =
        QueueKey { namespace: "default".into(), queue: "queue".into(), kind: WorkKind::Workflow };
    late.give(queue.clone(), 10);
    start(&engine, "first", "hello").await;
    start(&engine, "second", "hello").await;
    new.credit(queue, 1);
    assert!(matches!(new.next().await, Some(Given::Work(_))));
    engine.shutdown().await;
    assert!(new.next().await.is_none(), "one credit is one task");
}

#[tokio::test]
async fn an_engine_whose_shards_were_taken_says_that_it_failed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let former = Engine::start(Arc::clone(&store), Options::default());
    former.ready().await;
    let owner = Engine::start(store, Options { name: "other".into(), ..Options::default() });
    owner.ready().await;
    let call = start_call("hello", "hello");
    ask(&former, call).await.expect_err("another engine owns the shard");
    assert!(!former.failed().await.is_empty());
    start(&owner, "hello", "hello").await;
}
