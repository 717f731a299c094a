//! Several servers on one store: clients and workers use any of them.

use std::{sync::Arc, time::Duration};

use abide::{Client, Worker, client::NodeStatus, prelude::*};
use abide_core::operation::AwaitClose;
use abide_proto::generated as wire;
use abide_sdk::transport::ask;
use abide_server::{Config, NodeConfig, Server, ServerError};
use abide_store::{Store, memory::MemoryStore};
use tokio::{task::JoinSet, time::Instant};

use crate::support::{self, config, node_config, target, transport};

#[activity]
async fn greet(name: String) -> String {
    format!("hello {name}")
}

#[derive(Default)]
struct Greeting;

#[workflow]
impl Greeting {
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        let greeting = ctx.activity(greet, name).await?;
        ctx.receive(Self::GO).await?;
        Ok(greeting)
    }

    #[signal]
    fn go();

    #[query]
    fn ready(&self) -> bool {
        true
    }
}

#[derive(Default)]
struct Party;

#[workflow]
impl Party {
    #[run]
    async fn run(ctx: &Context<Self>, names: Vec<String>) -> abide::Result<Vec<String>> {
        let calls = names.into_iter().map(|name| ctx.child::<Greeting>(name.clone(), name));
        join_all(calls).await.into_iter().collect()
    }
}

fn node(number: usize) -> Config {
    Config { node: Some(node_config(&format!("node-{number}"))), ..config() }
}

async fn servers(store: &Arc<MemoryStore>, count: usize) -> Vec<Server> {
    let mut servers = Vec::new();
    for number in 0..count {
        let store = Arc::clone(store) as Arc<dyn Store>;
        let server = Server::start(node(number), store).await.expect("it starts");
        server.ready().await;
        servers.push(server);
    }
    servers
}

fn client(server: &Server) -> Client {
    Client::new(transport(server)).with_call_timeout(Duration::from_secs(30))
}

