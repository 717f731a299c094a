//! The processes that faults happen to: this same binary, as a server and as a worker. Each can be
//! killed, frozen, told to stop, and restarted at the same address.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write as _},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use abide_command::own_process;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpSocket,
    process::{Child, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

/// How long a process may take to become ready, or to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a process is started.
pub(crate) struct Launch {
    /// Name in logs and findings.
    pub(crate) name: String,
    /// Arguments of the program.
    pub(crate) arguments: Vec<OsString>,
    /// Environment variables, for values that other users of the machine must not see.
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// A process that is alive until dropped, except while a fault has stopped it.
pub(crate) struct Process {
    launch: Launch,
    log: PathBuf,
    child: Option<Child>,
    ready: watch::Receiver<bool>,
}

impl Process {
    /// Starts the process. Its output goes to a file in `folder`, for when something is found.
    pub(crate) fn start(folder: &Path, launch: Launch) -> io::Result<Self> {
        let log = folder.join(format!("{}.log", launch.name));
        let mut process = Self { launch, log, child: None, ready: watch::channel(false).1 };
        process.start_again()?;
        Ok(process)
    }

    pub(crate) fn name(&self) -> &str {
        &self.launch.name
    }

    /// Restarts the process after it was killed or has ended.
    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::from(own_process()?);
        command.args(&self.launch.arguments).envs(self.launch.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
        let mut child = command.kill_on_drop(true).spawn()?;
        let (say_ready, ready) = watch::channel(false);
        if let Some(output) = child.stdout.take() {
            tokio::spawn(write_down(output, log, say_ready));
        }
        self.child = Some(child);
        self.ready = ready;
        Ok(())
    }

    /// Waits until the process has reported that it is ready.
    pub(crate) async fn ready(&mut self) -> io::Result<()> {
        let said = timeout(PATIENCE, self.ready.wait_for(|ready| *ready)).await;
        match said.map(|ready| ready.is_ok()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::other(format!(
                "{} ended before it was ready; the last line of its log: {}",
                self.name(),
                last_line(&self.log)
            ))),
            Err(_) => Err(self.late("is not ready")),
        }
    }

    /// SIGKILL: the process cannot clean up.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    /// SIGTERM, and waits for the end.
    pub(crate) async fn terminate(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let Some(mut child) = self.child.take() else { return Err(self.gone()) };
        timeout(PATIENCE, child.wait()).await.map_err(|_| self.late("has not ended"))?
    }

    /// SIGSTOP: the process stands still in the middle of what it does, with all its connections.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT: the process continues without knowing that time has passed.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Its exit status if it ended by itself, which no process should.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), Child::try_wait)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let number = self.child.as_ref().and_then(Child::id).and_then(|id| i32::try_from(id).ok());
        let pid = number.and_then(Pid::from_raw).ok_or_else(|| self.gone())?;
        Ok(kill_process(pid, signal)?)
    }

    fn gone(&self) -> io::Error {
        io::Error::other(format!("{} does not run", self.name()))
    }

    fn late(&self, what: &str) -> io::Error {
        io::Error::other(format!("{} {what} after {PATIENCE:?}", self.name()))
    }
}

/// Writes the output of a process to its log. The first line says that it is ready.
async fn write_down(output: ChildStdout, mut log: File, ready: watch::Sender<bool>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // A log that cannot be written is missed only when something is found.
        drop(writeln!(log, "{line}"));
        ready.send_replace(true);
    }
}

/// The last line of a log, or why there is none.
fn last_line(log: &Path) -> String {
    match std::fs::read_to_string(log) {
        Ok(text) => text.lines().last().unwrap_or("it is empty").to_owned(),
        Err(error) => error.to_string(),
    }
}

/// A port for a process that binds it again after each restart. The socket is bound but does not
/// listen: no other program is given the port meanwhile, and the process can still bind it.
pub(crate) struct ReservedPort(TcpSocket);

impl ReservedPort {
    pub(crate) fn reserve() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self(socket))
    }

    pub(crate) fn address(&self) -> io::Result<String> {
        Ok(self.0.local_addr()?.to_string())
    }
}
