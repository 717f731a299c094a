//! The settings of a configuration file, and the bounds of the network side with their reasons.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use abide_core::{
    ids::NamespaceId,
    limits::{InvalidField, Limits},
};
use abide_engine::{Borders, LeaseOptions};
use abide_proto::CONNECTION_WINDOW;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use tokio_rustls::rustls::pki_types::ServerName;
use uuid::Uuid;

use crate::{
    ServerError,
    accept::Silence,
    peers::{Credentials, ProofKey},
    secret::Secret,
    tls,
};

/// Settings of a server. A setting that the file leaves out has its default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address of the gRPC listener.
    pub grpc_address: SocketAddr,
    /// Address of the HTTP listener, which serves probes and metrics.
    pub http_address: SocketAddr,
    /// Folder of the SQLite store, unless `store` names a database.
    pub data: PathBuf,
    /// Address of the database that holds the store. Without it the store is an SQLite file in
    /// `data`.
    pub store: Option<StoreAddress>,
    /// Settings of this server as one node of a cluster on the same database.
    pub node: Option<NodeConfig>,
    /// The namespaces that exist.
    #[serde(deserialize_with = "read_namespaces")]
    pub namespaces: BTreeSet<String>,
    /// Settings of single namespaces, by name.
    pub namespace: BTreeMap<String, NamespaceConfig>,
    /// Milliseconds that a worker has to reconnect after its stream is lost. After that, its
    /// activities are retried on other workers.
    pub worker_grace_ms: u64,
    /// TLS for gRPC; without it connections are plain.
    pub tls: Option<Tls>,
    /// Bounds of the network side.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            grpc_address: (Ipv4Addr::LOCALHOST, 7233).into(),
            http_address: (Ipv4Addr::LOCALHOST, 8233).into(),
            data: "abide-data".into(),
            store: None,
            node: None,
            namespaces: BTreeSet::from([abide_engine::DEFAULT_NAMESPACE.to_owned()]),
            namespace: BTreeMap::new(),
            worker_grace_ms: 5_000,
            tls: None,
            bounds: Bounds::default(),
        }
    }
}

impl Config {
    /// Reads a configuration in TOML.
    pub fn from_toml(text: &str) -> Result<Self, ServerError> {
        Ok(toml::from_str(text)?)
    }

    /// Replaces the namespaces by those of a list: each is trimmed, and none may appear twice.
    pub fn set_namespaces(
        &mut self,
        names: impl IntoIterator<Item = String>,
    ) -> Result<(), ServerError> {
        self.namespaces = listed_namespaces(names)?;
        Ok(())
    }

    /// Refuses settings that no server can run with, before anything is opened.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        self.bounds.check()?;
        self.namespaces.iter().try_for_each(|name| check_namespace(name))?;
        if self.namespaces.is_empty() {
            return Err(ServerError::NoNamespace);
        }
        self.borders()?;
        self.tls.as_ref().map(tls::acceptor).transpose()?;
        self.node.as_ref().map_or(Ok(()), |node| node.check(self.tls.as_ref()))
    }

    /// Which namespaces accept commands from which others.
    pub(crate) fn borders(&self) -> Result<Borders, ServerError> {
        let known = |name: &String| match self.namespaces.contains(name) {
            true => Ok(NamespaceId::from(name.as_str())),
            false => Err(ServerError::Namespace(name.clone())),
        };
        let mut borders = Borders::default();
        for (into, NamespaceConfig { accepts_from }) in &self.namespace {
            let into = known(into)?;
            for from in accepts_from {
                borders.accept(into.clone(), known(from)?);
            }
        }
        Ok(borders)
    }

    /// Whether the server is, or may become, one of several on its database.
    pub(crate) const fn clustered(&self) -> bool {
        self.node.is_some() || self.store.is_some()
    }

    /// Where the store is, for messages: the database without user and password, or the data
    /// folder.
    pub fn store_place(&self) -> String {
        match &self.store {
            Some(address) => abide_store_postgres::Options::new(&address.0)
                .map_or_else(|_| "a database".to_owned(), |options| options.place()),
            None => self.data.display().to_string(),
        }
    }
}

fn read_namespaces<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<String>, D::Error> {
    listed_namespaces(Vec::deserialize(from)?).map_err(D::Error::custom)
}

