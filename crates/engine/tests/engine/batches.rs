//! A batch that is known as running is carried out, once, whatever happens to the request that started it,
//! to the store and to the engine.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use abide_core::{
    batch::{Batch, BatchAction, BatchSpec, BatchState, Batches, ListBatches, StartBatch},
    operation::CallError,
};
use abide_engine::{Engine, Options};
use abide_store::{
    CommitError, Pending, ReadError, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
    rows::RegistryRow,
};
use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};

use crate::support::{ask, start};

const RUNS: u64 = 3;

/// What happens to the next row of the registry that is written.
const WRITTEN: u8 = 0;
const WRITTEN_AND_UNKNOWN: u8 = 1;
const LATE_AND_UNKNOWN: u8 = 2;
const WRITTEN_AND_HELD: u8 = 3;

struct UncertainStore {
    kept: MemoryStore,
    next: AtomicU8,
    late: Mutex<Option<RegistryRow>>,
    answers: Semaphore,
    /// Whether reads of the registry fail, and how many did.
    broken: AtomicBool,
    failed: watch::Sender<u64>,
    /// Number of rows of the registry that were written.
    written: watch::Sender<u64>,
}

impl UncertainStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            kept: MemoryStore::default(),
            next: AtomicU8::new(WRITTEN),
            late: Mutex::default(),
            answers: Semaphore::new(0),
            broken: AtomicBool::new(false),
            failed: watch::Sender::default(),
            written: watch::Sender::default(),
        })
    }

    fn next(&self, what: u8) {
        self.next.store(what, Ordering::SeqCst);
    }

    async fn write(&self, row: RegistryRow) -> Result<bool, CommitError> {
        let written = self.kept.put_registry(row).await;
        self.written.send_modify(|number| *number += 1);
        written
    }
}

impl Forward for UncertainStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if read == Read::Registry && self.broken.load(Ordering::SeqCst) {
            self.failed.send_modify(|number| *number += 1);
            return Box::pin(ready(Err(ReadError::Unavailable("the disk is gone".into()))));
        }
        answer
    }

    fn put_registry(&self, row: RegistryRow) -> Pending<'_, bool, CommitError> {
        let unknown = || Err(CommitError::Unknown("the connection is lost".into()));
        Box::pin(async move {
            match self.next.swap(WRITTEN, Ordering::SeqCst) {
                LATE_AND_UNKNOWN => {
                    *self.late.lock().expect("no test panics here") = Some(row);
                    unknown()
                }
                WRITTEN_AND_UNKNOWN => {
                    self.write(row).await?;
                    unknown()
                }
                WRITTEN_AND_HELD => {
                    let written = self.write(row).await;
                    self.answers.acquire().await.expect("it is never closed").forget();
                    written
                }
                _ => self.write(row).await,
            }
        })
    }
}

async fn engine(store: &Arc<UncertainStore>) -> Engine {
    let engine = Engine::start(Arc::clone(store) as _, Options::default());
    for number in 0..RUNS {
        start(&engine, &format!("run-{number}"), "order").await;
    }
    engine
}

fn terminate(id: &str) -> StartBatch {
    let spec = BatchSpec {
        id: id.into(),
        query: "WorkflowType = 'order'".into(),
        action: BatchAction::Terminate,
        rate: 0,
        reason: "test".into(),
        identity: "test".into(),
    };
    StartBatch { namespace: "default".into(), spec }
}

/// The batch, when it has ended.
async fn ended(engine: &Engine, store: &UncertainStore, id: &str) -> Batch {
    let mut written = store.written.subscribe();
    let ended = async {
        loop {
            let listed = ask(engine, ListBatches { namespace: "default".into() }).await;
            let Batches(listed) = listed.expect("they are listed");
            let batch = listed.into_iter().find(|batch| batch.spec.id == id);
            if let Some(batch) = batch.filter(|batch| !batch.running()) {
                return batch;
            }
            written.changed().await.expect("the store is there");
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the batch is carried out")
}

/// Starts a batch, and goes when it is written.
async fn leave_before_the_answer(engine: &Engine, store: &UncertainStore) {
    store.next(WRITTEN_AND_HELD);
    let mut written = store.written.subscribe();
    tokio::select! {
        answer = ask(engine, terminate("b")) => panic!("the store has not answered: {answer:?}"),
        changed = written.changed() => changed.expect("the store is there"),
    }
}

fn check_complete(batch: &Batch) {
    let Batch { state, total, done, failed, .. } = batch;
    assert_eq!((state, *total, *done, *failed), (&BatchState::Completed, RUNS, RUNS, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_carried_out_if_its_caller_is_gone_before_the_answer() {
    let store = UncertainStore::new();
    let engine = engine(&store).await;
    leave_before_the_answer(&engine, &store).await;
    store.answers.add_permits(1);
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_carried_out_if_the_store_does_not_say_whether_it_was_written() {
    let store = UncertainStore::new();
    let engine = engine(&store).await;
    store.next(WRITTEN_AND_UNKNOWN);
    let refused = ask(&engine, terminate("b")).await;
    assert!(matches!(refused, Err(CallError::Unavailable(_))), "{refused:?}");
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_carries_out_a_batch_that_was_written_late() {
    let store = UncertainStore::new();
    let engine = engine(&store).await;
    store.next(LATE_AND_UNKNOWN);
    ask(&engine, terminate("b")).await.unwrap_err();
    let late = store.late.lock().unwrap().take().expect("it was to be written");
    assert!(store.kept.put_registry(late).await.unwrap());
    ask(&engine, terminate("b")).await.unwrap();
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeats_before_the_first_answer_are_the_same_batch() {
    let store = UncertainStore::new();
    let engine = engine(&store).await;
    store.next(WRITTEN_AND_HELD);
    let mut written = store.written.subscribe();
    let repeats = async {
        written.changed().await.expect("the store is there");
        for answer in join_all((0..8).map(|_| ask(&engine, terminate("b")))).await {
            assert_eq!(answer.unwrap().0[0].total, RUNS);
        }
        store.answers.add_permits(1);
    };
    let (first, ()) = tokio::join!(ask(&engine, terminate("b")), repeats);
    first.unwrap();
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}

/// Leaves a batch behind whose process is gone.
async fn interrupted(store: &Arc<UncertainStore>) {
    let engine = engine(store).await;
    leave_before_the_answer(&engine, store).await;
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_after_a_restart_during_which_it_could_not_be_read() {
    let store = UncertainStore::new();
    interrupted(&store).await;
    store.broken.store(true, Ordering::SeqCst);
    let mut failed = store.failed.subscribe();
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    failed.changed().await.expect("the store is there");
    store.broken.store(false, Ordering::SeqCst);
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_cannot_be_read_does_not_keep_others_from_going_on() {
    let store = UncertainStore::new();
    let name = Batch::registry_name(&"another".into());
    let row = RegistryRow { name, version: 1, value: vec![0xff; 9].into() };
    assert!(store.kept.put_registry(row).await.unwrap());
    interrupted(&store).await;
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    check_complete(&ended(&engine, &store, "b").await);
    engine.shutdown().await;
}
