//! Runs every example as a user would and compares what it prints with its `expected.txt`.

use std::{
    collections::BTreeSet,
    io::{self, BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use crate::repository::{abide, examples, read};

/// How long an example may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of examples that run at the same time.
const AT_ONCE: usize = 4;

/// Runs a program to its end, in an empty folder for files that it may need, and compares its output.
fn check(program: &str, arguments: &[&str], example: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).env("TMPDIR", folder.path());
    let (printed, ended) = finish(&mut command);
    let expected = read(&format!("examples/{example}/expected.txt"));
    let left_behind = folder.path().read_dir().unwrap().count();
    if ended.is_ok() && printed == expected && left_behind == 0 {
        return Ok(());
    }
    let ended = ended.err().unwrap_or_default();
    Err(format!(
        "{example} printed:\n{printed}\nand should print:\n{expected}\n\
         files left behind: {left_behind}\n{ended}"
    ))
}

/// Output of the program, and why it failed, if it did.
fn finish(command: &mut Command) -> (String, Result<(), String>) {
    let mut program =
        Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let (output, errors) = (program.0.stdout.take().unwrap(), program.0.stderr.take().unwrap());
    let errors = thread::spawn(move || io::read_to_string(errors).unwrap());
    let (done, printed) = mpsc::channel();
    let reader = thread::spawn(move || {
        let printed = io::read_to_string(output).unwrap();
        done.send(()).unwrap();
        printed
    });
    let in_time = printed.recv_timeout(PATIENCE).is_ok();
    if !in_time {
        program.0.kill().unwrap();
    }
    let (status, printed) = (program.0.wait().unwrap(), reader.join().unwrap());
    let errors = errors.join().unwrap();
    let ended = match in_time {
        true if status.success() => Ok(()),
        true => Err(format!("{status}: {errors}")),
        false => Err(format!("it did not end within {PATIENCE:?}: {errors}")),
    };
    (printed, ended)
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
fn every_example_prints_what_it_should() {
    let program = env!("CARGO_BIN_EXE_example");
    let names = Mutex::new(examples().into_iter().filter(|name| name != "worker"));
    let next = || names.lock().unwrap().next();
    // Most of them wait most of the time, so several run concurrently.
    let problems: Vec<String> = thread::scope(|scope| {
        let run = || {
            let checks = std::iter::from_fn(next).map(|name| check(program, &[&name], &name));
            checks.filter_map(Result::err).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_program_lists_all_examples() {
    let output = Command::new(env!("CARGO_BIN_EXE_example")).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let listed: BTreeSet<String> = printed.lines().skip(1).map(|line| line.trim().into()).collect();
    let mut expected = examples();
    expected.remove("worker");
    assert_eq!(listed, expected);
}

#[test]
fn worker_and_starter() {
    let data = tempfile::tempdir().unwrap();
    let (_server, address) = server(data.path().to_str().unwrap());
    let mut worker = Command::new(env!("CARGO_BIN_EXE_worker"));
    let _worker = Running(worker.args(["--address", &address]).spawn().unwrap());
    let starter = env!("CARGO_BIN_EXE_starter");
    check(starter, &["--address", &address], "worker").unwrap();
}
