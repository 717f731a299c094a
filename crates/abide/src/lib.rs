//! Durable workflows in Rust: the one crate to import.
//!
//! Everything of the SDK is here; most programs begin with `use abide::prelude::*`.

#![warn(missing_docs)]

pub use abide_sdk::*;
