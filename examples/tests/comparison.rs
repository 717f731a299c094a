//! Runs the programs of the comparison, each in a folder of its own for its file.

use std::process::Command;

/// Runs a program and compares what it prints.
fn check(program: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_example"));
    command.arg(format!("comparison-{program}")).current_dir(&folder);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{program}: {errors}");
    assert!(output.status.success(), "{program}: {errors}");
}

#[test]
fn hello() {
    check("hello", "Hello, Ada!\n");
}

#[test]
fn approval() {
    check("approval", "a desk: approved\n");
}

#[test]
fn signal() {
    check("signal", "Ada paid 4200 cents\n");
}

#[test]
fn saga() {
    let undone = "booked a hotel\nbooked a flight\ncancelled the flight\ncancelled the hotel\n";
    check("saga", &format!("{undone}failed: the run failed: activity book failed: no car left\n"));
}

#[test]
fn fan_out() {
    check("fan_out", "5500\n");
}

#[test]
fn entity() {
    check("entity", "gold\n");
}
