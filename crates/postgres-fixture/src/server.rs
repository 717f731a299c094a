//! The server and its standby: create, stop, start again, promote.

use std::{
    io,
    net::TcpListener,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::{Setup, keeper::Keeper, programs};

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// PostgreSQL is not installed.
    #[error(
        "PostgreSQL's programs (initdb, pg_basebackup, pg_ctl, postgres, psql) were not found in {}: \
         install the package postgresql, or let `cargo run -p abide-postgres-fixture` try",
        programs::PLACES
    )]
    Missing,
    /// The machine does not allow mounts, which a small disk needs.
    #[error("this machine allows no mounts, not even in a namespace of their own: {0}")]
    NoMounts(String),
    /// This build of PostgreSQL has no TLS.
    #[error("this PostgreSQL was built without TLS: install the package postgresql")]
    NoTls,
    #[error("PostgreSQL does not start: {0}")]
    Failed(String),
}

/// How to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Rolls back open transactions, closes connections and writes everything to disk.
    Fast,
    /// Stops at once, as in a crash.
    Crash,
}

/// A running server. It stops when this is dropped, and when the process exits.
pub struct Server {
    programs: PathBuf,
    user: Option<(&'static str, u32)>,
    setup: Setup,
    port: u16,
    options: String,
    /// Declared before the folder, so that the server stops before its data is removed.
    _keeper: Keeper,
    folder: TempDir,
}

const USER: &str = "abide";

/// How many free ports are tried, since another process may take one first.
const PORTS_TRIED: usize = 5;

impl Server {
    pub(crate) fn start(setup: &Setup) -> Result<Self, StartError> {
        let words = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER];
        Self::make(setup, "initdb", &words)
    }

    /// Creates the data folder with the given program and starts a server on it.
    fn make(setup: &Setup, program: &str, words: &[&str]) -> Result<Self, StartError> {
        let programs = programs::folder().ok_or(StartError::Missing)?;
        let user = programs::other_user();
        let number = user.map(|(_, number)| number);
        let failed = |error: io::Error| StartError::Failed(error.to_string());
        let folder = TempDir::with_prefix("abide-postgres-").map_err(failed)?;
        hand_over(folder.path(), number).map_err(failed)?;
        setup.write_files(folder.path(), number).map_err(failed)?;
        let mut make = vec![programs.join(program).display().to_string()];
        make.extend(words.iter().map(|word| (*word).to_owned()));
        make.extend(["-D".to_owned(), data(folder.path()).display().to_string()]);
        let mut reason = StartError::Failed(String::new());
        for _ in 0..PORTS_TRIED {
            let port = free_port().map_err(failed)?;
            let options = setup.options(folder.path(), port);
            let disk = setup.small_disk;
            match Keeper::start(&programs, user, folder.path(), (&options, &make), disk) {
                Ok(keeper) => {
                    let (setup, _keeper) = (setup.clone(), keeper);
                    let server = Self { programs, user, setup, port, options, _keeper, folder };
                    server.make_tablespace();
                    return Ok(server);
                }
                Err(error @ (StartError::NoMounts(_) | StartError::NoTls)) => return Err(error),
                Err(error) => reason = error,
            }
        }
        Err(reason)
    }

    fn make_tablespace(&self) {
        if self.setup.small_disk.is_some() {
            let place = self.folder.path().join("small").display().to_string();
            self.query("postgres", &format!("CREATE TABLESPACE small LOCATION '{place}'"));
        }
    }

    /// Creates and starts a standby that replicates this server until it is promoted.
    ///
    /// # Panics
    /// If it does not start.
    pub fn standby(&self) -> Self {
        let port = self.port.to_string();
        let words = ["-h", "127.0.0.1", "-p", &port, "-U", USER, "-R", "-c", "fast", "--no-sync"];
        let standby = Self::make(&self.setup, "pg_basebackup", &words);
        standby.unwrap_or_else(|error| panic!("{error}"))
    }

