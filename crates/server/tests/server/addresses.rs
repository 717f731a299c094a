//! Clients and workers that know several servers: they go from one that is gone, silent or stopping to
//! the next, and their users notice nothing.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use abide::{Client, ClientError, Worker, prelude::*};
use abide_proto::generated::FollowHistoryRequest;
use abide_sdk::grpc::{GrpcOptions, GrpcTransport};
use abide_server::{Config, Server};
use abide_store::{Store, memory::MemoryStore};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tonic::Code;

use crate::{
    network::get,
    observed::ObservedStore,
    support::{self, config, node_config, server, target},
};

#[activity]
async fn greet(name: String) -> String {
    format!("hello {name}")
}

#[derive(Default)]
struct Visit;

#[workflow]
impl Visit {
    #[run]
    async fn run(ctx: &Context<Self>, name: String) -> abide::Result<String> {
        let greeting = ctx.activity(greet, name).await?;
        ctx.receive(Self::LEAVE).await?;
        Ok(greeting)
    }

    #[signal]
    fn leave();
}

/// Options that try these addresses in order and lose patience soon.
fn options<const N: usize>(addresses: [SocketAddr; N]) -> GrpcOptions {
    let addresses = addresses.map(|address| format!("http://{address}")).join(",");
    let keepalive = Duration::from_millis(100);
    GrpcOptions { shuffle: false, keepalive, ..GrpcOptions::new(addresses) }
}

fn client(options: &GrpcOptions) -> Client {
    Client::new(Arc::new(GrpcTransport::new(options).expect("good addresses")))
}

fn work(client: &Client) -> JoinHandle<()> {
    let worker = Worker::new(client).build_id("test").workflow::<Visit>().activity(greet);
    tokio::spawn(async move { drop(worker.run().await) })
}

/// A visit from its start to its end.
async fn visit(client: &Client, id: &str) -> Result<String, ClientError> {
    let visit = client.start::<Visit>(id, id.to_owned()).await?;
    visit.signal(Visit::LEAVE, ()).await?;
    visit.result().await
}

/// An address at which nobody listens.
async fn nobody() -> SocketAddr {
    // The port was free a moment ago, and belongs to nobody when this ends.
    listener().await.local_addr().expect("it listens")
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port")
}

/// A way to a server that can be made to stand still, as a stopped process does: connections stay open
/// and new ones are taken, but nothing is ever said.
struct Proxy {
    address: SocketAddr,
    still: watch::Sender<bool>,
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = listener().await;
        let address = listener.local_addr().expect("it listens");
        let still = watch::Sender::new(false);
        let stops = still.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(Self::pass(client, server, stops.clone()));
            }
        });
        Self { address, still }
    }

    async fn pass(
        mut client: TcpStream,
        server: SocketAddr,
        mut still: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let onward = async {
            let mut server = TcpStream::connect(server).await?;
            tokio::io::copy_bidirectional(&mut client, &mut server).await
        };
        let stopped = async { drop(still.wait_for(|still| *still).await) };
        tokio::select! {
            biased;
            () = stopped => std::future::pending().await,
            ended = onward => ended.map(drop),
        }
    }

    fn stand_still(&self) {
        self.still.send_replace(true);
    }
}

fn node(number: usize, grpc_address: Option<SocketAddr>) -> Config {
    let node = node_config(&format!("node-{number}"));
    let free = config();
    let grpc_address = grpc_address.unwrap_or(free.grpc_address);
    // Work that was lost on its way to a worker is given again soon.
    Config { node: Some(node), grpc_address, worker_grace_ms: 300, ..free }
}

async fn start<S: Store + 'static>(config: Config, store: &Arc<S>) -> Server {
    let store = Arc::clone(store) as Arc<dyn Store>;
    let server = Server::start(config, store).await.expect("it starts");
    server.ready().await;
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_where_nobody_listens_is_passed_over() {
    let server = server(config()).await;
    let options = options([nobody().await, server.grpc_address()]);
    let worker = work(&client(&options));
    assert_eq!(visit(&client(&options), "ada").await.unwrap(), "hello ada");
    let connected = GrpcTransport::connect(&options).await.expect("one of them is there");
    assert_eq!(visit(&Client::new(Arc::new(connected)), "bob").await.unwrap(), "hello bob");
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_says_a_word_is_passed_over() {
    let server = server(config()).await;
    let proxy = Proxy::to(server.grpc_address()).await;
    proxy.stand_still();
    let options = options([proxy.address, server.grpc_address()]);
    let worker = work(&client(&options));
    assert_eq!(visit(&client(&options), "ada").await.unwrap(), "hello ada");
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_a_server_that_falls_silent_is_answered_by_another() {
    let server = server(config()).await;
    let proxy = Proxy::to(server.grpc_address()).await;
    let options = options([proxy.address, server.grpc_address()]);
    let (client, workers) = (client(&options), client(&options));
    let worker = work(&workers);
    let ada = client.start::<Visit>("ada", "ada").await.unwrap();
    let waiting = tokio::spawn({
        let ada = ada.clone();
        async move { ada.result().await }
    });
    // The worker is at work, through the proxy as well.
    visit(&client, "bob").await.unwrap();
    proxy.stand_still();
    ada.signal(Visit::LEAVE, ()).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), "hello ada");
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_and_workers_leave_a_server_that_is_cut_off_from_its_store() {
    let store = Arc::new(MemoryStore::default());
    let way = Arc::new(ObservedStore::of(&store));
    let (first, second) = (start(node(0, None), &way).await, start(node(1, None), &store).await);
    let options = options([first.grpc_address(), second.grpc_address()]);
    let client = client(&options).with_call_timeout(Duration::from_secs(30));
    let worker = work(&client);
    assert_eq!(visit(&client, "ada").await.unwrap(), "hello ada");
    assert_eq!(first.engine().figures().workers, 1);
    way.cut_off();
    for name in ["bob", "eve", "kim"] {
        assert_eq!(visit(&client, name).await.unwrap(), format!("hello {name}"));
    }
    assert_eq!(first.engine().figures().workers, 0);
    assert_eq!(second.engine().figures().workers, 1);
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_not_ready_while_it_is_cut_off_from_its_store() {
    let way = Arc::new(ObservedStore::of(&Arc::default()));
    let server = start(node(0, None), &way).await;
    let probe = async || get(server.http_address(), "/readyz").await;
    assert!(probe().await.starts_with("HTTP/1.1 200"));
    way.cut_off();
    while !probe().await.starts_with("HTTP/1.1 503") {}
    way.mend();
    while !probe().await.starts_with("HTTP/1.1 200") {}
}

/// It could tell nothing new, and does not know for how long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_a_run_at_a_server_that_is_cut_off_from_its_store_is_told() {
    let store = Arc::new(MemoryStore::default());
    let way = Arc::new(ObservedStore::of(&store));
    let (first, second) = (start(node(0, None), &way).await, start(node(1, None), &store).await);
    let ada = client(&options([second.grpc_address()])).start::<Visit>("ada", "ada").await;
    let ada = ada.unwrap();
    let request = FollowHistoryRequest { target: Some(target("ada").into()), after: 0 };
    let followed = support::client(&first).await.follow_history(request).await;
    let mut followed = followed.unwrap().into_inner();
    assert!(followed.message().await.unwrap().is_some());
    way.cut_off();
    ada.signal(Visit::LEAVE, ()).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(20), followed.message()).await;
    let told = told.expect("it is not left alone").expect_err("the server cannot read it");
    assert_eq!(told.code(), Code::Unavailable, "{told}");
}