fn listed_namespaces(
    names: impl IntoIterator<Item = String>,
) -> Result<BTreeSet<String>, ServerError> {
    let mut namespaces = BTreeSet::new();
    for name in names {
        let name = name.trim();
        check_namespace(name)?;
        if !namespaces.insert(name.to_owned()) {
            return Err(ServerError::NamespaceTwice(name.to_owned()));
        }
    }
    Ok(namespaces)
}

fn check_namespace(name: &str) -> Result<(), ServerError> {
    let invalid = |invalid: InvalidField| ServerError::NamespaceName {
        name: name.to_owned(),
        problem: invalid.problem,
    };
    Limits::default().check_name("namespace", name).map_err(invalid)
}

/// Settings of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamespaceConfig {
    /// Namespaces whose runs may start children here, and signal, cancel and terminate workflows.
    pub accepts_from: BTreeSet<String>,
}

/// Settings of a server as one node of a cluster on the same database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeConfig {
    /// The node's name, which stays the same after a restart. By default the address at which
    /// others reach it.
    pub name: Option<String>,
    /// Host and port at which other nodes reach this one. By default the address of the gRPC
    /// listener.
    pub advertise: Option<String>,
    /// Milliseconds without a renewed lease after which other nodes take over this node's runs. The
    /// same on all nodes.
    pub lease_ms: Option<u64>,
    /// The secret that all nodes share. It is never serialised.
    #[serde(skip_serializing)]
    pub secret: Option<Secret>,
    /// Path of a file that holds the secret, unless `secret` is set.
    pub secret_file: Option<PathBuf>,
    /// A name in the certificates of all nodes, and not in those of clients. With it nodes need no
    /// secret; if a secret is set too, nodes must have both.
    pub certificate_name: Option<String>,
}

impl NodeConfig {
    /// Refuses settings that would harm a cluster, before anything is opened.
    pub(crate) fn check(&self, tls: Option<&Tls>) -> Result<(), ServerError> {
        self.lease_time()?;
        if let Some(address) = &self.advertise {
            check_reachable(address)?;
        }
        if let Some(name) = &self.name
            && (name.trim().is_empty() || name.contains(char::is_control))
        {
            return Err(ServerError::NodeName(name.clone()));
        }
        self.credentials(tls).map(drop)
    }

    /// How nodes authenticate each other. `None` if this server is not configured as one of
    /// several: it is then the only one on its database.
    pub(crate) fn credentials(
        &self,
        tls: Option<&Tls>,
    ) -> Result<Option<Credentials>, ServerError> {
        let key = self.shared_secret()?.map(|secret| ProofKey::new(&secret));
        let name = self.certificate_name.as_deref();
        let name = name.map(|name| node_name(name, tls)).transpose()?;
        match (&key, &name) {
            (None, None) if self.name.is_none() && self.advertise.is_none() => Ok(None),
            (None, None) => Err(ServerError::NoSecret),
            _ => Ok(Some(Credentials { key, name })),
        }
    }

    fn shared_secret(&self) -> Result<Option<Secret>, ServerError> {
        let secret = match (&self.secret, &self.secret_file) {
            (Some(secret), _) => secret.clone(),
            (None, Some(path)) => Secret::read(path)?,
            (None, None) => return Ok(None),
        };
        secret.check().map(Some)
    }

    /// Lease options of a node that listens on this address.
    pub(crate) fn lease(&self, listens: SocketAddr) -> Result<LeaseOptions, ServerError> {
        let address = self.advertise.clone().unwrap_or_else(|| listens.to_string());
        check_reachable(&address)?;
        Ok(LeaseOptions {
            node: self.name.clone().unwrap_or_else(|| address.clone()),
            incarnation: Uuid::new_v4().as_u64_pair().0,
            address,
            lease: self.lease_time()?,
        })
    }

    /// Lease options of a node without peers that listens on this address.
    pub(crate) fn lease_alone(&self, listens: SocketAddr) -> Result<LeaseOptions, ServerError> {
        Ok(LeaseOptions {
            node: listens.to_string(),
            incarnation: Uuid::new_v4().as_u64_pair().0,
            address: String::new(),
            lease: self.lease_time()?,
        })
    }

