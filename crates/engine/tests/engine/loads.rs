//! A client may send one small message to each of very many large runs. They are loaded a few at a
//! time, so that they do not take memory all at once.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use abide_core::{
    event::SignalReceived,
    limits::Limits,
    operation::{Describe, Signal},
    payload::Payload,
};
use abide_engine::{Engine, Options};
use abide_store::{
    Batch, CommitError, Pending, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
};
use futures_util::future::join_all;
use tokio::{
    sync::{Semaphore, watch},
    time::timeout,
};

use crate::support::{ask, repeat, start, start_call, target, workflow};

const RUNS: usize = 40;

/// Runs that an engine loads at the same time.
const LOADS: usize = 8;

/// Counts loads, whose second page it holds back until the gate is open.
struct GatedStore {
    kept: MemoryStore,
    loads: AtomicUsize,
    gate: Semaphore,
}

impl Forward for GatedStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        match read {
            Read::Load => {
                self.loads.fetch_add(1, SeqCst);
                answer
            }
            Read::Log => Box::pin(async move {
                // A semaphore that is closed lets all pass.
                drop(self.gate.acquire().await);
                answer.await
            }),
            _ => answer,
        }
    }
}

#[tokio::test]
async fn large_runs_are_loaded_a_few_at_a_time() {
    let store = Arc::new(GatedStore {
        kept: MemoryStore::default(),
        loads: AtomicUsize::new(0),
        gate: Semaphore::new(0),
    });
    let ids: Vec<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    for id in &ids {
        start(&engine, id, "large").await;
    }
    engine.shutdown().await;
    // Each page holds one row, so that every run takes a second one.
    let limits = Limits { log_page_bytes: 1, ..Limits::default() };
    let engine = Engine::start(Arc::clone(&store) as _, Options { limits, ..Options::default() });
    engine.ready().await;
    let all = join_all(ids.iter().map(|id| ask(&engine, Describe { target: target(id) })));
    let stuck = async {
        while store.loads.load(SeqCst) < LOADS {
            tokio::task::yield_now().await;
        }
        // Nothing else waits for anything but the gate, so this is time enough for more loads to begin.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(store.loads.load(SeqCst), LOADS);
        store.gate.close();
    };
    let (described, ()) = tokio::join!(all, stuck);
    assert!(described.iter().all(Result::is_ok), "{described:?}");
    assert_eq!(store.loads.load(SeqCst), RUNS);
    engine.shutdown().await;
}

/// Counts loads, and holds all commits back while the gate is closed.
struct SlowStore {
    kept: MemoryStore,
    loads: AtomicUsize,
    gate: watch::Sender<bool>,
}

impl Forward for SlowStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        Box::pin(async move {
            // The sender lives as long as the store.
            drop(self.gate.subscribe().wait_for(|open| *open).await);
            self.kept.commit(batch).await
        })
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if matches!(read, Read::Load) {
            self.loads.fetch_add(1, SeqCst);
        }
        answer
    }
}

/// A run with writes that are not durable cannot leave memory, so the others wait for it.
#[tokio::test]
async fn large_runs_are_loaded_as_fast_as_they_are_written() {
    for (bytes, at_once) in [(200_000, LOADS), (100, RUNS)] {
        let (kept, loads, gate) = Default::default();
        let store = Arc::new(SlowStore { kept, loads, gate });
        store.gate.send_replace(true);
        let ids: Vec<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
        let engine = Engine::start(Arc::clone(&store) as _, Options::default());
        for id in &ids {
            let mut call = start_call(id, "any");
            call.spec.input = vec![Payload::new(vec![7; bytes])];
            ask(&engine, call).await.expect("it starts");
        }
        engine.shutdown().await;
        let engine = Engine::start(Arc::clone(&store) as _, Options::default());
        engine.ready().await;
        store.gate.send_replace(false);
        let signal = |id: &String| {
            let signal = SignalReceived { name: "any".into(), ..SignalReceived::default() };
            Signal { target: target(id), signal, extension: Default::default() }
        };
        let all = join_all(ids.iter().map(|id| ask(&engine, signal(id))));
        let stuck = async {
            while store.loads.load(SeqCst) < at_once {
                tokio::task::yield_now().await;
            }
            // Nothing else waits for anything but the gate, so this is time enough for more loads to begin.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            assert_eq!(store.loads.load(SeqCst), at_once, "runs of {bytes} bytes");
            store.gate.send_replace(true);
        };
        let (signalled, ()) = tokio::join!(all, stuck);
        assert!(signalled.iter().all(Result::is_ok), "{signalled:?}");
        assert_eq!(store.loads.load(SeqCst), RUNS);
        engine.shutdown().await;
    }
}

