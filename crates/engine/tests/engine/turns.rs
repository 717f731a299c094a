//! Large answers are built in turn, and no turn is taken while another node is asked.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use abide_core::operation::{AnyOperation, CallError, Caller, Describe, History, ListRuns};
use abide_engine::{Engine, Turn};
use futures_util::{FutureExt as _, future::join_all};
use tokio::task::yield_now;

use crate::{
    links::Cluster,
    support::{ask_here, repeat, start_call, target},
};

/// Starts a run that the first engine does not serve.
async fn start_elsewhere(cluster: &Cluster) -> String {
    let engine = &cluster.engines[0];
    for number in 0.. {
        let id = format!("run-{number}");
        let started =
            repeat(engine, || crate::support::ask(engine, start_call(&id, "hello"))).await;
        started.expect("it is taken");
        let described = ask_here(engine, Describe { target: target(&id) }).await;
        if matches!(described, Err(CallError::NotServed)) {
            return id;
        }
    }
    unreachable!("the other node serves some shards")
}

/// Takes part in building answers, and counts how many do.
async fn build(engine: &Engine, operation: AnyOperation, taken: &AtomicUsize) -> bool {
    let turns = || {
        taken.fetch_add(1, SeqCst);
        std::future::ready(Box::new(()) as Turn).boxed()
    };
    let built = engine.ask_in_turn(&Caller::TRUSTED, operation, &turns).await;
    built.is_ok_and(|(_, turn)| turn.is_some())
}

#[tokio::test]
async fn a_node_that_does_not_answer_holds_no_turn() {
    let cluster = Cluster::of(2).await;
    let id = start_elsewhere(&cluster).await;
    let engine = &cluster.engines[0];
    let (taken, lists) = (AtomicUsize::new(0), AtomicUsize::new(0));
    cluster.silence(0, true);
    let history = History { target: target(&id), from: 0, follow: None };
    let asked: [AnyOperation; 2] = [Describe { target: target(&id) }.into(), history.into()];
    let mut asked =
        std::pin::pin!(join_all(asked.map(|operation| build(engine, operation, &taken))));
    for _ in 0..100 {
        assert!(asked.as_mut().now_or_never().is_none(), "the owner does not answer");
        yield_now().await;
    }
    assert_eq!(taken.load(SeqCst), 0, "they wait for the owner, and not in their turn");
    let list = ListRuns { filter: Default::default(), limit: None };
    assert!(build(engine, list.into(), &lists).await, "others go on");
    cluster.silence(0, false);
    assert_eq!(asked.await, [true, true]);
    assert_eq!((taken.load(SeqCst), lists.load(SeqCst)), (2, 1));
}
