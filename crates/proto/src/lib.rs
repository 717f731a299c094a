//! Abide's own gRPC API, `abide.v1`: its messages, and their conversions to and from core types.
//!
//! - [`generated`]: the messages, and with the features `client` and `server` the two ends of the
//!   services, generated from `proto/abide/v1` by `cargo xtask codegen`.
//! - [`operation`]: all operations of clients and operators with their answers; [`worker`]: the
//!   messages between a worker and a server.
//! - [`error`]: how an error travels, so that the caller gets the same error back.
//!
//! Conversions to the wire are total: every core value has a wire form. Conversions from the wire
//! refuse malformed messages and name the field at fault; the engine checks bounds and rules.

mod answer;
mod attempt;
mod batch;
#[cfg(feature = "tonic")]
pub mod codec;
mod command;
mod course;
pub mod error;
#[allow(
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
pub mod parts;
mod refusal;
mod run;
mod run_operation;
mod schedule;
mod search;
mod tally;
pub mod wait;
pub mod worker;

/// Version of the worker protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// Receive window of one stream in bytes, at either end: enough for a second of frames between
/// processes, and a bound on what a peer can make the other hold.
pub const STREAM_WINDOW: u32 = 1 << 20;

/// Receive window of one connection in bytes.
pub const CONNECTION_WINDOW: u32 = 4 << 20;

/// The services and messages as a file descriptor set, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");