    /// From now on, commits are acknowledged only after a standby of this name has them. `*` stands
    /// for any standby, the empty name for none.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub fn commit_with_standby(&self, name: &str) {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
        self.query("postgres", &set);
        self.query("postgres", "SELECT pg_reload_conf()");
        // Once a new session sees the setting, the process that passes it on to all others has seen
        // it, and it applies settings before it handles its next request.
        while self.query("postgres", "SHOW synchronous_standby_names") != name {}
        self.query("postgres", "CHECKPOINT");
    }

    /// From now on, commits are acknowledged only after a standby has them. Returns when one has
    /// caught up.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub fn wait_for_standby(&self) {
        self.commit_with_standby("*");
        let waiting = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.query("postgres", waiting) == "0" {}
    }

    /// Promotes this standby to primary. Returns when it accepts writes.
    ///
    /// # Panics
    /// If the promotion fails.
    pub fn promote(&self) {
        self.control(&["promote", "-w", "-s"]);
    }

    /// Port on the loopback interface.
    pub const fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self, database: &str) -> String {
        let database = database.replace(' ', "%20");
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database and returns its address.
    ///
    /// # Panics
    /// If it already exists.
    pub fn database(&self, name: &str) -> String {
        self.query("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.address(name)
    }

    /// Runs SQL and returns its output: rows as lines, columns separated by `|`.
    ///
    /// # Panics
    /// If the SQL fails.
    pub fn query(&self, database: &str, sql: &str) -> String {
        self.try_query(database, sql).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Self::query`], but returns the error.
    pub fn try_query(&self, database: &str, sql: &str) -> Result<String, StartError> {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(self.address(database))
            .output();
        Ok(checked(output)?.trim_end().to_owned())
    }

    /// Stops the server and keeps its data.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Crash => "immediate",
        };
        self.control(&["stop", "-w", "-s", "-m", mode]);
    }

    /// Starts the server again on the same port.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        let log = self.folder.path().join("log");
        let log = log.to_string_lossy();
        self.control(&["start", "-w", "-s", "-l", &log, "-o", &self.options]);
    }

    /// Shell command that crashes the server and starts it again, for programs that do not hold
    /// this handle.
    pub fn restart_command(&self) -> String {
        let mut command = self.command("pg_ctl", &["restart", "-w", "-s", "-m", "immediate", "-l"]);
        command.arg(self.folder.path().join("log")).arg("-D").arg(data(self.folder.path()));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // The started server keeps its output open, so the output has no end to wait for.
        format!("cd / && {} >/dev/null 2>&1", quoted.join(" "))
    }

    /// Starts the server again as a standby of another one, which was promoted from its history.
    ///
    /// # Panics
    /// If it does not start.
    pub fn follow(&self, primary: &Self) {
        let (folder, port) = (self.folder.path(), primary.port);
        let rewound = self.run(
            "pg_rewind",
            &[
                &format!("--source-server=host=127.0.0.1 port={port} user={USER} dbname=postgres"),
                "--target-pgdata",
                &data(folder).display().to_string(),
                "-R",
                "--no-sync",
            ],
        );
        checked(rewound).unwrap_or_else(|error| panic!("{error}"));
        self.start_again();
    }

    fn control(&self, arguments: &[&str]) {
        let data = data(self.folder.path()).display().to_string();
        // The started server keeps its output open, so the output has no end to wait for.
        let status = self
            .command("pg_ctl", arguments)
            .args(["-D", &data])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "pg_ctl {arguments:?} failed");
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
        self.command(program, arguments).output()
    }

    /// One of PostgreSQL's programs, run as the user of the server.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut words = programs::prefix(self.user);
        words.push(self.programs.join(program).display().to_string());
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut command = programs::command(&words);
        command.current_dir(self.folder.path());
        command
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Gives a file to the user of the server, if that is not the current user.
pub(crate) fn hand_over(path: &Path, user: Option<u32>) -> io::Result<()> {
    user.map_or(Ok(()), |number| chown(path, Some(number), None))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Output of a program, or why it failed.
fn checked(output: io::Result<Output>) -> Result<String, StartError> {
    let output = output.map_err(|error| StartError::Failed(error.to_string()))?;
    if !output.status.success() {
        return Err(StartError::Failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
