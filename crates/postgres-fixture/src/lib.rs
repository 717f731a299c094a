//! For tests: a PostgreSQL server of their own, on a free port, in a temporary folder. It needs the
//! server's programs on this machine and nothing else; it ends with the process that started it, in
//! whatever way that ends.
//!
//! ```no_run
//! # fn main() {
//! let Some(server) = abide_postgres_fixture::for_test("my_test") else { return };
//! let address = server.database("things");
//! # }
//! ```

#![warn(missing_docs)]

use std::{
    io::{self, Write as _},
    sync::OnceLock,
};

mod programs;
mod server;

pub use server::{Server, Setup, StartError, Stop};

/// A server that all tests of this process share, or none if PostgreSQL is not installed: then the test
/// of this name is skipped, and says so. In CI that is a failure.
///
/// # Panics
/// In CI if PostgreSQL is not installed, and everywhere if it does not start.
pub fn for_test(test: &str) -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| start_for_test(test, &Setup::default())).as_ref();
    if shared.is_none() {
        skip(test);
    }
    shared
}

/// The same for a test that stops its server or sets it up in its own way.
///
/// # Panics
/// In CI if PostgreSQL is not installed, and everywhere if it does not start.
pub fn start_for_test(test: &str, setup: &Setup) -> Option<Server> {
    match setup.start() {
        Ok(server) => Some(server),
        Err(StartError::Missing) => {
            skip(test);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Says that a test is skipped, past the harness, which would hide it.
fn skip(test: &str) {
    let missing = StartError::Missing;
    assert!(std::env::var_os("CI").is_none(), "{test}: {missing}");
    // A message that cannot be shown is no reason to fail.
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {missing}");
}
