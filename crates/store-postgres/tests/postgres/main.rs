//! The store on a real PostgreSQL, which the tests start themselves.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod conformance;
mod connections;
mod databases;
mod failover;
mod faults;
mod migrations;
mod proxy;
mod support;
mod sweep;
mod tls;
mod two_stores;
