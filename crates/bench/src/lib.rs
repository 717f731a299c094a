//! `abide bench`: what this machine achieves with the real engine. Every figure that an aim is
//! computed from is measured in the same run, because machines differ, also from moment to moment.
//! Servers and workers in processes of their own are the program that this crate is part of, so it
//! works only inside the binary `abide`.
//!
//! - `options` is the command line, `session` what measurements share.
//! - `store`, `hello`, `sleep`, `signal`, `idle`, `timers`: one file per measurement, with its
//!   figures.
//! - `postgres`: the same on a database, with several nodes and with one that is killed.
//! - `aims`: target values of the figures, computed from one another.
//! - `place`, `processes`: where the engine and the worker run; `workflows`, `sleepers`: what they
//!   run; `resumed`: when code continued, reported within the process.
//! - `machine`: load, memory, processor time; `report`: how figures are printed.

mod aims;
mod hello;
mod idle;
mod machine;
mod options;
mod place;
mod postgres;
mod processes;
mod report;
mod resumed;
mod session;
mod signal;
mod sleep;
mod sleepers;
mod store;
mod timers;
mod worker;
mod workflows;

pub use self::options::Bench;
