//! The server over loopback: the real service, the real transport of the SDK, interpreted workflows.

#![expect(clippy::large_futures, reason = "futures of tests are polled once and never moved")]

mod bad_input;
mod network;
mod operations;
mod support;
mod workers;
