//! The server over loopback: the real service, the real transport of the SDK, interpreted workflows.

// The macros name the crate as its users know it.
extern crate abide_sdk as abide;

mod addresses;
mod bad_input;
mod certificates;
mod cluster;
mod codecs;
mod full_disk;
mod isolation;
mod large;
mod memory;
mod metrics;
mod network;
mod never;
mod observed;
mod operations;
mod overload;
mod refused;
mod strangers;
mod support;
mod trouble;
mod waits;
mod workers;
