//! Runs the console blocks of the guide against the real program and compares what it prints.

use crate::console::run_page;

#[test]
fn getting_started() {
    run_page("docs/getting-started.md");
}

#[test]
fn command_line() {
    run_page("docs/cli.md");
}

#[test]
fn server() {
    run_page("docs/server.md");
}
