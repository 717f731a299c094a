//! Errors of starting and running a server.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use abide_proto::error::with_causes;
use abide_store_postgres::OpenError;

/// Why a server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration cannot be read.
    #[error("the configuration cannot be read: {0}")]
    Config(#[from] toml::de::Error),
    /// The server cannot listen on an address.
    #[error(
        "cannot listen on {address}: {error}; choose another address or stop the process that uses it"
    )]
    Listen {
        address: SocketAddr,
        /// The operating system's error, for example "address in use".
        error: io::Error,
    },
    /// A file of the TLS configuration cannot be read.
    #[error("{option}: {} cannot be read: {error}", path.display())]
    TlsFile {
        /// The option that names the file.
        option: &'static str,
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A file of the TLS configuration does not hold what it should.
    #[error("{option}: {} {problem}", path.display())]
    TlsContent {
        /// The option that names the file.
        option: &'static str,
        path: PathBuf,
        /// What is wrong with the content.
        problem: String,
    },
    /// The data directory cannot be created.
    #[error("cannot create the data directory {}: {error}", path.display())]
    Data {
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A cluster needs a store that its nodes can share.
    #[error(
        "a node of a cluster needs a shared database: set --store postgres://...; the SQLite file in the \
         data directory serves a single process"
    )]
    Alone,
    /// A cluster needs a secret, so that only its nodes can act as nodes.
    #[error(
        "nodes that share a database need a secret to authenticate each other: generate it with `abide \
         nodes secret > node.secret`, give the file to all nodes, and set --secret-file node.secret; or \
         give all nodes certificates with a common name and set --certificate-name; a single server needs \
         none of these, and neither --node nor --advertise"
    )]
    NoSecret,
    /// The certificate name cannot identify nodes.
    #[error(
        "certificate_name {name:?} under [node] cannot identify nodes: {reason}; the certificates of all nodes \
         must have this name among their alternative names, and those of clients must not"
    )]
    CertificateName {
        name: String,
        /// What is wrong with the name.
        reason: String,
    },
    /// The secret is too short to be safe from guessing.
    #[error(
        "the node secret has {bytes} bytes, the minimum is {least}: generate one with `abide nodes \
         secret`"
    )]
    ShortSecret {
        /// Length of the secret.
        bytes: usize,
        /// Smallest length that is accepted.
        least: usize,
    },
    /// The file of the secret cannot be read.
    #[error(
        "cannot read the node secret from {}: {error}; generate one with `abide nodes secret`",
        path.display()
    )]
    SecretFile {
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// Other nodes cannot reach this address.
    #[error(
        "other nodes cannot reach {0}: set --advertise to the host and port at which they reach this node"
    )]
    Advertise(String),
    /// The node's name is not valid.
    #[error("{0:?} is not a valid node name: use visible characters on one line")]
    NodeName(String),
    /// The configuration has settings for a namespace that does not exist.
    #[error("the configuration has settings for the namespace {0:?}, which is not in `namespaces`")]
    Namespace(String),
    /// A namespace cannot have this name.
    #[error("{name:?} in `namespaces` is not a valid name: it {problem}")]
    NamespaceName {
        name: String,
        /// What is wrong with the name.
        problem: String,
    },
    /// The list of namespaces has a name twice.
    #[error("`namespaces` has {0:?} twice: remove one")]
    NamespaceTwice(String),
    /// A server without namespaces would refuse every call.
    #[error("`namespaces` is empty: name at least one, such as \"default\"")]
    NoNamespace,
    /// A bound is zero or very small, so that no client could be served, or too large to limit anything.
    #[error(
        "invalid bounds.{field} of {value}: the minimum is {least}, the maximum {most}, the default {usual}"
    )]
    Bound {
        field: &'static str,
        value: u64,
        least: u64,
        most: u64,
        /// The default.
        usual: u64,
    },
    /// A message of the allowed size would not fit the room of its connection.
    #[error(
        "invalid bounds.message_bytes of {bytes}: one connection has room for {room} bytes, the smaller of \
         bounds.bytes_per_connection and a sixth of bounds.bytes_in_flight; raise these, or lower \
         bounds.message_bytes"
    )]
    MessageBytes {
        bytes: usize,
        /// Bytes of large messages that one connection may have in flight.
        room: usize,
    },
    /// The lease is too short to be renewed in time, or too long to be of use.
    #[error("invalid lease of {0:?}: the minimum is 200ms, the maximum 1h, the default 5s")]
    Lease(Duration),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] abide_store_sqlite::OpenError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// The engine can no longer serve its runs: its store has stopped, or another node owns them.
    #[error("the engine has failed: {0}; restart it, all acknowledged changes are safe")]
    Engine(String),
    /// A task of the server panicked, which is a bug.
    #[error("a task of the server failed: {0}")]
    Panicked(tokio::task::JoinError),
    /// The gRPC server failed.
    #[error("the gRPC server failed: {}", with_causes(.0))]
    Grpc(#[from] tonic::transport::Error),
    /// The reflection service cannot be built.
    #[error("the descriptors for reflection are damaged: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The HTTP listener failed.
    #[error("the HTTP listener failed: {0}")]
    Http(io::Error),
}

impl ServerError {
    /// Whether the configuration is wrong. Otherwise the same configuration may work elsewhere or
    /// later.
    pub const fn is_configuration(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::TlsFile { .. }
            | Self::TlsContent { .. }
            | Self::Alone
            | Self::NoSecret
            | Self::CertificateName { .. }
            | Self::ShortSecret { .. }
            | Self::SecretFile { .. }
            | Self::Advertise(_)
            | Self::NodeName(_)
            | Self::Namespace(_)
            | Self::NamespaceName { .. }
            | Self::NamespaceTwice(_)
            | Self::NoNamespace
            | Self::Bound { .. }
            | Self::MessageBytes { .. }
            | Self::Lease(_)
            | Self::Database(OpenError::Address { .. } | OpenError::Certificate { .. }) => true,
            Self::Listen { .. }
            | Self::Data { .. }
            | Self::Store(_)
            | Self::Database(_)
            | Self::Engine(_)
            | Self::Panicked(_)
            | Self::Grpc(_)
            | Self::Reflection(_)
            | Self::Http(_) => false,
        }
    }
}
