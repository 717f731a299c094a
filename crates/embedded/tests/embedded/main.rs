//! Workflows as users write them, on an engine in the same process: the whole path from a client's
//! call to workflow code and back, across restarts of workers and engines.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

// The macros refer to the crate by the name that its users see.
extern crate abide_sdk as abide;

mod activities;
mod approvals;
mod attempts;
mod background;
mod basics;
mod blocked;
mod codecs;
mod connections;
mod handles;
mod histories;
mod log;
mod messages;
mod others;
mod restarts;
mod searching;
mod unsteady;
mod waits;
mod world;
