//! Large answers are built in turn. No turn is taken while another node is asked, and none for longer
//! than one read of the store takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use abide_core::{
    limits::Limits,
    list::RunFilter,
    operation::{AnyOperation, CallError, Caller, CountRuns, Describe, History, ListRuns},
};
use abide_engine::{Engine, Options, Turn};
use abide_store::{
    Pending, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
};
use futures_util::{FutureExt as _, future::join_all};
use tokio::{sync::Semaphore, task::yield_now, time::timeout};

use crate::{
    links::Cluster,
    support::{ask_here, repeat, start, start_call, target},
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

/// Counts the reads of one kind, and holds them back until the gate is open.
struct GatedStore {
    kept: MemoryStore,
    held: Read,
    reads: AtomicUsize,
    gate: Semaphore,
}

impl GatedStore {
    fn new(held: Read) -> Arc<Self> {
        let (kept, reads, gate) = (MemoryStore::default(), AtomicUsize::new(0), Semaphore::new(0));
        Arc::new(Self { kept, held, reads, gate })
    }
}

impl Forward for GatedStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if read != self.held {
            return answer;
        }
        self.reads.fetch_add(1, SeqCst);
        Box::pin(async move {
            // A semaphore that is closed lets all pass.
            drop(self.gate.acquire().await);
            answer.await
        })
    }
}

/// Performs an operation that takes its turns from these places.
async fn ask_in_turn(engine: &Engine, operation: AnyOperation, places: &Arc<Semaphore>) {
    let turns = || {
        let place = Arc::clone(places).acquire_owned();
        place.map(|turn| Box::new(turn) as Turn).boxed()
    };
    let answer = engine.ask_in_turn(&Caller::TRUSTED, operation, &turns).await;
    assert!(answer.is_ok(), "{:?}", answer.err());
}

#[tokio::test]
async fn counts_of_many_runs_hold_no_turn() {
    const PLACES: usize = 8;
    let store = GatedStore::new(Read::CountRuns);
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    start(&engine, "run", "any").await;
    let places = Arc::new(Semaphore::new(PLACES));
    let count = || CountRuns { filter: Default::default() }.into();
    let counts = join_all((0..PLACES).map(|_| ask_in_turn(&engine, count(), &places)));
    let described = async {
        while store.reads.load(SeqCst) < PLACES {
            yield_now().await;
        }
        let describe = Describe { target: target("run") };
        ask_in_turn(&engine, describe.into(), &places).await;
        store.gate.close();
    };
    let all = async { tokio::join!(counts, described) };
    timeout(Duration::from_secs(60), all).await.expect("a description does not wait for counts");
    engine.shutdown().await;
}

#[tokio::test]
async fn a_list_that_walks_over_many_runs_lets_others_have_their_turn() {
    const RUNS: usize = 5;
    let store = GatedStore::new(Read::Runs);
    let limits = Limits { examined_rows: 1, ..Limits::default() };
    let engine = Engine::start(Arc::clone(&store) as _, Options { limits, ..Options::default() });
    for number in 0..RUNS {
        start(&engine, &format!("run-{number}"), "any").await;
    }
    let places = Arc::new(Semaphore::new(1));
    let filter = RunFilter { workflow_type: Some("no such type".into()), ..RunFilter::default() };
    let list = ask_in_turn(&engine, ListRuns { filter, limit: None }.into(), &places);
    let described = async {
        while store.reads.load(SeqCst) == 0 {
            yield_now().await;
        }
        let describe = Describe { target: target("run-0") };
        let described = ask_in_turn(&engine, describe.into(), &places);
        let mut described = std::pin::pin!(described);
        assert!(described.as_mut().now_or_never().is_none(), "the list has the turn");
        store.gate.close();
        described.await;
        store.reads.load(SeqCst)
    };
    let ((), reads) = tokio::join!(list, described);
    assert_eq!(reads, 1, "the description comes after one read of the list");
    assert!(store.reads.load(SeqCst) >= RUNS, "the list walks over all runs");
    engine.shutdown().await;
}