/// Visits from several callers at a time, until they are stopped. Each of them must succeed.
struct Load {
    stop: watch::Sender<bool>,
    visits: watch::Receiver<usize>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    fn begin(clients: Vec<Client>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let counted = Arc::new(watch::Sender::new(0));
        let visits = counted.subscribe();
        let call = |(number, client): (usize, Client)| {
            let (stopped, counted) = (stopped.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                for turn in 0.. {
                    if *stopped.borrow() {
                        return;
                    }
                    let id = format!("{number}-{turn}");
                    let greeted = visit(&client, &id).await;
                    assert_eq!(greeted, Ok(format!("hello {id}")));
                    counted.send_modify(|visits| *visits += 1);
                }
            })
        };
        let callers = clients.into_iter().enumerate().map(call).collect();
        Self { stop, visits, callers }
    }

    /// Waits for so many visits more.
    async fn goes_on(&mut self, more: usize) {
        let enough = *self.visits.borrow() + more;
        let reached = self.visits.wait_for(|visits| *visits >= enough).await;
        reached.map(drop).expect("no call failed");
    }

    async fn end(self) {
        self.stop.send_replace(true);
        for caller in self.callers {
            caller.await.expect("no call failed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_load_fails_no_call() {
    let store = Arc::new(MemoryStore::default());
    let mut servers = Vec::new();
    for number in 0..3 {
        servers.push(start(node(number, None), &store).await);
    }
    let places: Vec<_> = servers.iter().map(Server::grpc_address).collect();
    let addresses: Vec<_> = places.iter().map(|place| format!("http://{place}")).collect();
    let options = GrpcOptions::new(addresses.join(","));
    let workers = [work(&client(&options)), work(&client(&options))];
    let patient = client(&options).start::<Visit>("patient", "patient").await.unwrap();
    let waiting = tokio::spawn({
        let patient = patient.clone();
        async move { patient.result().await }
    });
    let mut load = Load::begin((0..6).map(|_| client(&options)).collect());
    for (number, place) in places.into_iter().enumerate() {
        load.goes_on(30).await;
        servers.remove(0).shutdown().await.expect("it stops");
        load.goes_on(30).await;
        servers.push(start(node(number, Some(place)), &store).await);
    }
    load.goes_on(30).await;
    load.end().await;
    patient.signal(Visit::LEAVE, ()).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), "hello patient");
    workers.iter().for_each(JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_all_gone_are_not_hammered() {
    let tries = Arc::new(AtomicUsize::new(0));
    let mut addresses = [nobody().await; 2];
    for address in &mut addresses {
        let listener = listener().await;
        *address = listener.local_addr().expect("it listens");
        let tries = Arc::clone(&tries);
        tokio::spawn(async move {
            // Each connection ends as soon as it is there.
            while listener.accept().await.is_ok() {
                tries.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let client = client(&options(addresses)).with_call_timeout(Duration::from_millis(600));
    let error = visit(&client, "ada").await.unwrap_err();
    assert!(matches!(&error, ClientError::Unavailable(_)), "{error}");
    assert!(
        addresses.iter().any(|address| error.to_string().contains(&address.to_string())),
        "{error}"
    );
    // Pauses of 10, 20, 40, 80, 160 and 320 milliseconds fill the time.
    let tries = tries.load(Ordering::Relaxed);
    assert!((2..=7).contains(&tries), "{tries} connections");
    let none = GrpcTransport::connect(&options([nobody().await, nobody().await])).await;
    let none = none.err().expect("nobody is there").to_string();
    assert_eq!(none.matches("http://").count(), 2, "{none}");
}
