//! Runs every example as a user would and compares what it prints with its `expected.txt`.

use std::{fs, path::Path, process::Command};

/// Runs a program to its end and compares its output.
fn check(program: &str, folder: &str) {
    let output = Command::new(program).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}{errors}", output.status);
    assert_eq!(printed, expected(folder), "{errors}");
}

fn expected(folder: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("expected.txt");
    fs::read_to_string(path).unwrap()
}

#[test]
fn hello() {
    check(env!("CARGO_BIN_EXE_hello"), "hello");
}

#[test]
fn sleep() {
    check(env!("CARGO_BIN_EXE_sleep"), "sleep");
}

#[test]
fn signal() {
    check(env!("CARGO_BIN_EXE_signal"), "signal");
}

#[test]
fn query() {
    check(env!("CARGO_BIN_EXE_query"), "query");
}

#[test]
fn update() {
    check(env!("CARGO_BIN_EXE_update"), "update");
}

#[test]
fn child() {
    check(env!("CARGO_BIN_EXE_child"), "child");
}

#[test]
fn embedded() {
    check(env!("CARGO_BIN_EXE_embedded"), "embedded");
}
