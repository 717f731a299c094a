//! Workflows as users write them, on an engine in the same process: the whole way from a client's call
//! to workflow code and back, over restarts of workers and engines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

mod activities;
mod attempts;
mod basics;
mod blocked;
mod connections;
mod histories;
mod messages;
mod others;
mod restarts;
mod unsteady;
mod waits;
mod world;
