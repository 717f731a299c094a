//! A real server in its own process: this same program, started again as `serve`.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use abide_server::Config;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tonic::transport::{Channel, Endpoint};

use crate::{Bytes, Finding, Honest, Machine, serve::SERVE, small_disk::SmallDisk};

/// How long a server may take to be ready, and to answer its probes. Beside many builds, a minute is not
/// enough to start.
const PATIENCE: Duration = Duration::from_secs(240);

/// How a server is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) machine: Machine,
    /// The disk of its own that it sees.
    pub(crate) disk: Option<&'a SmallDisk>,
}

/// A server process. It is killed when dropped.
#[derive(Debug)]
pub struct Victim {
    process: Child,
    /// Sets its clock.
    input: ChildStdin,
    /// Kept open, so that the server's output keeps a reader.
    _output: BufReader<ChildStdout>,
    pid: u32,
    grpc: SocketAddr,
    http: SocketAddr,
    log: PathBuf,
    machine: Machine,
}

impl Victim {
    /// Starts a server whose configuration and log are files with this name.
    pub(crate) async fn start(
        name: &Path,
        config: &Config,
        launch: Launch<'_>,
    ) -> Result<Self, Finding> {
        let (config_file, log) = (name.with_extension("toml"), name.with_extension("log"));
        // A serialised configuration lacks the password of the store's address.
        let store = config.store.as_ref().map(|store| format!("store = {:?}\n", store.0));
        let rest = toml::to_string(&Config { store: None, ..config.clone() })?;
        fs::write(&config_file, store.unwrap_or_default() + &rest)?;
        let program = std::env::current_exe()?;
        let mut command =
            launch.disk.map_or_else(|| Command::new(&program), |disk| disk.command(&program));
        let mut process = command
            .arg(SERVE)
            .arg(&config_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(said)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Finding::new("no output to read"));
        };
        let mut output = BufReader::new(said);
        let mut line = String::new();
        let ready = timeout(PATIENCE, output.read_line(&mut line)).await;
        ready
            .map_err(|_| Finding::new(format!("the server is not ready after {PATIENCE:?}")))??;
        let mut addresses = line.split_whitespace().map(str::parse);
        let (Some(Ok(grpc)), Some(Ok(http))) = (addresses.next(), addresses.next()) else {
            let log = fs::read_to_string(&log)?;
            return Err(Finding::new(format!("the server did not start: {line}{log}")));
        };
        let pid = process.id().ok_or_else(|| Finding::new("the server ended at once"))?;
        let machine = launch.machine;
        Ok(Self { process, input, _output: output, pid, grpc, http, log, machine })
    }

    /// Sets the clock of the server ahead of the machine's clock by so many seconds.
    pub async fn set_clock_ahead(&mut self, seconds: u64) -> Result<(), Finding> {
        self.input.write_all(format!("{seconds}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    /// Address of its gRPC listener.
    pub const fn address(&self) -> SocketAddr {
        self.grpc
    }

    /// Address of its HTTP listener.
    pub const fn http_address(&self) -> SocketAddr {
        self.http
    }

    /// Whether the machine that it runs on is shared.
    pub const fn machine(&self) -> Machine {
        self.machine
    }

    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Resident memory of the process; zero where the system does not report it.
    pub fn rss(&self) -> Bytes {
        self.status("VmRSS:")
    }

    /// Peak of the resident memory.
    pub fn peak_rss(&self) -> Bytes {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Bytes {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        Bytes(kilobytes.unwrap_or(0_u64) * 1024)
    }

    /// Everything that the process has logged.
    pub fn log(&self) -> String {
        fs::read(&self.log).map_or_else(
            |error| format!("the log cannot be read: {error}"),
            |log| String::from_utf8_lossy(&log).into_owned(),
        )
    }

    /// Opens a new connection to the server.
    pub async fn channel(&self) -> Result<Channel, Finding> {
        Ok(self.endpoint()?.connect().await?)
    }

    fn endpoint(&self) -> Result<Endpoint, Finding> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc))?;
        Ok(endpoint.connect_timeout(PATIENCE))
    }

    /// An honest client on its own connection.
    pub async fn honest(&self) -> Result<Honest, Finding> {
        Honest::connect(self.endpoint()?).await
    }

    /// The HTTP listener's answer to a path such as `/metrics`.
    pub async fn get(&self, path: &str) -> Result<String, Finding> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: victim\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        let asked = async {
            let mut stream = TcpStream::connect(self.http).await?;
            stream.write_all(request.as_bytes()).await?;
            stream.read_to_string(&mut answer).await
        };
        let answered = timeout(PATIENCE, asked).await;
        answered.map_err(|_| Finding::new(format!("{path} hangs for {PATIENCE:?}")))??;
        Ok(answer)
    }

    /// A finding if the process has ended, or if anything in it has panicked.
    pub fn check(&mut self) -> Result<(), Finding> {
        let log = self.log();
        if let Some(status) = self.process.try_wait()? {
            let end: Vec<_> = log.lines().rev().take(5).collect();
            let end = end.into_iter().rev().collect::<Vec<_>>().join("\n");
            return Err(Finding::new(format!("the server died ({status}): {end}")));
        }
        match log.lines().find(|line| line.contains("panicked at")) {
            Some(line) => Err(Finding::new(format!("the server panicked: {line}"))),
            None => Ok(()),
        }
    }

    /// Checks it a last time, and kills it.
    pub async fn end(mut self) -> Result<(), Finding> {
        self.check()?;
        Ok(self.process.kill().await?)
    }
}
