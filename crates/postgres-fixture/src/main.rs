//! Finds PostgreSQL's programs, which tests need, or installs them. If that fails, tests are
//! skipped with a message; in CI it is an error.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use abide_postgres_fixture::{folder, in_ci, install};

fn main() -> ExitCode {
    if let Some(folder) = folder() {
        say(format_args!("PostgreSQL's programs are in {}", folder.display()));
        return ExitCode::SUCCESS;
    }
    say(format_args!("PostgreSQL was not found: installing it for the tests that need it"));
    match install() {
        Ok(folder) => {
            say(format_args!("PostgreSQL's programs are in {}", folder.display()));
            ExitCode::SUCCESS
        }
        Err(error) if in_ci() => {
            say(format_args!("{error}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(format_args!("{error}\nTESTS THAT NEED POSTGRESQL ARE SKIPPED"));
            ExitCode::SUCCESS
        }
    }
}

fn say(what: std::fmt::Arguments<'_>) {
    // A message that cannot be printed is no reason to fail.
    let _ = writeln!(io::stderr(), "{what}");
}
