//! Lists show only configured namespaces: runs of a removed namespace are hidden, because no call can
//! reach them.

use std::{collections::BTreeSet, sync::Arc};

use abide_core::{
    ids::WorkflowKey,
    list::{RunFilter, WaitFilter},
    operation::{CallError, Count, CountRuns, ListRuns, ListWaits, Started},
};
use abide_engine::{Engine, Options};
use abide_program::Node;
use abide_store::memory::MemoryStore;

use crate::support::{ask, connect, programs, start, start_call, work};

fn engine(store: &Arc<MemoryStore>, namespaces: &[&str]) -> Arc<Engine> {
    let namespaces: BTreeSet<_> = namespaces.iter().map(|name| (*name).into()).collect();
    let options = Options { namespaces, ..Options::default() };
    Arc::new(Engine::start(Arc::clone(store) as _, options))
}

/// Runs, their number, and waits.
async fn listed(
    engine: &Engine,
    namespace: Option<&str>,
) -> Result<(usize, u64, usize), CallError> {
    let namespace = namespace.map(Into::into);
    let runs = RunFilter { namespace: namespace.clone(), ..RunFilter::default() };
    let waits = WaitFilter { namespace, ..WaitFilter::default() };
    let shown = ask(engine, ListRuns { filter: runs.clone(), limit: None }).await?.rows.len();
    let Count(counted) = ask(engine, CountRuns { filter: runs }).await?;
    let waits = ask(engine, ListWaits { filter: waits, limit: None }).await?.rows.len();
    Ok((shown, counted, waits))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_show_no_namespace_that_is_not_configured() {
    let store = Arc::new(MemoryStore::default());
    let both = engine(&store, &["default", "former"]);
    let programs =
        programs([("wait", vec![Node::WaitSignal { name: "go".into(), timeout: None }])]);
    let worker = tokio::spawn(work(Arc::clone(&both), connect(&both, "worker"), programs));
    start(&both, "kept", "wait").await;
    while listed(&both, None).await != Ok((1, 1, 1)) {
        tokio::task::yield_now().await;
    }
    let workflow = WorkflowKey { namespace: "former".into(), workflow: "hidden".into() };
    let call = abide_core::operation::Start { workflow, ..start_call("hidden", "wait") };
    let started = ask(&both, call).await;
    assert!(matches!(started, Ok(Started { .. })), "{started:?}");
    assert_eq!(listed(&both, None).await, Ok((2, 2, 1)));
    assert_eq!(listed(&both, Some("former")).await, Ok((1, 1, 0)));
    worker.abort();
    both.shutdown().await;

    let one = engine(&store, &["default"]);
    assert_eq!(listed(&one, None).await, Ok((1, 1, 1)));
    let refused = listed(&one, Some("former")).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
}
