//! The server: an engine behind Abide's own gRPC API, with health, reflection, TLS, and a small
//! HTTP listener for probes.
//!
//! - [`Server`]: starts, reports its addresses, and stops gracefully.
//! - [`Config`]: the settings of a configuration file; [`Bounds`] holds the bounds of the network
//!   side that can be set, and `bounds` checks them.
//! - `service` answers single calls, `calls` answers streams of calls; both use `handler`.
//! - `listen` serves connections, and `connections` accounts for what each holds: `framing` measures all
//!   traffic, `accept` notices silence, `frame` bounds the items of a frame.
//! - `peers` joins several servers on one database into one cluster.
//! - `workers` accepts a worker, `session` is its stream, `held` knows which tasks it may report
//!   on.
//! - `probes` and `metrics` serve monitoring.
//!
//! Nothing here decides about workflows: each request is translated, passed to the engine, and its
//! answer translated back.

mod accept;
mod bounds;
mod calls;
mod config;
mod connections;
mod error;
mod frame;
mod framing;
mod handler;
mod handshakes;
mod held;
mod history;
mod listen;
mod lock;
mod metrics;
mod own_task;
mod peers;
mod probes;
mod secret;
mod server;
mod service;
mod session;
mod tls;
mod waits;
mod workers;

pub use config::{Bounds, Config, NamespaceConfig, NodeConfig, StoreAddress, Tls};
pub use error::ServerError;
pub use secret::Secret;
pub use server::Server;