    /// Duration of the lease, checked against its bounds.
    pub(crate) fn lease_time(&self) -> Result<Duration, ServerError> {
        let lease = self.lease_ms.map_or(LeaseOptions::LEASE, Duration::from_millis);
        if LEASES.contains(&lease) { Ok(lease) } else { Err(ServerError::Lease(lease)) }
    }
}

/// Checks the certificate name of nodes. The server's own certificate must have it, and TLS must
/// require certificates of callers.
fn node_name(name: &str, tls: Option<&Tls>) -> Result<ServerName<'static>, ServerError> {
    let refused = |reason: String| ServerError::CertificateName { name: name.to_owned(), reason };
    let parsed = ServerName::try_from(name.to_owned());
    let parsed = parsed.map_err(|_| refused("it is not a valid host name".to_owned()))?;
    let Some(tls @ Tls { certificate, client_ca: Some(_), .. }) = tls else {
        return Err(refused("it requires TLS with a client_ca".to_owned()));
    };
    let own = tls.certificate_file().certificates()?;
    if !own.first().is_some_and(|own| tls::has_name(own, &parsed)) {
        let path = certificate.display();
        return Err(refused(format!("the certificate of this server, {path}, does not have it")));
    }
    Ok(parsed)
}

/// Refuses an address that other machines cannot use: one that is local to each machine, or none at
/// all.
fn check_reachable(address: &str) -> Result<(), ServerError> {
    let nowhere = address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_unspecified());
    let has_port = |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
    if nowhere || !address.rsplit_once(':').is_some_and(has_port) {
        return Err(ServerError::Advertise(address.to_owned()));
    }
    Ok(())
}

/// A shorter lease would be lost to a slow commit. With a longer one, no node would take over from
/// a dead one in useful time.
const LEASES: RangeInclusive<Duration> = Duration::from_millis(200)..=Duration::from_secs(3600);

/// Address of a database: `postgres://user:password@host:port/database`. It may hold a password, so
/// it is displayed and serialised without one.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreAddress(pub String);

impl StoreAddress {
    /// The address without its user, password and settings.
    fn shown(&self) -> String {
        let options = abide_store_postgres::Options::new(&self.0);
        options.map_or_else(
            |_| "…".to_owned(),
            |options| options.address().replacen("://", "://…@", 1),
        )
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreAddress").field(&self.shown()).finish()
    }
}

impl Serialize for StoreAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// TLS for gRPC, from PEM files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Path of the server's certificate chain.
    pub certificate: PathBuf,
    /// Path of the certificate's private key.
    pub key: PathBuf,
    /// Path of the root certificate that signs client certificates. Without it clients need none.
    pub client_ca: Option<PathBuf>,
}

/// Bounds of the network side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Largest request or frame in bytes: it is held in memory as a whole.
    pub message_bytes: usize,
    /// Open connections per listener: each costs buffers and a file descriptor. Beyond that, the
    /// connection that has been idle for longest is evicted. A connection with a long-polling call
    /// or a worker stream is not idle.
    pub connections: usize,
    /// The same per address, or per IPv6 network of 64 bits, so that one machine cannot use up all
    /// connections.
    pub connections_per_address: usize,
    /// Bytes in flight over all connections: incomplete messages, requests that wait for their
    /// answer, and unread answers. Above this the server evicts the connection with the largest
    /// product of bytes and time. A third is reserved for messages of more than 64 kB, which queue
    /// for it.
    pub bytes_in_flight: usize,
    /// Bytes in flight of one connection. Above this, calls that wait for their answer are refused,
    /// and unread answers are held back. One connection gets at most half of the room for large
    /// messages.
    pub bytes_per_connection: usize,
    /// Bytes that peers may send ahead of what is read, shared by all connections. The first few
    /// connections get the window that is useful for throughput; with many connections each gets 64
    /// kB.
    pub receive_windows: usize,
    /// Milliseconds that an incomplete message may make no progress, and that an answer may stay
    /// unread.
    pub stall_ms: u64,
    /// Streams and waiting requests of one connection.
    pub streams_per_connection: u32,
    /// Long-lived streams of the whole server: worker sessions, streams of calls, followed
    /// histories.
    pub streams: usize,
    /// The same per address, or per IPv6 network of 64 bits. Beyond the one or the other, the idlest
    /// stream of the largest holder is closed.
    pub streams_per_address: usize,
    /// Calls, credits or completions in one frame: each costs more memory than its bytes.
    pub items_per_frame: usize,
    /// Calls in flight on one stream.
    pub calls_per_stream: usize,
    /// Credits plus tasks of one worker session: what the worker does not read waits in memory.
    pub credits_per_session: u32,
    /// Queues that one worker session may name: each is kept in memory, and shards may search for its
    /// work.
    pub queues_per_session: usize,
    /// Milliseconds that a new connection has to send its first bytes, and a worker to send its
    /// hello.
    pub hello_timeout_ms: u64,
    /// Milliseconds of silence after which a connection gets a keepalive ping, and after which an
    /// unanswered ping closes it.
    pub keepalive_ms: u64,
    /// Milliseconds that open streams have to end when the server stops.
    pub shutdown_ms: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            connections: 1_000,
            connections_per_address: 500,
            bytes_in_flight: 128 << 20,
            bytes_per_connection: 64 << 20,
            receive_windows: 16 << 20,
            stall_ms: 10_000,
            streams_per_connection: 1_000,
            streams: 10_000,
            streams_per_address: 5_000,
            items_per_frame: 4_096,
            calls_per_stream: 100_000,
            credits_per_session: 10_000,
            queues_per_session: 100,
            hello_timeout_ms: 10_000,
            keepalive_ms: 10_000,
            shutdown_ms: 5_000,
        }
    }
}

