//! The own gRPC API, `abide.v1`: its messages, and how the core's words become them and back.
//!
//! - [`generated`]: the messages, and with the features `client` and `server` the two ends of the
//!   services, generated from `proto/abide/v1` by `cargo xtask codegen`.
//! - [`operation`]: everything that clients and operators can ask and be told; [`worker`]: what a worker and a
//!   server say to each other.
//! - [`error`]: how a failed call travels, so that the caller gets the very same error.
//!
//! Conversions are total: what the core can say has a form on the wire. The other way they refuse
//! what makes no sense with the field at fault; bounds and rules are the engine's affair.

#![warn(missing_docs)]

mod answer;
mod attempt;
#[cfg(feature = "tonic")]
pub mod codec;
mod command;
pub mod error;
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes_without_reason,
    clippy::large_enum_variant,
    clippy::too_many_lines,
    reason = "generated: the schema says what a message is for"
)]
#[rustfmt::skip]
pub mod generated;
mod field;
mod history;
mod list;
mod node;
pub mod operation;
#[cfg(feature = "tonic")]
mod parts;
mod refusal;
mod run;
mod run_operation;
mod tally;
pub mod wait;
pub mod worker;

/// The version of the worker protocol that is spoken here.
pub const PROTOCOL_VERSION: u32 = 1;

/// Bytes that may be on their way on one stream, at either end: enough for a second of frames between
/// processes, and a bound for what a peer makes the other hold.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// The same of one connection.
pub const CONNECTION_WINDOW: u32 = 4 << 20;

/// The services and messages as a file descriptor set, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");
