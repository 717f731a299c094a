//! The server: made in a folder of its own, stopped, started again.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::programs;

/// How a server is set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    durable: bool,
    settings: Vec<(String, String)>,
}

impl Setup {
    /// Syncs to the disk, as servers do that are not for tests. A killed server loses nothing without it;
    /// a machine without power would.
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Sets one of the server's settings.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes a server and starts it.
    pub fn start(&self) -> Result<Server, StartError> {
        Server::start(self)
    }

    fn options(&self, port: u16) -> String {
        let mut options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c max_wal_size=4GB -c checkpoint_timeout=15min -c fsync={}",
            if self.durable { "on" } else { "off" }
        );
        for (name, value) in &self.settings {
            options.push_str(&format!(" -c {name}={value}"));
        }
        options
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// PostgreSQL is not installed.
    #[error(
        "PostgreSQL's server programs (initdb, pg_ctl, postgres, psql) were not found in PATH, \
         /usr/lib/postgresql/*/bin or /usr/local/pgsql/bin: install the package postgresql"
    )]
    Missing,
    /// It does not start.
    #[error("PostgreSQL does not start: {0}")]
    Failed(String),
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Transactions are undone, connections closed, all is written.
    Fast,
    /// At once, as if it had crashed.
    Crash,
}

/// A server. It ends when this is dropped, and when the process ends.
pub struct Server {
    programs: PathBuf,
    user: Option<(&'static str, u32)>,
    folder: TempDir,
    port: u16,
    options: String,
    keeper: Child,
    /// The keeper ends the server when this is closed.
    leash: Option<ChildStdin>,
}

/// The user in the database.
const USER: &str = "abide";

/// Starts the server, says so, and ends it when nobody holds the other end of its input any more.
const KEEPER: &str = r#"
"$1/pg_ctl" start -w -s -D "$2/data" -l "$2/log" -o "$3" >&2 </dev/null || exit 1
echo ready
cat >/dev/null
"$1/pg_ctl" stop -s -m immediate -D "$2/data" >/dev/null 2>&1
cd / && rm -rf "$2"
"#;

/// How often another port is tried when somebody else took the free one.
const PORTS_TRIED: usize = 5;

impl Server {
    fn start(setup: &Setup) -> Result<Self, StartError> {
        let programs = programs::folder().ok_or(StartError::Missing)?;
        let user = programs::other_user();
        let failed = |error: std::io::Error| StartError::Failed(error.to_string());
        let folder = TempDir::with_prefix("abide-postgres-").map_err(failed)?;
        if let Some((_, number)) = user {
            chown(folder.path(), Some(number), None).map_err(failed)?;
        }
        let made = programs::command(programs.join("initdb"), user)
            .current_dir(folder.path())
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER, "-D"])
            .arg(folder.path().join("data"))
            .output();
        said(made)?;
        let mut reason = String::new();
        for _ in 0..PORTS_TRIED {
            let port = free_port().map_err(failed)?;
            let options = setup.options(port);
            match keep(&programs, user, folder.path(), &options) {
                Ok((keeper, leash)) => {
                    let leash = Some(leash);
                    return Ok(Self { programs, user, folder, port, options, keeper, leash });
                }
                Err(error) => reason = error,
            }
        }
        Err(StartError::Failed(reason))
    }

    /// Where it listens, on the loopback interface.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database and answers its address.
    ///
    /// # Panics
    /// If it is there already.
    pub fn database(&self, name: &str) -> String {
        self.query("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.address(name)
    }

    /// Runs SQL and answers what it says: rows as lines, columns with `|` between them.
    ///
    /// # Panics
    /// If the SQL fails.
    pub fn query(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .arg(self.address(database))
            .output();
        said(output).unwrap_or_else(|error| panic!("{error}")).trim_end().to_owned()
    }

    /// Stops the server; its data stays.
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

    /// A command for the shell that crashes the server and starts it again, for programs that have no
    /// hold of this.
    pub fn restart_command(&self) -> String {
        let mut command = programs::command(self.programs.join("pg_ctl"), self.user);
        command.args(["restart", "-w", "-s", "-m", "immediate", "-l"]);
        command.arg(self.folder.path().join("log")).arg("-D").arg(self.folder.path().join("data"));
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        // What is started keeps its output open, so nobody may wait for the end of it.
        format!("cd / && {} >/dev/null 2>&1", quoted.join(" "))
    }

    fn control(&self, arguments: &[&str]) {
        let status = programs::command(self.programs.join("pg_ctl"), self.user)
            .current_dir(self.folder.path())
            .args(arguments)
            .arg("-D")
            .arg(self.folder.path().join("data"))
            // What is started keeps its output open, so nobody may wait for the end of it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "pg_ctl {arguments:?} failed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.leash = None;
        // What could not be ended is ended by the system, with the folder.
        let _ = self.keeper.wait();
    }
}

/// Starts the keeper and waits until it says that the server is ready.
fn keep(
    programs: &Path,
    user: Option<(&str, u32)>,
    folder: &Path,
    options: &str,
) -> Result<(Child, ChildStdin), String> {
    let mut keeper = programs::command("/bin/sh", user)
        .current_dir(folder)
        .args(["-c", KEEPER, "keeper"])
        .arg(programs)
        .arg(folder)
        .arg(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (leash, output) = (keeper.stdin.take(), keeper.stdout.take());
    let mut line = String::new();
    let ready = output.is_some_and(|output| {
        BufReader::new(output).read_line(&mut line).is_ok() && line.trim() == "ready"
    });
    match leash {
        Some(leash) if ready => Ok((keeper, leash)),
        leash => {
            drop(leash);
            let mut reason = String::new();
            if let Some(mut errors) = keeper.stderr.take() {
                // Without a message there is still the log below.
                let _ = errors.read_to_string(&mut reason);
            }
            let _ = keeper.wait();
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            Err(format!("{reason}{log}"))
        }
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What a program wrote, or why it failed.
fn said(output: std::io::Result<Output>) -> Result<String, StartError> {
    let output = output.map_err(|error| StartError::Failed(error.to_string()))?;
    if !output.status.success() {
        return Err(StartError::Failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
