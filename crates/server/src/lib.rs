//! The server: an engine behind the own gRPC API, with health, reflection, TLS, and a small HTTP
//! listener for probes.
//!
//! - [`Server`]: starts, says where it listens, and stops gracefully.
//! - [`Config`]: what a configuration file can say; [`Bounds`] holds every bound of the network side.
//! - `service` answers single calls, `calls` many calls on one stream; both ask `handler`.
//! - `listen` serves connections, of which `guests` knows what each holds: `wire` measures all that
//!   travels, `connection` notices silence, `frame` bounds what shares a frame.
//! - `peers` makes several servers on one database one cluster.
//! - `workers` greets a worker, `session` is its stream, `held` knows what it may answer for.
//! - `probes` and `metrics` are for those who watch it.
//!
//! Nothing here decides about workflows: a request is translated, given to the engine, and its answer
//! translated back.

#![warn(missing_docs)]

mod calls;
mod config;
mod connection;
mod error;
mod frame;
mod guests;
mod handler;
mod held;
mod history;
mod listen;
mod metrics;
mod peers;
mod probes;
mod secret;
mod server;
mod service;
mod session;
mod tls;
mod waits;
mod wire;
mod workers;

pub use config::{Bounds, Config, NamespaceConfig, NodeConfig, StoreAddress, Tls};
pub use error::ServerError;
pub use secret::Secret;
pub use server::Server;
