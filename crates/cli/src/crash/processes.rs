//! The processes that are killed: this same binary, as a server and as a worker.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use fastrand::Rng;

use crate::{failed::Failed, own_process::own_process};

const CONFIG: &str = "abide.toml";
const DATA: &str = "data";

/// Attempts of a killed worker go to the next one soon. With the default the server would be killed
/// again before the grace is over, so that many journeys would only wait.
const WORKER_GRACE: &str = "worker_grace_ms = 300\n";

/// Which process, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// The engine.
    Server,
    /// The worker.
    Worker,
    /// Both at once, as when the machine loses its power.
    Both,
}

impl Victim {
    /// The engine is killed.
    pub(super) const fn has_server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }

    /// The worker is killed.
    pub(super) const fn has_worker(self) -> bool {
        matches!(self, Self::Worker | Self::Both)
    }
}

/// A server and a worker, alive until this is dropped.
pub(super) struct Processes {
    folder: PathBuf,
    address: String,
    http: String,
    server: Child,
    worker: Child,
}

impl Processes {
    /// Starts both, on free ports, with everything they write in `folder`.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        let (address, http) = (free_address()?, free_address()?);
        let folder = folder.to_owned();
        std::fs::write(folder.join(CONFIG), WORKER_GRACE)?;
        let server = spawn(&mut serve(&folder, &address, &http)?, &folder, "server")?;
        let worker = spawn(&mut work(&folder, &address)?, &folder, "worker")?;
        Ok(Self { folder, address, http, server, worker })
    }

    /// Where clients connect.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Kills without warning, and starts again what was killed.
    pub(super) fn kill(&mut self, victim: Victim) -> io::Result<()> {
        if victim.has_server() {
            end(&mut self.server)?;
        }
        if victim.has_worker() {
            end(&mut self.worker)?;
        }
        let Self { folder, address, http, .. } = self;
        if victim.has_server() {
            let mut command = serve(folder, address, http)?;
            self.server = spawn(&mut command, folder, "server")?;
        }
        if victim.has_worker() {
            self.worker = spawn(&mut work(folder, address)?, folder, "worker")?;
        }
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

/// Which process is killed next: each as often as the other, in random order, now and then both.
pub(super) fn choose(rng: &mut Rng, left: [u32; 2]) -> Victim {
    match left {
        [_, 0] => Victim::Server,
        [0, _] => Victim::Worker,
        _ => match rng.u8(0..5) {
            0 => Victim::Both,
            1 | 2 => Victim::Server,
            _ => Victim::Worker,
        },
    }
}

/// Makes the folder. One that was used before is refused: its runs and its ledger would be mistaken
/// for those of this test.
pub(super) fn prepare(folder: &Path) -> Result<(), Failed> {
    let place = folder.display();
    if folder.join(DATA).exists() || ledger_of(folder).exists() {
        return Err(Failed::usage(format_args!("{place} is the folder of an earlier crash test"))
            .hint("name a new folder, or leave --folder out"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Failed::usage(format_args!("the folder {place} cannot be made: {error}")))
}

/// SIGKILL: the process has no chance to say goodbye.
fn end(child: &mut Child) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

fn serve(folder: &Path, address: &str, http: &str) -> io::Result<Command> {
    let mut command = own_process()?;
    command.args(["serve", "--address", address, "--http", http, "--data"]);
    command.arg(folder.join(DATA)).arg("--config").arg(folder.join(CONFIG));
    Ok(command)
}

fn work(folder: &Path, address: &str) -> io::Result<Command> {
    let mut command = own_process()?;
    command.args(["crash-test", "--work", "--address", address, "--folder"]).arg(folder);
    Ok(command)
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
