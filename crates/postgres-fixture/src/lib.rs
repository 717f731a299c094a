//! A PostgreSQL server for tests, on a free port and in a temporary folder. It needs only the
//! server's programs on this machine, and stops when the process that started it exits, even if
//! that was killed. The binary of this crate finds the programs, or installs them.
//!
//! ```no_run
//! # fn main() {
//! let Some(server) = abide_postgres_fixture::for_test("my_test") else { return };
//! let address = server.database("things");
//! # }
//! ```

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

/// Returns a server that all tests of this process share. Without PostgreSQL on the machine the
/// test is skipped with a message, and this returns `None`; in CI it panics.
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

/// Like [`for_test`], for a test that stops its server or needs its own settings.
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

/// Reports a skipped test directly on standard error, because the test harness would hide the
/// message. In CI a missing installation panics instead, but a permission that the machine denies
/// only skips.
fn skip(test: &str, reason: &StartError) {
    let forbidden = matches!(reason, StartError::NoMounts(_));
    assert!(forbidden || !in_ci(), "{test}: {reason}");
    // A message that cannot be printed is no reason to fail.
    let _ = writeln!(io::stderr(), "SKIPPED {test}: {reason}");
}

/// Whether this is a CI run, where a missing installation is an error.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}
