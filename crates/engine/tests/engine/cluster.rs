//! Several engines on one store: each owns its share of the shards, each accepts every call, and a worker
//! connected to one of them receives tasks of all.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use abide_core::{
    command::Ask,
    dispatch::{Dispatch, WorkKind, Worker},
    event::SignalReceived,
    ids::RunId,
    operation::{AwaitClose, CallError, Describe, Operation, Signal},
    report::{Report, TaskCompletion},
    run::Close,
};
use abide_engine::{Engine, Given};
use abide_program::Node;

use crate::{
    links::Cluster,
    support::{
        Programs, activity, ask, ask_here, connect, programs, queue, repeat, start_call, target,
        wait_for_waits, work, workflow,
    },
};

async fn insist<O: Operation + Sync>(engine: &Engine, operation: O) -> O::Answer {
    repeat(engine, || ask(engine, operation.clone())).await.expect("it is taken")
}

async fn start(engine: &Engine, id: &str, workflow_type: &str) {
    insist(engine, start_call(id, workflow_type)).await;
}

async fn closed(engine: &Engine, id: &str) -> Close {
    insist(engine, AwaitClose { target: target(id) }).await.how
}

/// The run of a workflow task.
fn task_of(given: Given) -> RunId {
    match given {
        Given::Work(Dispatch::Workflow { token, .. }) => token.run,
        other => panic!("not a workflow task: {other:?}"),
    }
}

/// A worker that reconnects when its stream ends, which happens when the node loses its lease.
fn work_at(engine: &Arc<Engine>, session: &'static str, programs: &Programs) {
    let (engine, programs) = (Arc::clone(engine), Arc::clone(programs));
    tokio::spawn(async move {
        while !engine.stopping() {
            let connected = connect(&engine, session);
            work(Arc::clone(&engine), connected, Arc::clone(&programs)).await;
        }
    });
}

#[tokio::test]
async fn a_worker_at_one_node_gets_the_work_of_all() {
    let cluster = Cluster::of(3).await;
    let programs = programs([
        ("parent", vec![activity("greet"), Node::child("child"), Node::signal("go")]),
        ("child", vec![activity("work")]),
    ]);
    work_at(&cluster.engines[1], "one", &programs);
    for n in 0..30 {
        start(&cluster.engines[n % 3], &format!("family-{n}"), "parent").await;
    }
    for n in 0..30 {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        let call = Signal {
            target: target(&format!("family-{n}")),
            signal,
            extension: Default::default(),
        };
        insist(&cluster.engines[(n + 1) % 3], call).await;
    }
    for n in 0..30 {
        let how = closed(&cluster.engines[(n + 2) % 3], &format!("family-{n}")).await;
        assert_eq!(how, Close::Completed, "family-{n}");
    }
    let described = ask(&cluster.engines[0], Describe { target: target("family-7") })
        .await
        .expect("it is shown");
    assert_eq!(described.workflow, workflow("family-7"));
}

#[tokio::test]
async fn a_node_that_leaves_hands_over_and_nobody_waits_for_its_lease() {
    let mut cluster = Cluster::of(2).await;
    let programs = programs([("patient", vec![Node::signal("go"), activity("work")])]);
    for n in 0..20 {
        start(&cluster.engines[0], &format!("run-{n}"), "patient").await;
    }
    work_at(&cluster.engines[0], "one", &programs);
    wait_for_waits(&cluster.engines[0], 10).await;
    let leaving = cluster.engines.pop().expect("two");
    leaving.shutdown().await;
    for n in 0..20 {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        let call =
            Signal { target: target(&format!("run-{n}")), signal, extension: Default::default() };
        insist(&cluster.engines[0], call).await;
        assert_eq!(closed(&cluster.engines[0], &format!("run-{n}")).await, Close::Completed);
    }
}

#[tokio::test]
async fn the_shards_of_a_dead_node_are_taken_over_with_their_timers() {
    let mut cluster = Cluster::of(2).await;
    let sleep = Node::Sleep(Duration::from_millis(400));
    let programs = programs([("sleeper", vec![sleep, activity("work")])]);
    work_at(&cluster.engines[0], "one", &programs);
    for n in 0..20 {
        start(&cluster.engines[0], &format!("run-{n}"), "sleeper").await;
    }
    cluster.kill_newest();
    for n in 0..20 {
        assert_eq!(closed(&cluster.engines[0], &format!("run-{n}")).await, Close::Completed);
    }
}

/// No call fails while shards move to a node that joins and back when it leaves.
#[tokio::test]
async fn calls_wait_for_a_shard_that_moves() {
    let mut cluster = Cluster::of(1).await;
    for n in 0..64 {
        start(&cluster.engines[0], &format!("run-{n}"), "patient").await;
    }
    let engine = Arc::clone(&cluster.engines[0]);
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let caller = tokio::spawn(async move {
        let mut calls = 0_u32;
        while !*stopped.borrow() {
            for n in 0..64 {
                let call = Describe { target: target(&format!("run-{n}")) };
                let reply = ask(&engine, call).await.expect("it waits for its shard");
                assert_eq!(reply.workflow.workflow.as_str(), format!("run-{n}"));
                let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
                let call = Signal {
                    target: target(&format!("run-{n}")),
                    signal,
                    extension: Default::default(),
                };
                ask(&engine, call).await.expect("it waits for its shard");
                calls += 2;
            }
        }
        calls
    });
    for _ in 0..3 {
        cluster.join().await;
        cluster.leave_newest().await;
    }
    stop.send_replace(true);
    assert!(caller.await.expect("no call failed") > 0);
}

