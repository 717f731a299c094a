//! The run machine as a specification: one file per topic, each test one rule. Every decision of every
//! test passes the checks of [`world::World`]: it is encoded, folded again from the bytes and compared.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

mod activities;
mod activity_timeouts;
mod bad_commands;
mod buffering;
mod build;
mod children;
mod closes;
mod detached;
mod golden;
mod keys;
mod liveness;
mod overtaken_firings;
mod pausing;
mod random;
mod resets;
mod scenarios;
mod schedules;
mod shown_waits;
mod signals;
mod snapshots;
mod task_failures;
mod tasks;
mod timers;
mod updates;
mod waits;
mod worker;
mod world;
