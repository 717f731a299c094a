//! A server whose disk is full refuses what it cannot keep, at once and in plain words, shows what it has,
//! says so to those who watch it, and goes on by itself when there is room.

use std::{sync::Arc, time::Duration};

use crate::support::count;
use crate::support::describe;
use abide_core::{
    event::SignalReceived,
    operation::{
        AwaitEvents, CallError, Caller, Done, History, Query, QueryAnswer, QueryRequest, Signal,
        Started,
    },
    run::Close,
};
use abide_program::Node;
use abide_sdk::transport::ask;
use abide_server::Server;
use abide_sqlite_disk::Disk;
use abide_store::Store;
use abide_store_sqlite::{Options, SqliteStore};
use tokio::time::timeout;

use crate::{
    network::get,
    support::{closed, config, programs, spawn_worker, start, start_call, target, transport},
};

/// No call of a server with a full disk takes longer.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A server on a disk of its own, which can be made full.
struct Bench {
    disk: Disk,
    server: Server,
    _folder: tempfile::TempDir,
}

async fn bench(layer: &str) -> Bench {
    let disk = Disk::register(layer);
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(folder.path().join("store"));
    options.file_layer = Some(layer.to_owned());
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&options).expect("it opens"));
    let server = Server::start(config(), store).await.expect("it starts");
    server.ready().await;
    Bench { disk, server, _folder: folder }
}

async fn readyz(server: &Server) -> String {
    get(server.http_address(), "/readyz").await
}

fn signal(id: &str, key: &str) -> Signal {
    let signal =
        SignalReceived { name: "go".into(), key: Some(key.into()), ..SignalReceived::default() };
    Signal { target: target(id), signal, extension: Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_nothing_hangs_reads_go_on_and_all_goes_on_when_there_is_room() {
    let Bench { disk, server, _folder } = bench("server-full").await;
    let transport = transport(&server);
    let programs =
        programs([("wait", vec![Node::WaitSignal { name: "go".into(), timeout: None }])]);
    let worker = spawn_worker(&transport, "worker", &programs).await;
    let ids: Vec<_> = (0..20).map(|number| format!("good-{number}")).collect();
    for id in &ids {
        start(&*transport, id, "wait").await;
        // The first task is done, and leaves it waiting.
        let begun = AwaitEvents { target: target(id), after: 3 }.into();
        server.engine().ask(&Caller::TRUSTED, begun).await.unwrap();
    }
    disk.set_capacity(disk.used());
    let mut acknowledged = Vec::new();
    for number in 0..220 {
        let id = format!("new-{number}");
        let call = start_call(&id, "wait");
        match timeout(AT_ONCE, ask(&*transport, call)).await.expect("it is answered at once") {
            Ok(Started { .. }) => acknowledged.push(id),
            Err(CallError::Unavailable(why)) => assert!(why.contains("full"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(acknowledged.len() < 220, "the disk is not full");
    let probe = readyz(&server).await;
    assert!(probe.starts_with("HTTP/1.1 200"), "reads go on: {probe}");
    assert!(probe.contains("\ndegraded\nstore: full: "), "{probe}");
    for id in &ids {
        let described = timeout(AT_ONCE, describe(&*transport, target(id))).await.expect("at once");
        assert!(described.is_ok(), "{described:?}");
        let request = History { target: target(id), from: 0, follow: None };
        let history = timeout(AT_ONCE, ask(&*transport, request)).await.expect("at once");
        assert!(!history.unwrap().rows.is_empty());
        let query = QueryRequest::new("trace", Vec::new());
        let asked = ask(&*transport, Query { target: target(id), query });
        let answer = timeout(AT_ONCE, asked).await.expect("at once");
        assert!(matches!(answer, Ok(QueryAnswer(_))), "{answer:?}");
    }
    let counted = timeout(AT_ONCE, count(&*transport)).await;
    let known = ids.len() + acknowledged.len();
    assert_eq!(counted.expect("at once"), Ok(u64::try_from(known).unwrap()));

    disk.set_capacity(usize::MAX);
    while !readyz(&server).await.ends_with("\nready\n") {}
    for id in ids.iter().chain(&acknowledged) {
        let done = ask(&*transport, signal(id, "go")).await;
        assert!(matches!(done, Ok(Done { repeat: false, .. })), "{done:?}");
        assert_eq!(closed(&*transport, id).await, Close::Completed);
    }
    let page = get(server.http_address(), "/metrics").await;
    assert!(page.contains("\nabide_shards_read_only 0\n"), "{page}");
    assert!(!page.contains("abide_store_faults_total{kind=\"full\"} 0\n"), "{page}");
    worker.abort();
}