/// A commit of the node is never answered, so the node never releases the shard.
#[tokio::test]
async fn callers_at_a_node_without_a_store_are_told_when_its_lease_is_over() {
    let cluster = Cluster::of(2).await;
    let [good, cut_off] = &*cluster.engines else { panic!("two") };
    let mut id = String::new();
    for n in 0.. {
        id = format!("run-{n}");
        start(good, &id, "patient").await;
        if ask_here(cut_off, Describe { target: target(&id) }).await.is_ok() {
            break;
        }
    }
    let signal = || {
        let signal = SignalReceived { name: "go".into(), ..SignalReceived::default() };
        Signal { target: target(&id), signal, extension: Default::default() }
    };
    cluster.cables[1].cut();
    let answers = tokio::join!(
        ask_here(cut_off, signal()),
        ask_here(cut_off, AwaitClose { target: target(&id) }),
        ask(good, signal()),
    );
    let answers = [answers.0.map(drop), answers.1.map(drop), answers.2.map(drop)];
    for answer in answers {
        assert!(matches!(answer, Err(CallError::Reset)), "{answer:?}");
    }
    insist(good, signal()).await;
    assert!(ask_here(good, Describe { target: target(&id) }).await.is_ok(), "it has taken the run");
}

/// When a link breaks in either direction, no node waits for the messages in flight.
#[tokio::test]
async fn what_is_lost_with_a_link_is_said_again_when_it_comes_back() {
    let cluster = Cluster::of(2).await;
    let programs = programs([
        ("parent", vec![Node::child("child"), activity("work"), Node::child("child")]),
        ("child", vec![activity("work")]),
    ]);
    work_at(&cluster.engines[0], "one", &programs);
    work_at(&cluster.engines[1], "two", &programs);
    for round in 0..6 {
        let (from, to) = (round % 2, (round + 1) % 2);
        for n in 0..20 {
            start(&cluster.engines[n % 2], &format!("family-{round}-{n}"), "parent").await;
        }
        cluster.cut(from, to);
        // One node misses a message of the other.
        for n in 20..30 {
            start(&cluster.engines[to], &format!("family-{round}-{n}"), "parent").await;
        }
        cluster.mend(from, to);
        for n in 0..30 {
            let how = closed(&cluster.engines[n % 2], &format!("family-{round}-{n}")).await;
            assert_eq!(how, Close::Completed);
        }
    }
}

/// One credit, which is lent repeatedly over a link that breaks repeatedly.
#[tokio::test]
async fn no_credit_is_lost_with_a_link() {
    let cluster = Cluster::of(2).await;
    let programs = programs([("short", vec![activity("work")])]);
    let worker = Worker { session: "one".into(), identity: "one".into(), build: None };
    let session = cluster.engines[1].connect(worker, None);
    for kind in [WorkKind::Workflow, WorkKind::Activity] {
        session.credit(queue(kind), 1);
    }
    tokio::spawn(work(Arc::clone(&cluster.engines[1]), session, programs));
    for round in 0..10 {
        for n in 0..10 {
            start(&cluster.engines[n % 2], &format!("run-{round}-{n}"), "short").await;
        }
        let (from, to) = (round % 2, (round + 1) % 2);
        cluster.cut(from, to);
        tokio::task::yield_now().await;
        cluster.mend(from, to);
        for n in 0..10 {
            let how = closed(&cluster.engines[0], &format!("run-{round}-{n}")).await;
            assert_eq!(how, Close::Completed);
        }
    }
}

/// A node notices late that a worker has disconnected: the worker already has a task from another node.
#[tokio::test]
async fn a_worker_that_went_to_another_node_keeps_what_it_gets_there() {
    let cluster = Cluster::of(3).await;
    let mut before = connect(&cluster.engines[0], "worker");
    for n in 0..30 {
        start(&cluster.engines[2], &format!("run-{n}"), "patient").await;
    }
    let mut tasks = BTreeSet::new();
    while tasks.len() < 30 {
        tasks.insert(task_of(before.next().await.expect("work")));
    }
    let mut after = connect(&cluster.engines[1], "worker");
    while before.next().await.is_some() {}
    let mut tokens = BTreeMap::new();
    while tokens.len() < 30 {
        if let Some(Given::Work(Dispatch::Workflow { token, .. })) = after.next().await {
            tokens.insert(token.run, token);
        }
    }
    drop(before);
    for token in tokens.into_values() {
        let commands = vec![Ask::CompleteRun(Vec::new()).into()];
        let completion = TaskCompletion { commands, ..TaskCompletion::default() };
        let report = Report::CompleteTask(token, Box::new(completion));
        let engine = &cluster.engines[1];
        let told = repeat(engine, || engine.report(report.clone())).await;
        told.expect("it is taken");
    }
}
