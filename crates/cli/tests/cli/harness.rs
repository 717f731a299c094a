//! Starts engines and runs commands against them.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader, Lines, Read},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// The binary, without what the environment of the tests may say to it.
pub(crate) fn abide() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abide"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ABIDE_")) {
        command.env_remove(name);
    }
    command.env_remove("COLUMNS").env("ABIDE_IDENTITY", "tester").stdin(Stdio::null());
    command
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// What it printed, if it went well.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// What it complained of, if it ended with this code.
    #[track_caller]
    pub(crate) fn bad(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "nothing is printed beside an error");
        self.stderr
    }
}

/// A running `abide dev` or `abide serve`. Killed when it is dropped.
pub(crate) struct Engine {
    child: Child,
    pub(crate) address: String,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

/// A command that serves as one of several nodes.
pub(crate) fn node(database: &str) -> Command {
    let mut command = abide();
    command.env("ABIDE_NODE_SECRET", "a secret that all nodes of these tests share");
    command.args(["serve", "--store", database, "--lease", "1"]);
    command
}

impl Engine {
    /// `abide dev` on free ports, with its data in this folder.
    pub(crate) fn dev(data: &Path) -> Self {
        Self::start(["dev".as_ref(), "--data".as_ref(), data.as_os_str()])
    }

    /// Starts an engine on free ports and waits until it is ready.
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = abide();
        command.args(arguments).args(["--json", "--address", "127.0.0.1:0"]);
        Self::spawn(command.args(["--http", "127.0.0.1:0"]))
    }

    /// Starts one of several servers on a database, all of which share a secret.
    pub(crate) fn node(database: &str, words: &[&str]) -> Self {
        let mut command = node(database);
        Self::spawn(command.args(words).args([
            "--json",
            "--address",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
        ]))
    }

    /// Starts an engine by this command, which asks for JSON, and waits until it is ready.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("its output is ours");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("it says that it is ready");
        let ready: Value = serde_json::from_str(&line).expect("one JSON object");
        let address = ready["address"].as_str().expect("an address").to_owned();
        Self { child, address, ready }
    }

    /// Runs a command against this engine; words are separated by spaces.
    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_with(words, &[])
    }

    /// The same, with arguments that hold spaces.
    pub(crate) fn run_with(&self, words: &str, more: &[&str]) -> Ran {
        let mut command = abide();
        command.args(words.split_whitespace()).args(more).args(["--address", &self.address]);
        Ran::of(&mut command)
    }

    /// What a command printed as JSON, one value per line.
    #[track_caller]
    pub(crate) fn json(&self, words: &str) -> Vec<Value> {
        let printed = self.run_with(words, &["--json"]).good();
        printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Tells the process to end, and gives its exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let process = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &process]).status().expect("kill runs");
        assert!(told.success());
        self.child.wait().expect("it ends").code()
    }

    /// Kills the process, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A process that was ended by its test is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that goes on printing. Killed when it is dropped.
pub(crate) struct Talking {
    child: Child,
    lines: Lines<BufReader<Box<dyn Read>>>,
}

impl Talking {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("its output is ours");
        Self::of(child, Box::new(stdout))
    }

    /// The same for what it prints to standard error.
    pub(crate) fn spawn_for_remarks(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
        let stderr = child.stderr.take().expect("its remarks are ours");
        Self::of(child, Box::new(stderr))
    }

    fn of(child: Child, printed: Box<dyn Read>) -> Self {
        Self { child, lines: BufReader::new(printed).lines() }
    }

    /// It has ended by itself, and well.
    #[track_caller]
    pub(crate) fn end(mut self) {
        assert!(self.lines.next().is_none(), "nothing follows");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Iterator for Talking {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.lines.next().map(|line| line.expect("a line"))
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        // One that ended by itself is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An engine with a folder that ends with it.
pub(crate) fn fresh() -> (Engine, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (Engine::dev(folder.path()), folder)
}

/// Compares what was printed with the snapshot of that name; ids, times and how long ago things were are
/// masked.
#[track_caller]
pub(crate) fn compare(name: &str, printed: &str) {
    insta::with_settings!({
        filters => vec![
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            (r"\b(now|in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago)\b", "<when>"),
            (r"build=[0-9a-f]+", "build=<build>"),
            (r"127\.0\.0\.1:[1-9]\d*", "<address>"),
            (r"\d+ bytes", "<size> bytes"),
            (r" {2,}", "  "),
        ],
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, printed) });
}
