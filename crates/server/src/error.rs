//! Errors of starting and running a server.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use abide_proto::error::with_causes;

/// Why a server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration cannot be read.
    #[error("the configuration cannot be read: {0}")]
    Config(#[from] toml::de::Error),
    /// The server cannot listen on an address.
    #[error("cannot listen on {address}: {error}; choose another address or stop its owner")]
    Listen {
        address: SocketAddr,
        /// The operating system's error, for example "address in use".
        error: io::Error,
    },
    /// A file of the TLS configuration cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    TlsFile {
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A file of the TLS configuration does not hold what it should.
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    TlsContent {
        path: PathBuf,
        /// What is wrong with the content.
        reason: String,
    },
    /// The data folder cannot be created.
    #[error("cannot make the data folder {}: {error}", path.display())]
    Data {
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// A cluster needs a store that its nodes can share.
    #[error(
        "a node of a cluster needs a database: say --store postgres://...; the SQLite file in the \
         data folder serves one process"
    )]
    Alone,
    /// A cluster needs a secret, so that only its nodes can act as nodes.
    #[error(
        "several servers on one database need a secret that they share, so that nobody else can speak as \
         one of them: make one by `abide nodes secret > node.secret`, give the file to all of them, and say \
         --secret-file node.secret, or give them certificates with a name of their own and say \
         --certificate-name; a server that is the only one needs none, and neither --node nor \
         --advertise"
    )]
    NoSecret,
    /// The certificate name cannot identify nodes.
    #[error(
        "nodes cannot be known by {name:?}, the certificate_name under [node]: {reason}; the certificates of \
         all nodes have this name among their alternative names, and those of clients do not"
    )]
    CertificateName {
        name: String,
        /// What is wrong with the name.
        reason: String,
    },
    /// The secret is too short to be safe from guessing.
    #[error(
        "the secret of the nodes has {bytes} bytes and needs {least} at least: make one by `abide nodes \
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
        "the secret of the nodes cannot be read from {}: {error}; make one by `abide nodes secret`",
        path.display()
    )]
    SecretFile {
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// Other nodes cannot reach this address.
    #[error(
        "other nodes cannot reach {0}: say by --advertise at which host and port they find this one"
    )]
    Advertise(String),
    /// The node's name is not valid.
    #[error("{0:?} is no name for a node: it needs characters that can be seen, on one line")]
    NodeName(String),
    /// The configuration has settings for a namespace that does not exist.
    #[error("the configuration speaks of the namespace {0:?}, which is not one of `namespaces`")]
    Namespace(String),
    /// The lease is too short to be renewed in time, or too long to be of use.
    #[error(
        "a lease of {0:?} is refused: it lasts from 200 milliseconds to an hour, 5 seconds by default"
    )]
    Lease(Duration),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] abide_store_sqlite::OpenError),
    /// The database cannot be opened.
    #[error(transparent)]
    Database(#[from] abide_store_postgres::OpenError),
    /// The engine can no longer serve its runs: its store has stopped, or another node owns them.
    #[error("the engine has failed: {0}; start it again, what was acknowledged is safe")]
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