impl Bounds {
    pub(crate) const fn hello_timeout(&self) -> Duration {
        Duration::from_millis(self.hello_timeout_ms)
    }

    pub(crate) const fn keepalive(&self) -> Duration {
        Duration::from_millis(self.keepalive_ms)
    }

    /// A live peer sends bytes at the latest in reply to a keepalive ping.
    pub(crate) fn silence(&self) -> Silence {
        let first = self.hello_timeout();
        Silence { first, later: first + 2 * self.keepalive() }
    }

    pub(crate) const fn stall(&self) -> Duration {
        Duration::from_millis(self.stall_ms)
    }

    /// Receive window of a new connection when so many are open, itself included. The windows
    /// shrink harmonically: however connections come and go, their sum stays within a few times the
    /// whole.
    pub(crate) fn window(&self, connections: usize) -> u32 {
        let share = self.receive_windows / connections.max(1);
        u32::try_from(share).unwrap_or(u32::MAX).clamp(LEAST_WINDOW, CONNECTION_WINDOW)
    }

    pub(crate) const fn shutdown(&self) -> Duration {
        Duration::from_millis(self.shutdown_ms)
    }
}

/// The initial window of every HTTP/2 connection.
const LEAST_WINDOW: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_share_what_may_be_sent_ahead() {
        let bounds = Bounds::default();
        assert_eq!(bounds.window(1), CONNECTION_WINDOW);
        assert_eq!(bounds.window(1_000), LEAST_WINDOW);
        let sum: u64 = (1..=1_000).map(|count| u64::from(bounds.window(count))).sum();
        assert!(sum < 140 << 20, "{sum}");
    }

    #[test]
    fn nothing_said_is_the_default() {
        let config = Config::from_toml("").expect("an empty file");
        assert_eq!(config, Config::default());
        assert_eq!(config.grpc_address.to_string(), "127.0.0.1:7233");
        assert_eq!(config.http_address.to_string(), "127.0.0.1:8233");
    }

    #[test]
    fn a_file_says_what_differs() {
        let text = r#"
            grpc_address = "0.0.0.0:9000"
            namespaces = ["default", "billing"]
            store = "postgres://abide:secret@db/abide"
            [namespace.billing]
            accepts_from = ["default"]
            [tls]
            certificate = "server.pem"
            key = "server.key"
            [bounds]
            connections = 5
        "#;
        let config = Config::from_toml(text).expect("a good file");
        assert_eq!(config.grpc_address.port(), 9000);
        assert!(config.namespaces.contains("billing"));
        assert!(!format!("{config:?}").contains("secret"));
        assert_eq!(config.tls.expect("TLS").client_ca, None);
        assert_eq!(config.bounds, Bounds { connections: 5, ..Bounds::default() });
    }

    #[test]
    fn only_namespaces_that_exist_accept_commands_and_only_from_others_that_do() {
        let borders = |text: &str| Config::from_toml(text).expect("a good file").borders();
        let both = "namespaces = ['a', 'b']\n";
        assert!(borders(&format!("{both}[namespace.a]\naccepts_from = ['b']")).is_ok());
        for text in ["[namespace.c]", "[namespace.a]\naccepts_from = ['c']"] {
            let refused = borders(&format!("{both}{text}")).expect_err("there is no c");
            assert!(refused.to_string().contains("\"c\""), "{refused}");
        }
    }

    #[test]
    fn namespaces_are_trimmed_and_have_names_of_their_own() {
        let named = |names: &[&str]| {
            let mut config = Config::default();
            let set = config.set_namespaces(names.iter().map(|name| (*name).to_owned()));
            set.and_then(|()| config.check()).map(|()| config.namespaces)
        };
        let read = |names: &[&str]| Config::from_toml(&format!("namespaces = {names:?}"));
        let good = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        assert_eq!(named(&["a", " b"]).expect("good names"), good);
        assert_eq!(read(&["a", " b"]).expect("good names").namespaces, good);
        let long = "a".repeat(1_001);
        let told = [
            (&["a", " "][..], "\"\" in `namespaces` is not a valid name: it is empty"),
            (&["a", "b", " a"], "`namespaces` has \"a\" twice"),
            (&[&long], "the limit is 1000"),
        ];
        for (names, told) in told {
            for refused in [named(names).err(), read(names).err()] {
                let refused = refused.expect("a bad name").to_string();
                assert!(refused.contains(told), "{refused}");
            }
        }
        assert!(named(&[]).is_err_and(|refused| refused.to_string().contains("is empty")));
        let config = Config { namespaces: BTreeSet::from([String::new()]), ..Config::default() };
        assert!(config.check().is_err());
    }

    #[test]
    fn the_secret_of_the_nodes_is_never_shown() {
        let secret = Secret::draw();
        let text = format!("[node]\nname = 'one'\nsecret = '{}'", secret.0);
        let config = Config::from_toml(&text).expect("a good file");
        let shown = toml::to_string(&config).expect("it can be written");
        assert!(!format!("{config:?}{shown}").contains(&secret.0));
        let node = config.node.expect("a node");
        assert_eq!(node.shared_secret().expect("a good secret"), Some(secret));
    }

    #[test]
    fn one_of_several_nodes_needs_a_secret_that_cannot_be_guessed() {
        let one = NodeConfig { name: Some("one".into()), ..NodeConfig::default() };
        let refused = one.check(None).expect_err("it has none");
        assert!(refused.to_string().contains("abide nodes secret"), "{refused}");
        let short = NodeConfig { secret: Some(Secret("short".into())), ..one.clone() };
        assert!(matches!(short.check(None), Err(ServerError::ShortSecret { bytes: 5, .. })));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), format!("{}\n", Secret::draw().0)).expect("it is written");
        let named = NodeConfig { secret_file: Some(file.path().into()), ..one };
        assert!(named.check(None).is_ok());
        assert!(NodeConfig::default().credentials(None).expect("it is alone").is_none());
    }

    #[test]
    fn a_password_is_never_shown() {
        let check = |address: &str, shown: &str| {
            let address = StoreAddress(address.to_owned());
            let config = Config { store: Some(address.clone()), ..Config::default() };
            let written = toml::to_string(&config).expect("it can be written");
            assert!(written.contains(&format!("store = {shown:?}\n")), "{written}");
            assert_eq!(format!("{address:?}"), format!("StoreAddress({shown:?})"));
        };
        check("postgres://abide:secret@db/abide", "postgres://…@db:5432/abide");
        check("postgres://abide:secret@one,two:7/abide", "postgres://…@one:5432,two:7/abide");
        check("postgres://db/abide?user=abide&password=secret", "postgres://…@db:5432/abide");
        check("nonsense with a secret", "…");
    }

    #[test]
    fn an_unknown_word_is_refused_by_name() {
        let error = Config::from_toml("port = 1").expect_err("there is no port");
        assert!(error.to_string().contains("`port`"), "{error}");
    }
}
