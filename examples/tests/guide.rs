//! Runs the console blocks of the guide against the real program and compares what it prints.

use crate::{console::run_page, repository};

#[test]
fn getting_started() {
    run_page("docs/getting-started.md");
}

#[test]
fn command_line() {
    run_page("docs/cli.md");
}

#[test]
fn changing_course() {
    run_page("docs/changing-course.md");
}

#[test]
fn server() {
    run_page("docs/server.md");
}

#[test]
fn schedules() {
    run_page("docs/schedules.md");
}

/// A page with a new kind of block must be named above, or in the crate that compiles the guide.
#[test]
fn no_page_is_forgotten() {
    let (compiled, run) =
        (repository::read("examples/guide/lib.rs"), repository::read("examples/tests/guide.rs"));
    for page in repository::pages() {
        let text = repository::read(&format!("docs/{page}"));
        let named = format!("{page}\"");
        assert!(!text.contains("```rust") || compiled.contains(&named), "{page} is not compiled");
        assert!(!text.contains("```console") || run.contains(&named), "{page} is not run");
    }
}
