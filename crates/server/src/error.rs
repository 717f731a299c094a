//! Why a server could not start, or stopped.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use abide_proto::error::with_causes;

/// Why a server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration cannot be read.
    #[error("the configuration cannot be read: {0}")]
    Config(#[from] toml::de::Error),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}; choose another address or stop its owner")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// A file of the TLS configuration cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the TLS configuration holds something else.
    #[error("{} cannot be used for TLS: {reason}", path.display())]
    TlsContent {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The data folder cannot be made.
    #[error("cannot make the data folder {}: {error}", path.display())]
    Data {
        /// The data folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Several nodes need a store that they can share.
    #[error(
        "a node of a cluster needs a database: say --store postgres://...; the SQLite file in the \
         data folder serves one process"
    )]
    Alone,
    /// Nobody else must be able to speak as a node.
    #[error(
        "several servers on one database need a secret that they share, so that nobody else can speak as \
         one of them: make one by `abide nodes secret > node.secret`, give the file to all of them, and say \
         --secret-file node.secret, or give them certificates with a name of their own and say \
         --certificate-name; a server that is the only one needs none, and neither --node nor \
         --advertise"
    )]
    NoSecret,
    /// Nodes cannot be known by this name.
    #[error(
        "nodes cannot be known by {name:?}, the certificate_name under [node]: {reason}; the certificates of \
         all nodes have this name among their alternative names, and those of clients do not"
    )]
    CertificateName {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The secret can be guessed.
    #[error(
        "the secret of the nodes has {bytes} bytes and needs {least} at least: make one by `abide nodes \
         secret`"
    )]
    ShortSecret {
        /// How many it has.
        bytes: usize,
        /// How many it needs.
        least: usize,
    },
    /// The file of the secret cannot be read.
    #[error(
        "the secret of the nodes cannot be read from {}: {error}; make one by `abide nodes secret`",
        path.display()
    )]
    SecretFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Other nodes cannot reach this address.
    #[error(
        "other nodes cannot reach {0}: say by --advertise at which host and port they find this one"
    )]
    Advertise(String),
    /// Nobody could tell this node from others by its name.
    #[error("{0:?} is no name for a node: it needs characters that can be seen, on one line")]
    NodeName(String),
    /// Something is said of a namespace that does not exist.
    #[error("the configuration speaks of the namespace {0:?}, which is not one of `namespaces`")]
    Namespace(String),
    /// The lease is too short to be kept, or too long to be of use.
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
    /// The engine cannot serve its runs any more: its store has stopped, or another node has them.
    #[error("the engine has failed: {0}; start it again, what was acknowledged is safe")]
    Engine(String),
    /// A task of the server failed, which is a bug.
    #[error("a task of the server failed: {0}")]
    Panicked(tokio::task::JoinError),
    /// The gRPC server failed.
    #[error("the gRPC server failed: {}", with_causes(.0))]
    Grpc(#[from] tonic::transport::Error),
    /// Reflection cannot be offered.
    #[error("the descriptors for reflection are damaged: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The HTTP listener failed.
    #[error("the HTTP listener failed: {0}")]
    Http(io::Error),
}
