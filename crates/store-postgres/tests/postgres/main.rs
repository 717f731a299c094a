//! The store on a real PostgreSQL, which the tests start themselves.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod conformance;
mod connections;
mod databases;
mod faults;
mod proxy;
mod support;
mod sweep;
mod two_stores;