/// Takes no writes once it is full.
#[derive(Default)]
struct FullStore {
    kept: MemoryStore,
    full: AtomicBool,
}

impl Forward for FullStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        if self.full.load(SeqCst) {
            return Box::pin(ready(Err(CommitError::Full("no space".into()))));
        }
        self.kept.commit(batch)
    }

    fn read<'a, T: Send + 'a>(&'a self, _: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            // As with a store on disk, the answer is not there at once, so that more is asked meanwhile.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            answer.await
        })
    }
}

/// A shard that cannot claim its epoch starts loads again, and must not hold on to the turns that
/// these loads had.
#[tokio::test]
async fn runs_are_read_from_a_full_store_however_many_are_asked_for_at_once() {
    let store = Arc::new(FullStore::default());
    let ids: Vec<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    for id in &ids {
        start(&engine, id, "any").await;
    }
    engine.shutdown().await;
    store.full.store(true, SeqCst);
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    let thrice = ids.iter().chain(&ids).chain(&ids);
    let described = join_all(thrice.map(|id| ask(&engine, Describe { target: target(id) })));
    let described =
        timeout(Duration::from_secs(60), described).await.expect("no load waits for another");
    assert!(described.iter().all(Result::is_ok), "{described:?}");
    engine.shutdown().await;
}

/// Holds the first page of each run back until the gate is open, and fails one commit.
struct InterruptedStore {
    kept: MemoryStore,
    loads: AtomicUsize,
    searches: AtomicUsize,
    gate: Semaphore,
    fault: Mutex<Option<CommitError>>,
}

impl Forward for InterruptedStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        match self.fault.lock().expect("no test panics with it").take() {
            Some(error) => Box::pin(ready(Err(error))),
            None => self.kept.commit(batch),
        }
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        match read {
            Read::Load => Box::pin(async move {
                self.loads.fetch_add(1, SeqCst);
                // A semaphore that is closed lets all pass.
                drop(self.gate.acquire().await);
                answer.await
            }),
            Read::RunsOf => {
                self.searches.fetch_add(1, SeqCst);
                answer
            }
            _ => answer,
        }
    }
}

/// Ids of workflows of one shard.
fn neighbours() -> impl Iterator<Item = String> {
    let shard = workflow("0").slot().shard();
    let ids = (0..).map(|number: u32| number.to_string());
    ids.filter(move |id| workflow(id).slot().shard() == shard)
}

/// The shard loses its memory while loads are in flight, and is asked for the same runs again. The
/// answers to the first loads are of no use to it, and must not keep their turns.
#[tokio::test]
async fn loads_that_a_shard_no_longer_waits_for_give_their_turn_to_others() {
    for fault in [CommitError::Unknown("lost".into()), CommitError::Full("no space".into())] {
        let store = Arc::new(InterruptedStore {
            kept: MemoryStore::default(),
            loads: AtomicUsize::new(0),
            searches: AtomicUsize::new(0),
            gate: Semaphore::new(0),
            fault: Mutex::default(),
        });
        let mut ids = neighbours();
        let runs: Vec<_> = ids.by_ref().take(LOADS).collect();
        let engine = Engine::start(Arc::clone(&store) as _, Options::default());
        for id in &runs {
            start(&engine, id, "any").await;
        }
        engine.shutdown().await;
        let engine = Engine::start(Arc::clone(&store) as _, Options::default());
        engine.ready().await;
        let describe =
            || join_all(runs.iter().map(|id| ask(&engine, Describe { target: target(id) })));
        let interrupted = async {
            while store.loads.load(SeqCst) < LOADS {
                tokio::task::yield_now().await;
            }
            *store.fault.lock().expect("no test panics with it") = Some(fault.clone());
            let [lost, opened] = [ids.next(), ids.next()].map(|id| id.expect("there are more"));
            let failed = ask(&engine, start_call(&lost, "any")).await;
            assert!(failed.is_err(), "{failed:?}");
            let started = repeat(&engine, || ask(&engine, start_call(&opened, "any"))).await;
            assert!(started.is_ok(), "the shard is open again: {started:?}");
            let searches = store.searches.load(SeqCst);
            let asked = async {
                while store.searches.load(SeqCst) < searches + LOADS {
                    tokio::task::yield_now().await;
                }
                // Nothing else waits for anything but the gate, so this is time enough for the loads to
                // be asked for.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                store.gate.close();
            };
            tokio::join!(describe(), asked).0
        };
        let all = async { tokio::join!(describe(), interrupted) };
        let all = timeout(Duration::from_secs(60), all).await;
        let (_, described) = all.unwrap_or_else(|_| panic!("loads wait for ever after {fault}"));
        assert!(described.iter().all(Result::is_ok), "{described:?}");
        engine.shutdown().await;
    }
}
