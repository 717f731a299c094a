//! A seeded simulator: a seed makes a world of shards, a store, queues, workers and clients, in
//! which much fails, and checks everything that must hold. The machines are the production ones.
//! The world drives them on one thread with a virtual clock, so that a seed always gives the same
//! world.
//!
//! - [`world`]: what exists and what happens; [`settings`], [`programs`] and [`names`] are drawn or
//!   chosen for it. [`code`] runs the programs on the SDK's executor.
//! - [`checks`]: what must hold, one function per invariant.
//! - [`sabotage`]: deliberate bugs, to show that the checks find them.
//! - [`runner`]: runs seeds, one or many.
//! - [`rng`], [`schedule`], [`trace`]: randomness, order of events, and a readable record of them.

// `condition!` expands to paths with the name of the SDK that users see.
extern crate abide_sdk as abide;

pub mod attributes;
pub mod checks;
pub mod code;
pub mod names;
pub mod programs;
pub mod rng;
pub mod runner;
pub mod sabotage;
pub mod schedule;
pub mod settings;
pub mod trace;
pub mod world;
