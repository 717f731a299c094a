//! What most programs need, for a glob import.
//!
//! With `anyhow`, whose trait has the same name as [`Context`], write `use anyhow::Context as _`.

pub use abide_sdk::prelude::*;
