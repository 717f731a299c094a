//! Lists show only configured namespaces: runs of a removed namespace are hidden, because no call can
//! reach them.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use abide_core::{
    ids::{RunId, WorkflowKey},
    list::{RunFilter, WaitFilter, WaitKind, WaitRow},
    operation::{CallError, Count, CountRuns, ListRuns, ListWaits, Started},
    tally::{TallyRuns, TallyWaits},
    time::Timestamp,
};
use abide_engine::{Engine, Options};
use abide_program::Node;
use abide_store::{Batch, Store, Write, memory::MemoryStore};

use crate::support::{ask, connect, programs, start, start_call, work};

fn engine(store: &Arc<MemoryStore>, namespaces: &[&str]) -> Arc<Engine> {
    let namespaces: BTreeSet<_> = namespaces.iter().map(|name| (*name).into()).collect();
    let options = Options { namespaces, ..Options::default() };
    Arc::new(Engine::start(Arc::clone(store) as _, options))
}

/// Runs, their number, and waits. Tallies agree with them.
async fn listed(
    engine: &Engine,
    namespace: Option<&str>,
) -> Result<(usize, u64, usize), CallError> {
    let namespace = namespace.map(Into::into);
    let runs = RunFilter { namespace: namespace.clone(), ..RunFilter::default() };
    let waits = WaitFilter { namespace, ..WaitFilter::default() };
    let shown = ask(engine, ListRuns { filter: runs.clone(), limit: None }).await?.rows.len();
    let Count(counted) = ask(engine, CountRuns { filter: runs.clone() }).await?;
    let ends = TallyWaits {
        namespace: waits.namespace.clone(),
        known: BTreeSet::new(),
        workflow_type: None,
        kinds: BTreeSet::new(),
        from: Timestamp::EPOCH,
        interval: Duration::from_secs(100 * 365 * 24 * 3600),
        intervals: 10,
    };
    let waits = ask(engine, ListWaits { filter: waits, limit: None }).await?.rows;
    let tally = ask(engine, TallyRuns { filter: runs }).await?;
    assert_eq!(tally.groups.values().sum::<u64>(), counted);
    let ending = waits.iter().filter(|wait| !wait.until.is_never()).count();
    let tally = ask(engine, ends).await?;
    assert_eq!(tally.groups.values().sum::<u64>(), ending as u64);
    Ok((shown, counted, waits.len()))
}

/// A wait with an end in this namespace.
async fn put_wait(store: &dyn Store, namespace: &str) {
    let workflow = WorkflowKey { namespace: namespace.into(), workflow: "waits".into() };
    let shard = workflow.slot().shard();
    let since = Timestamp::from_unix_millis(1_800_000_000_000);
    let row = WaitRow {
        run: RunId::from_parts(since, 1),
        wait: "wait".into(),
        namespace: workflow.namespace,
        workflow: workflow.workflow,
        workflow_type: "wait".into(),
        kind: WaitKind::Timer,
        name: String::new(),
        since,
        until: since.saturating_add(Duration::from_secs(60)),
        timer: Some("timer".into()),
        details: Default::default(),
    };
    let epoch = store.shard(shard).await.expect("a shard").epoch;
    let batch = Batch { shard, epoch, writes: vec![Write::PutWait(row)] };
    store.commit(batch).await.expect("it is written");
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
    put_wait(&*store, "former").await;

    let one = engine(&store, &["default"]);
    assert_eq!(listed(&one, None).await, Ok((1, 1, 1)));
    let refused = listed(&one, Some("former")).await;
    assert!(matches!(refused, Err(CallError::Invalid(_))), "{refused:?}");
}
