//! A driver of shards that ends by a panic is a failure of the engine, which can still be shut down.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use abide_engine::{Engine, Options};
use abide_store::{Batch, CommitError, Pending, Store, forward::Forward, memory::MemoryStore};
use tokio::time::timeout;

use crate::support::{ask, start_call};

/// Panics in the driver that sends the next commit, once it is told to.
#[derive(Default)]
struct PanickingStore {
    kept: MemoryStore,
    panics: AtomicBool,
}

impl Forward for PanickingStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        assert!(!self.panics.swap(false, SeqCst), "as the test wants it");
        self.kept.commit(batch)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_can_be_shut_down_after_one_of_its_drivers_has_panicked() {
    let store = Arc::new(PanickingStore::default());
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    engine.ready().await;
    store.panics.store(true, SeqCst);
    let started = ask(&engine, start_call("run", "any")).await;
    assert!(started.is_err(), "{started:?}");
    assert!(engine.failed().await.contains("panic"));
    let ended = timeout(Duration::from_secs(60), engine.shutdown()).await;
    ended.expect("no shard of the driver is waited for");
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    ask(&engine, start_call("run", "any")).await.expect("a new engine serves all shards");
    engine.shutdown().await;
}
