//! The processes that are killed: this same binary, as a server and as a worker.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fastrand::Rng;

const CONFIG: &str = "abide.toml";

/// Attempts of a killed worker go to the next one soon. With the default the server would be killed
/// again before the grace is over, so that many journeys would only wait.
const WORKER_GRACE: &str = "worker_grace_ms = 300\n";

/// Which process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// The engine.
    Server,
    /// The worker.
    Worker,
}

/// A server and a worker, alive until this is dropped.
pub(super) struct Processes {
    binary: PathBuf,
    folder: PathBuf,
    address: String,
    http: String,
    server: Child,
    worker: Child,
}

impl Processes {
    /// Starts both, on free ports, with everything they write in `folder`.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let binary = std::env::current_exe()?;
        let (address, http) = (free_address()?, free_address()?);
        let folder = folder.to_owned();
        std::fs::write(folder.join(CONFIG), WORKER_GRACE)?;
        let server = spawn(&mut serve(&binary, &folder, &address, &http), &folder, "server")?;
        let worker = spawn(&mut work(&binary, &folder, &address), &folder, "worker")?;
        Ok(Self { binary, folder, address, http, server, worker })
    }

    /// Where clients connect.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills one of them without warning and starts it again.
    pub(super) fn kill(&mut self, victim: Victim) -> io::Result<()> {
        let Self { binary, folder, address, http, .. } = self;
        let (child, mut command, name) = match victim {
            Victim::Server => (&mut self.server, serve(binary, folder, address, http), "server"),
            Victim::Worker => (&mut self.worker, work(binary, folder, address), "worker"),
        };
        end(child)?;
        *child = spawn(&mut command, folder, name)?;
        Ok(())
    }

    /// What ended by itself, which nothing should.
    pub(super) fn ended(&mut self) -> io::Result<Option<Victim>> {
        for (child, victim) in
            [(&mut self.server, Victim::Server), (&mut self.worker, Victim::Worker)]
        {
            if child.try_wait()?.is_some() {
                return Ok(Some(victim));
            }
        }
        Ok(None)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in [&mut self.worker, &mut self.server] {
            // It may have ended already.
            drop(end(child));
        }
    }
}

/// Which process is killed next: both as often, in random order.
pub(super) fn choose(rng: &mut Rng, left: [u32; 2]) -> Victim {
    match left {
        [_, 0] => Victim::Server,
        [0, _] => Victim::Worker,
        _ if rng.bool() => Victim::Server,
        _ => Victim::Worker,
    }
}

/// SIGKILL: the process has no chance to say goodbye.
fn end(child: &mut Child) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

fn serve(binary: &Path, folder: &Path, address: &str, http: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["serve", "--address", address, "--http", http, "--data"]);
    command.arg(folder.join("data")).arg("--config").arg(folder.join(CONFIG));
    command
}

fn work(binary: &Path, folder: &Path, address: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["crash-test", "--work", "--address", address, "--folder"]).arg(folder);
    command
}

/// What the process says goes to a file, for when something is found.
fn spawn(command: &mut Command, folder: &Path, name: &str) -> io::Result<Child> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(format!("{name}.log")))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// A port that was free a moment ago, and stays ours over restarts.
fn free_address() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// Where the worker writes down its attempts.
pub(super) fn ledger_of(folder: &Path) -> PathBuf {
    folder.join("ledger.jsonl")
}
