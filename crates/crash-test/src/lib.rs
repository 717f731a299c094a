//! `abide crash-test`: subjects real servers and workers to what machines, networks and people do
//! to them, while clients work, and then looks for anything that was lost, duplicated or cut short.
//! Servers and workers are processes of the program that this crate is part of, so it works only
//! inside the binary `abide`.
//!
//! - `options` is the command line, `ordeal` the course of a test, `report` what it says at the end.
//! - `site`, `processes`, `database`, `proxy`: what is put under load and broken; `faults`: how it
//!   is broken, one file each.
//! - `traveller`, `register`, `auction`: clients, each with its workflows, of which `journey` does a
//!   little of everything; `worker` serves them; `stopwatch` times the calls.
//! - `check`, `deadlines`: what must hold at the end.

mod auction;
mod check;
mod database;
mod deadlines;
mod faults;
mod journey;
mod options;
mod ordeal;
mod processes;
mod proxy;
mod register;
mod report;
mod site;
mod stopwatch;
mod traveller;
mod worker;

pub use self::options::CrashTest;
