//! Starts the listeners around an engine, and stops them gracefully.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use abide_core::{ids::NamespaceId, limits::Limits};
use abide_engine::{
    Engine, Membership, Options,
    clock::{Clock, SystemClock},
    peers::{NoPeers, Peers},
};
use abide_proto::{
    DESCRIPTORS,
    generated::{
        abide_server::AbideServer, peers_server::PeersServer, workers_server::WorkersServer,
    },
};
use abide_store::Store;
use abide_store_postgres::PostgresStore;
use abide_store_sqlite::SqliteStore;
use futures_util::FutureExt as _;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinError, JoinSet},
    time::timeout,
};
use tonic::{
    service::Routes,
    transport::{Certificate, ClientTlsConfig, Identity},
};
use tonic_health::server::HealthReporter;

use crate::{
    Bounds, Config, ServerError, StoreAddress, Tls,
    accept::Acceptor,
    connections::Connections,
    handler::Handler,
    listen,
    peers::{Accept, Credentials, PeerLinks},
    probes::{self, Probes},
    service::Service,
    tls,
    workers::Workers,
};

/// The message size is already bounded elsewhere.
const ANY_SIZE: usize = usize::MAX;

/// Name of the store's file in the data directory.
const STORE_FILE: &str = "abide.db";

/// A running server. Stop it with [`Server::shutdown`].
pub struct Server {
    engine: Arc<Engine>,
    grpc_address: SocketAddr,
    http_address: SocketAddr,
    bounds: Bounds,
    /// Becomes true when the server begins to stop.
    leaving: watch::Sender<bool>,
    stop: watch::Sender<bool>,
    ready: watch::Receiver<bool>,
    listeners: JoinSet<Result<(), ServerError>>,
}

impl Server {
    /// Starts a server on the configured database, or on the store in its data directory.
    pub async fn open(config: Config) -> Result<Self, ServerError> {
        Self::open_with_clock(config, Arc::new(SystemClock)).await
    }

