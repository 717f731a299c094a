//! Search attributes: named, typed values of runs by which lists find them.

pub use abide_sdk::search::{AttributeChange, AttributeKind, SearchAttribute};
