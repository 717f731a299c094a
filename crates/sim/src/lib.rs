//! A seeded simulator: a seed makes a world of shards, a store, queues, workers and clients; much of it
//! fails; and everything that must hold is checked. The machines are the true ones. The world is their
//! driver, on one thread and with a clock of its own, so that a seed is the same world every time.
//!
//! - [`world`]: what there is and what happens to it; [`settings`], [`programs`] and [`names`] are drawn
//!   or chosen for it. [`code`] runs the programs on the SDK's executor.
//! - [`checks`]: what must be true, one function per invariant.
//! - [`sabotage`]: deliberate bugs, to show that the checks find them.
//! - [`runner`]: runs seeds, one or many.
//! - [`rng`], [`schedule`], [`trace`]: chance, order of events, and what people read of them.

// What `condition!` expands to names the SDK by the name that users know.
extern crate abide_sdk as abide;

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
