//! x
pub mod rng; pub mod schedule; pub mod names;
