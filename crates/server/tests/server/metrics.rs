//! What monitoring reads from a server changes as its users would expect.

use std::{sync::Arc, time::Duration};

use crate::support::describe;
use abide_core::{
    list::WaitFilter,
    operation::{CallError, History, ListWaits},
    run::Close,
};
use abide_program::Node;
use abide_proto::generated::GetHistoryRequest;
use abide_sdk::Client;
use abide_sdk::transport::ask;
use abide_server::{Config, Server};
use abide_store::{Store, memory::MemoryStore};

use crate::{
    network::get,
    support::{
        activity, client, closed, config, node_config, programs, server_with_clock, spawn_worker,
        start, target, transport,
    },
};

/// The value of a sample, such as `name` or `name{label="value"}`; none if it is not shown.
pub(crate) async fn sample(server: &Server, sample: &str) -> Option<f64> {
    let page = get(server.http_address(), "/metrics").await;
    let value = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    Some(value.parse().expect("a number"))
}

async fn check<const N: usize>(server: &Server, expected: [(&str, f64); N]) {
    for (name, value) in expected {
        assert_eq!(sample(server, name).await, Some(value), "{name}");
    }
}

/// Reads a sample until it has this value: what it shows happens beside the calls of the test.
async fn until(server: &Server, name: &str, value: f64) {
    while sample(server, name).await != Some(value) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_grow_with_what_happens() {
    let (server, clock) = server_with_clock(config()).await;
    let transport = transport(&server);
    check(
        &server,
        [
            ("abide_shards", 64.0),
            ("abide_joined", 1.0),
            ("abide_peers", 0.0),
            ("abide_workers", 0.0),
            ("abide_calls_total{result=\"ok\"}", 0.0),
            ("abide_transitions_total", 0.0),
        ],
    )
    .await;
    assert_eq!(sample(&server, "abide_lease_seconds").await, None, "nobody else wants its shards");

    start(&*transport, "tea", "tea").await;
    assert_eq!(describe(&*transport, target("nobody")).await.err(), Some(CallError::NotFound));
    for follow in [None, Some(0)] {
        let request = History { target: target("nobody"), from: 0, follow };
        assert_eq!(ask(&*transport, request).await.err(), Some(CallError::NotFound));
    }
    let mut single = client(&server).await;
    let unknown = GetHistoryRequest { target: Some(target("nobody").into()), ..Default::default() };
    assert!(single.get_history(unknown).await.is_err());
    until(&server, "abide_tasks_waiting{kind=\"workflow\"}", 1.0).await;
    check(
        &server,
        [
            ("abide_calls_total{result=\"ok\"}", 1.0),
            ("abide_calls_total{result=\"not_found\"}", 4.0),
            ("abide_transitions_total", 1.0),
            ("abide_streams", 1.0),
        ],
    )
    .await;
    // Each shard was claimed by a commit.
    let commits = sample(&server, "abide_commit_seconds_count").await.expect("commits");
    assert!(commits >= 65.0, "{commits}");
    let within = sample(&server, "abide_commit_seconds_bucket{le=\"+Inf\"}").await;
    assert!(within >= Some(commits));

    let hour = Duration::from_secs(3600);
    let programs = programs([("tea", vec![activity("boil"), Node::Sleep(hour)])]);
    let worker = spawn_worker(&transport, "one", &programs).await;
    let waits = ListWaits { filter: WaitFilter::default(), limit: Some(1) };
    while ask(&*transport, waits.clone()).await.expect("waits").rows.is_empty() {}
    clock.move_to(server.engine().now().saturating_add(hour));
    assert_eq!(closed(&*transport, "tea").await, Close::Completed);
    // Three workflow tasks and one activity.
    until(&server, "abide_completions_total{result=\"ok\"}", 4.0).await;
    check(
        &server,
        [
            ("abide_workers", 1.0),
            ("abide_streams", 2.0),
            ("abide_tasks_given_total", 4.0),
            ("abide_tasks_waiting{kind=\"workflow\"}", 0.0),
            ("abide_timers_fired_total", 1.0),
            ("abide_store_faults_total{kind=\"unknown\"}", 0.0),
        ],
    )
    .await;
    worker.abort();
    until(&server, "abide_workers", 0.0).await;
}

async fn node(name: &str, store: &Arc<MemoryStore>) -> Server {
    let node = node_config(name);
    let config = Config { node: Some(node), ..config() };
    let server = Server::start(config, Arc::clone(store) as Arc<dyn Store>).await;
    let server = server.expect("it starts");
    server.ready().await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_tells_of_its_cluster() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (node("one", &store).await, node("two", &store).await);
    until(&one, "abide_peer_links", 1.0).await;
    until(&two, "abide_shards", 32.0).await;
    check(&one, [("abide_peers", 1.0), ("abide_joined", 1.0)]).await;
    let left = sample(&one, "abide_lease_seconds").await.expect("it has a lease");
    assert!((0.0..=1.0).contains(&left), "{left}");
    let client = Client::new(transport(&one));
    for number in 0.. {
        client.start_untyped("nothing", format!("run-{number}"), Vec::new()).await.unwrap();
        if sample(&one, "abide_forwarded_calls_total").await > Some(0.0) {
            break;
        }
    }
    two.shutdown().await.expect("it stops");
    until(&one, "abide_shards", 64.0).await;
    until(&one, "abide_peers", 0.0).await;
    until(&one, "abide_peer_links", 0.0).await;
}
