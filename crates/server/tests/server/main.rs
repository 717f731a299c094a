//! The server over loopback: the real service, the real transport of the SDK, interpreted workflows.

mod bad_input;
mod counting;
mod network;
mod operations;
mod overload;
mod support;
mod workers;