fn work(server: &Server) -> tokio::task::JoinHandle<()> {
    let worker = Worker::new(&client(server)).build_id("test");
    let worker = worker.workflow::<Greeting>().workflow::<Party>().activity(greet);
    tokio::spawn(async move { drop(worker.run().await) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_and_a_worker_at_any_server_reach_every_run() {
    let store = Arc::new(MemoryStore::default());
    let servers = servers(&store, 3).await;
    let worker = work(&servers[1]);
    let names: Vec<_> = (0..12).map(|number| format!("guest-{number}")).collect();
    let party = client(&servers[0]).start::<Party>("party", names.clone()).await.unwrap();
    for (index, name) in names.iter().enumerate() {
        let client = client(&servers[index % 3]);
        let guest = client.handle::<Greeting>(name.as_str());
        // The child is there as soon as the party's code has run.
        while !guest.query(Greeting::READY, ()).await.unwrap_or(false) {}
        guest.signal(Greeting::GO, ()).await.unwrap();
        let shown = guest.describe().await.unwrap();
        assert_eq!(shown.workflow.workflow.as_str(), name);
    }
    let greeted: Vec<_> = names.iter().map(|name| format!("hello {name}")).collect();
    assert_eq!(party.result().await.unwrap(), greeted);
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_hands_its_runs_over() {
    let store = Arc::new(MemoryStore::default());
    let mut servers = servers(&store, 2).await;
    let worker = work(&servers[0]);
    let client = client(&servers[0]);
    let mut guests = Vec::new();
    for number in 0..8 {
        let name = format!("guest-{number}");
        guests.push(client.start::<Greeting>(name.clone(), name).await.unwrap());
    }
    servers.pop().expect("two").shutdown().await.expect("it stops");
    for (number, guest) in guests.iter().enumerate() {
        guest.signal(Greeting::GO, ()).await.unwrap();
        assert_eq!(guest.result().await.unwrap(), format!("hello guest-{number}"));
    }
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_lists_all_of_them() {
    let store = Arc::new(MemoryStore::default());
    let mut servers = servers(&store, 2).await;
    let stopped = servers.pop().expect("two");
    let place = stopped.grpc_address().to_string();
    for server in [&servers[0], &stopped] {
        let nodes = client(server).nodes().await.unwrap();
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["node-0", "node-1"]);
        assert!(nodes.iter().all(|node| node.status == NodeStatus::Alive), "{nodes:?}");
    }
    stopped.shutdown().await.expect("it stops");
    let nodes = client(&servers[0]).nodes().await.unwrap();
    let gone = &nodes[1];
    assert_eq!((gone.name.as_str(), &gone.address), ("node-1", &place));
    assert_eq!((gone.status, gone.shards), (NodeStatus::Gone, 0));
}

#[tokio::test]
async fn a_node_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let alone = Config { data: folder.path().into(), ..node(0) };
    let refused = Server::open(alone).await.err().unwrap();
    assert!(matches!(refused, ServerError::Alone), "{refused}");
    let advertise = Some("0.0.0.0:7233".into());
    let everywhere =
        Config { node: Some(NodeConfig { advertise, ..node_config("node") }), ..config() };
    let refused = Server::start(everywhere, Arc::new(MemoryStore::default())).await.err().unwrap();
    assert!(refused.to_string().contains("--advertise"), "{refused}");
    let open =
        Config { node: Some(NodeConfig { secret: None, ..node_config("node") }), ..config() };
    let refused = Server::start(open, Arc::new(MemoryStore::default())).await.err().unwrap();
    assert!(matches!(refused, ServerError::NoSecret), "{refused}");
}

/// Whoever waits for a run, or follows its history, learns nothing of its moves from node to node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_one_server_does_not_notice_that_another_stops() {
    let store = Arc::new(MemoryStore::default());
    let mut servers = servers(&store, 2).await;
    let worker = work(&servers[0]);
    let client = client(&servers[0]);
    let mut waiting = JoinSet::new();
    for number in 0..8 {
        let name = format!("guest-{number}");
        client.start::<Greeting>(name.clone(), name.clone()).await.unwrap();
        let mut follower = support::client(&servers[0]).await;
        let id = name.clone();
        waiting.spawn(async move {
            let request =
                wire::FollowHistoryRequest { target: Some(target(&name).into()), after: 0 };
            let mut followed = follower.follow_history(request).await.unwrap().into_inner();
            let mut events = 0;
            while let Some(page) = followed.message().await.expect("it goes on") {
                events += page.history.map_or(0, |history| history.events.len());
            }
            assert!(events > 8, "{events}");
        });
        let transport = transport(&servers[0]);
        waiting.spawn(async move {
            let answer = ask(&*transport, AwaitClose { target: target(&id) }).await;
            answer.expect("not even one that the client has to repeat");
        });
    }
    let begun = Instant::now();
    servers.pop().expect("two").shutdown().await.expect("it stops");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "nobody waits for those who wait: {took:?}");
    for number in 0..8 {
        let guest = client.handle::<Greeting>(format!("guest-{number}"));
        guest.signal(Greeting::GO, ()).await.unwrap();
    }
    while let Some(ended) = waiting.join_next().await {
        ended.unwrap();
    }
    worker.abort();
}

/// The server at which clients and workers are stops: it hands over first, and they are told to go
/// elsewhere without delay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_clients_that_wait_stops_soon() {
    let store = Arc::new(MemoryStore::default());
    let mut servers = servers(&store, 2).await;
    let leaving = servers.pop().expect("two");
    let worker = work(&leaving);
    let mut waiting = JoinSet::new();
    for number in 0..8 {
        let name = format!("guest-{number}");
        client(&leaving).start::<Greeting>(name.clone(), name.clone()).await.unwrap();
        let transport = transport(&leaving);
        waiting.spawn(async move { ask(&*transport, AwaitClose { target: target(&name) }).await });
    }
    let begun = Instant::now();
    leaving.shutdown().await.expect("it stops");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    while let Some(told) = waiting.join_next().await {
        let told = told.unwrap().expect_err("the server has gone");
        assert!(told.passing(), "{told}");
    }
    worker.abort();
}
