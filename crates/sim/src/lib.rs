//! A seeded simulator: a seed makes a world of shards, a store, queues, workers and clients; much of it
//! fails; and everything that must hold is checked.

pub mod checks;
pub mod names;
pub mod programs;
pub mod rng;
pub mod runner;
pub mod sabotage;
pub mod schedule;
pub mod settings;
pub mod trace;
pub mod world;
