//! Looks for PostgreSQL's programs, which tests need, and installs them if there are none. Where that
//! fails too, tests are skipped and say so; in CI it is a failure.

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
    say(format_args!("PostgreSQL is not there: it is installed for the tests that need it"));
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
    // A message that cannot be shown is no reason to fail.
    let _ = writeln!(io::stderr(), "{what}");
}
