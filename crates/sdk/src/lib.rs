//! Workflows and activities as Rust code.

pub mod transport;