    /// The same with the clock of a test. No setting can choose it.
    #[doc(hidden)]
    pub async fn open_with_clock(
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerError> {
        config.check()?;
        let (data, address) = (config.data.clone(), config.store.clone());
        let lease = config.node.clone().unwrap_or_default().lease_time()?;
        let open = move || match address {
            Some(address) => open_database(&address, lease),
            None => open_file(&data),
        };
        if config.node.is_some() && config.store.is_none() {
            return Err(ServerError::Alone);
        }
        let opened = tokio::task::spawn_blocking(open).await;
        let store = opened.map_err(ServerError::Panicked)??;
        Self::start_checked(config, store, clock).await
    }

    /// Starts a server on this store.
    pub async fn start(config: Config, store: Arc<dyn Store>) -> Result<Self, ServerError> {
        config.check()?;
        Self::start_checked(config, store, Arc::new(SystemClock)).await
    }

    async fn start_checked(
        config: Config,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ServerError> {
        let namespaces = config.namespaces.iter().map(|name| NamespaceId::from(name.as_str()));
        let session_grace = Duration::from_millis(config.worker_grace_ms);
        let limits = Limits { session_grace, ..Limits::default() };
        let options = Options {
            namespaces: namespaces.collect(),
            borders: config.borders()?,
            limits,
            clock,
            ..Options::default()
        };
        let listeners = Listeners::bind(&config).await?;
        if !config.clustered() {
            let engine = Arc::new(Engine::start(store, options));
            return Self::serve_on(listeners, config, engine, None).await;
        }
        let node = config.node.clone().unwrap_or_default();
        let Some(credentials) = node.credentials(config.tls.as_ref())? else {
            let lease = node.lease_alone(listeners.grpc_address()?)?;
            let (name, peers) = (lease.node.clone(), Arc::new(NoPeers) as Arc<dyn Peers>);
            let membership = Some(Membership { lease, peers });
            let engine = Arc::new(Engine::start(store, Options { name, membership, ..options }));
            return Self::serve_on(listeners, config, engine, None).await;
        };
        let lease = node.lease(listeners.grpc_address()?)?;
        let name = node.certificate_name.as_deref();
        let tls = config.tls.as_ref().map(|tls| client_tls(tls, name)).transpose()?;
        let own = lease.address.clone();
        let peers = Arc::new(PeerLinks::new(own.clone(), credentials.clone(), tls));
        let name = lease.node.clone();
        let membership = Some(Membership { lease, peers: Arc::clone(&peers) as Arc<dyn Peers> });
        let engine = Arc::new(Engine::start(store, Options { name, membership, ..options }));
        peers.set_engine(Arc::downgrade(&engine));
        Self::serve_on(listeners, config, engine, Some((own, credentials))).await
    }

    /// Starts a server around an engine, which [`Server::shutdown`] stops too.
    pub async fn serve(config: Config, engine: Arc<Engine>) -> Result<Self, ServerError> {
        config.check()?;
        Self::serve_on(Listeners::bind(&config).await?, config, engine, None).await
    }

    async fn serve_on(
        listeners: Listeners,
        config: Config,
        engine: Arc<Engine>,
        node: Option<(String, Credentials)>,
    ) -> Result<Self, ServerError> {
        let (grpc_address, http_address) = (listeners.grpc_address()?, listeners.http_address()?);
        let Listeners { grpc, http } = listeners;
        let (stop, stopping) = watch::channel(false);
        let (leaving, left) = watch::channel(false);
        let (ready_sender, ready) = watch::channel(false);
        let handler = {
            let (engine, bounds) = (Arc::clone(&engine), config.bounds.clone());
            Handler::new(engine, bounds, grpc_address, stopping.clone())
        };
        let mut listeners = JoinSet::new();
        let nodes = node.map(|(own, credentials)| Accept::new(handler.clone(), own, credentials));
        let health = serve_grpc(&mut listeners, grpc, &config, &handler, nodes)?;
        let router = {
            let (ready, handler) = (ready.clone(), handler.clone());
            probes::router(Probes { ready, grpc_address, handler })
        };
        let bounds = Arc::clone(&handler.bounds);
        let acceptor = Acceptor::new(http, Connections::new(Arc::clone(&bounds)), bounds.silence());
        let stopped = stopped(stopping).shared();
        listeners.spawn(async move {
            listen::http(acceptor, bounds, router, stopped).await;
            Ok(())
        });
        let running = Arc::clone(&engine);
        tokio::spawn(announce(running, health, ready_sender, left));
        let bounds = config.bounds;
        Ok(Self { engine, grpc_address, http_address, bounds, leaving, stop, ready, listeners })
    }

    /// The address that the gRPC listener is bound to.
    pub const fn grpc_address(&self) -> SocketAddr {
        self.grpc_address
    }

    /// The address that the HTTP listener is bound to.
    pub const fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Waits until every shard is in memory.
    pub async fn ready(&self) {
        // An error means that the announcing task is gone, and then the server stops anyway.
        let _ = self.ready.clone().wait_for(|ready| *ready).await;
    }

    /// Waits until a listener or the engine fails; never resolves otherwise. The server should then
    /// be stopped and restarted: everything acknowledged is durable.
    pub async fn failed(&mut self) -> ServerError {
        let engine = Arc::clone(&self.engine);
        tokio::select! {
            error = a_listener_failed(&mut self.listeners) => error,
            reason = engine.failed() => ServerError::Engine(reason),
        }
    }

    /// Stops: accepts no more connections, finishes the requests in flight, and ends all streams.
    /// Everything acknowledged is durable. A node of a cluster first hands its shards over and
    /// forwards calls meanwhile; its probe reports not ready from the start.
    pub async fn shutdown(mut self) -> Result<(), ServerError> {
        self.leaving.send_replace(true);
        self.engine.leave().await;
        self.stop.send_replace(true);
        self.engine.shutdown().await;
        let ended = timeout(self.bounds.shutdown(), async {
            while let Some(ended) = self.listeners.join_next().await {
                flatten(ended)?;
            }
            Ok(())
        });
        // Connections that do not end in time are dropped with the listeners.
        ended.await.unwrap_or(Ok(()))
    }
}

fn flatten(ended: Result<Result<(), ServerError>, JoinError>) -> Result<(), ServerError> {
    ended.unwrap_or_else(|error| Err(ServerError::Panicked(error)))
}

fn open_file(data: &Path) -> Result<Arc<dyn Store>, ServerError> {
    fs::create_dir_all(data).map_err(|error| ServerError::Data { path: data.to_owned(), error })?;
    let options = abide_store_sqlite::Options::new(data.join(STORE_FILE));
    Ok(Arc::new(SqliteStore::open(&options)?))
}

fn open_database(address: &StoreAddress, lease: Duration) -> Result<Arc<dyn Store>, ServerError> {
    let options = abide_store_postgres::Options::new(&address.0)?.for_lease(lease);
    Ok(Arc::new(PostgresStore::open(&options)?))
}

/// The bound ports of a server, before anything is served on them.
struct Listeners {
    grpc: TcpListener,
    http: TcpListener,
}

impl Listeners {
    async fn bind(config: &Config) -> Result<Self, ServerError> {
        let grpc = listen(config.grpc_address).await?;
        Ok(Self { grpc, http: listen(config.http_address).await? })
    }

    fn grpc_address(&self) -> Result<SocketAddr, ServerError> {
        self.grpc.local_addr().map_err(ServerError::Http)
    }

    fn http_address(&self) -> Result<SocketAddr, ServerError> {
        self.http.local_addr().map_err(ServerError::Http)
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(|error| ServerError::Listen { address, error })
}

fn serve_grpc(
    listeners: &mut JoinSet<Result<(), ServerError>>,
    listener: TcpListener,
    config: &Config,
    handler: &Handler,
    nodes: Option<Accept>,
) -> Result<HealthReporter, ServerError> {
    let bounds = Arc::clone(&handler.bounds);
    let (reporter, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    // These messages are bounded before they get here.
    let mut routes = Routes::new(health)
        .add_service(reflection)
        .add_service(AbideServer::new(Service(handler.clone())).max_decoding_message_size(ANY_SIZE))
        .add_service(
            WorkersServer::new(Workers(handler.clone())).max_decoding_message_size(ANY_SIZE),
        );
    if let Some(nodes) = nodes {
        routes = routes.add_service(PeersServer::new(nodes).max_decoding_message_size(ANY_SIZE));
    }
    let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
    let connections = Arc::clone(&handler.connections);
    tokio::spawn(connections.drop_unread());
    let acceptor = Acceptor::new(listener, connections, bounds.silence());
    let stopped = stopped(handler.stopping.clone()).shared();
    listeners.spawn(async move {
        listen::grpc(acceptor, bounds, routes, tls, stopped).await;
        Ok(())
    });
    Ok(reporter)
}

/// TLS for calls to other nodes: with this node's own certificate, to any server with a certificate
/// of the same root, for the name of nodes or else for the host that is called.
fn client_tls(tls: &Tls, name: Option<&str>) -> Result<ClientTlsConfig, ServerError> {
    let identity = Identity::from_pem(tls.certificate_file().read()?, tls.key_file().read()?);
    let root = tls.client_ca_file().unwrap_or_else(|| tls.certificate_file());
    let client = ClientTlsConfig::new()
        .identity(identity)
        .ca_certificate(Certificate::from_pem(root.read()?));
    Ok(match name {
        Some(name) => client.domain_name(name),
        None => client,
    })
}

async fn a_listener_failed(listeners: &mut JoinSet<Result<(), ServerError>>) -> ServerError {
    loop {
        if let Some(Ok(Err(error))) = listeners.join_next().await {
            return error;
        }
        if listeners.is_empty() {
            std::future::pending::<()>().await;
        }
    }
}

/// Updates the probes when the engine is ready, when it has lost its lease, and when the server
/// stops.
async fn announce(
    engine: Arc<Engine>,
    health: HealthReporter,
    ready: watch::Sender<bool>,
    leaving: watch::Receiver<bool>,
) {
    let ended = async {
        tokio::select! {
            () = stopped(leaving) => {}
            _ = engine.failed() => {}
        }
    };
    let follow_lease = async {
        loop {
            engine.lease_good().await;
            engine.ready().await;
            health.set_serving::<AbideServer<Service>>().await;
            health.set_serving::<WorkersServer<Workers>>().await;
            ready.send_replace(true);
            engine.lease_lost().await;
            say_not_ready(&health, &ready).await;
        }
    };
    tokio::select! {
        () = ended => {}
        () = follow_lease => {}
    }
    say_not_ready(&health, &ready).await;
}

async fn say_not_ready(health: &HealthReporter, ready: &watch::Sender<bool>) {
    ready.send_replace(false);
    health.set_not_serving::<AbideServer<Service>>().await;
    health.set_not_serving::<WorkersServer<Workers>>().await;
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the server was dropped, which is a stop too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
