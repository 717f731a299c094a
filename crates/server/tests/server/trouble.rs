//! A store that refuses or is damaged shows on the pages that operators watch, and what it does not
//! concern is served.

use std::{
    future::ready,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use abide_core::{
    event::SignalReceived,
    ids::RunId,
    operation::{CallError, History, Signal},
};
use abide_engine::{Engine, Options};
use abide_sdk::transport::ask;
use abide_server::Server;
use abide_store::{
    Batch, CommitError, Pending, ReadError, Store, Write,
    forward::{Forward, Read},
    memory::MemoryStore,
};

use crate::{
    metrics::sample,
    network::get,
    support::{config, start, target, transport},
};

#[derive(Default)]
struct BadStore {
    kept: MemoryStore,
    refused: Mutex<Option<RunId>>,
    damaged: AtomicBool,
}

impl BadStore {
    fn refuses(&self, batch: &Batch) -> bool {
        let refused = *self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let appends =
            |write: &Write| matches!(write, Write::AppendLog(row) if Some(row.run) == refused);
        batch.writes.iter().any(appends)
    }
}

impl Forward for BadStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn commit(&self, batch: Batch) -> Pending<'_, (), CommitError> {
        if self.refuses(&batch) {
            return Box::pin(ready(Err(CommitError::Refused("a row is wrong".into()))));
        }
        self.kept.commit(batch)
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if read == Read::Log && self.damaged.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(ReadError::Corrupt("a page is torn".into()))));
        }
        answer
    }
}

async fn bad() -> (Server, Arc<BadStore>) {
    let store = Arc::new(BadStore::default());
    let engine = Engine::start(Arc::clone(&store) as _, Options::default());
    let server = Server::serve(config(), Arc::new(engine)).await.expect("it starts");
    server.ready().await;
    (server, store)
}

async fn signal(server: &Server, id: &str) -> Result<(), CallError> {
    let signal = SignalReceived { name: "hello".into(), ..SignalReceived::default() };
    let signal = Signal { target: target(id), signal, extension: Default::default() };
    ask(&*transport(server), signal).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_writes_the_store_refuses_is_set_aside_and_shown() {
    let (server, store) = bad().await;
    let transport = transport(&server);
    let run = start(&*transport, "victim", "any").await;
    *store.refused.lock().unwrap() = Some(run);
    let aside = loop {
        match signal(&server, "victim").await {
            Err(error @ CallError::SetAside(_)) => break error,
            Err(_) => {}
            Ok(()) => panic!("it was not written"),
        }
    };
    assert_eq!(aside, CallError::SetAside(run));
    assert_eq!(sample(&server, "abide_runs_set_aside").await, Some(1.0));
    let refused = sample(&server, "abide_store_faults_total{kind=\"refused\"}").await;
    assert!(refused >= Some(2.0), "{refused:?}");
    let page = get(server.http_address(), "/readyz").await;
    assert!(page.contains("runs: set aside: 1, because the store refused"), "{page}");
    assert!(page.contains("store: refused a commit: batch refused: a row is wrong"), "{page}");
    start(&*transport, "other", "any").await;
    signal(&server, "other").await.expect("others are served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_of_the_store_is_shown() {
    let (server, store) = bad().await;
    let transport = transport(&server);
    start(&*transport, "victim", "any").await;
    assert_eq!(sample(&server, "abide_store_faults_total{kind=\"damaged\"}").await, Some(0.0));
    store.damaged.store(true, Ordering::SeqCst);
    let history = ask(&*transport, History { target: target("victim"), from: 0, follow: None });
    assert!(history.await.is_err());
    let counted = sample(&server, "abide_store_faults_total{kind=\"damaged\"}").await;
    assert!(counted >= Some(1.0), "{counted:?}");
    let page = get(server.http_address(), "/readyz").await;
    assert!(page.contains("store: damaged: ") && page.contains("a page is torn"), "{page}");
    signal(&server, "victim").await.expect("it still takes messages");
}
