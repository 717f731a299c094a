//! Runs every example as a user would and compares what it prints with its `expected.txt`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::repository::{abide, read};

/// Runs a program to its end and compares its output.
fn check(program: &str, arguments: &[&str], folder: &str) {
    check_run(Command::new(program).args(arguments), folder);
}

fn check_run(command: &mut Command, folder: &str) {
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}{errors}", output.status);
    assert_eq!(printed, read(&format!("examples/{folder}/expected.txt")), "{errors}");
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of the real program on a free port, and its address.
fn server(data: &str) -> (Running, String) {
    let mut command = Command::new(abide());
    command.args(["dev", "--no-demo", "--json", "--data", data]);
    command.args(["--address", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut server = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let (_, address) = ready.split_once("\"address\":\"").expect("it says where it listens");
    let (address, _) = address.split_once('"').expect("the address ends");
    (server, address.to_owned())
}

#[test]
fn hello() {
    check(env!("CARGO_BIN_EXE_hello"), &[], "hello");
}

#[test]
fn sleep() {
    check(env!("CARGO_BIN_EXE_sleep"), &[], "sleep");
}

#[test]
fn signal() {
    check(env!("CARGO_BIN_EXE_signal"), &[], "signal");
}

#[test]
fn query() {
    check(env!("CARGO_BIN_EXE_query"), &[], "query");
}

#[test]
fn update() {
    check(env!("CARGO_BIN_EXE_update"), &[], "update");
}

#[test]
fn deadline() {
    check(env!("CARGO_BIN_EXE_deadline"), &[], "deadline");
}

#[test]
fn extensions() {
    check(env!("CARGO_BIN_EXE_extensions"), &[], "extensions");
}

#[test]
fn approval() {
    check(env!("CARGO_BIN_EXE_approval"), &[], "approval");
}

#[test]
fn approval_data() {
    check(env!("CARGO_BIN_EXE_approval-data"), &[], "approval-data");
}

#[test]
fn approval_levels() {
    check(env!("CARGO_BIN_EXE_approval-levels"), &[], "approval-levels");
}

#[test]
fn approval_escalation() {
    check(env!("CARGO_BIN_EXE_approval-escalation"), &[], "approval-escalation");
}

#[test]
fn approval_deadline() {
    check(env!("CARGO_BIN_EXE_approval-deadline"), &[], "approval-deadline");
}

#[test]
fn child() {
    check(env!("CARGO_BIN_EXE_child"), &[], "child");
}

#[test]
fn embedded() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_embedded"));
    check_run(program.env("TMPDIR", folder.path()), "embedded");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "no files are left behind");
}

#[test]
fn worker_and_starter() {
    let data = tempfile::tempdir().unwrap();
    let (_server, address) = server(data.path().to_str().unwrap());
    let mut worker = Command::new(env!("CARGO_BIN_EXE_worker"));
    let _worker = Running(worker.args(["--address", &address]).spawn().unwrap());
    check(env!("CARGO_BIN_EXE_starter"), &["--address", &address], "worker");
}
