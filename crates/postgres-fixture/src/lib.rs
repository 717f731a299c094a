//! For tests: a PostgreSQL server of their own, on a free port, in a temporary folder. It needs the
//! server's programs on this machine and nothing else; it ends with the process that started it, in
//! whatever way that ends. The program of this crate looks for them, and installs them if there are none.
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

mod install;
mod keeper;
mod programs;
mod server;
mod setup;

pub use install::{InstallError, install};
pub use programs::folder;
pub use server::{Server, StartError, Stop};
pub use setup::Setup;

/// A server that all tests of this process share, or none if PostgreSQL is not installed: then the test
/// of this name is skipped, and says so. In CI that is a failure.
///
/// # Panics
/// In CI if PostgreSQL is not installed, and everywhere if it does not start.
pub fn for_test(test: &str) -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let mut first = false;
    let shared = SHARED.get_or_init(|| {
        first = true;
        start_for_test(test, &Setup::default())
    });
    if shared.is_none() && !first {
        skip(test, &StartError::Missing);
    }
    shared.as_ref()
}

/// The same for a test that stops its server or sets it up in its own way.
///
/// # Panics
/// In CI if PostgreSQL is not installed, and everywhere if it does not start.
pub fn start_for_test(test: &str, setup: &Setup) -> Option<Server> {
    match setup.start() {
        Ok(server) => Some(server),
        Err(error @ StartError::Failed(_)) => panic!("{error}"),
        Err(error) => {
            skip(test, &error);
            None
        }
    }
}

/// Says that a test is skipped, past the harness, which would hide it. What can be installed is not
/// skipped in CI; what the machine forbids is.
fn skip(test: &str, reason: &StartError) {
    let forbidden = matches!(reason, StartError::NoMounts(_));
    assert!(forbidden || !in_ci(), "{test}: {reason}");
    // A message that cannot be shown is no reason to fail.
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {reason}");
}

/// Whether nobody is there to install what is missing.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}
