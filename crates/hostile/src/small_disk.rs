//! A small file system in memory that only the servers on it see, so that it can be full. Another process
//! holds it, so that a server can be started on it again.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::Finding;

/// Ways to a mount namespace: the options of `unshare` that create it, and those of `nsenter` that enter
/// it. The second needs no rights.
const WAYS: [(&[&str], &[&str]); 2] = [
    (&["--mount"], &["--mount"]),
    (&["--user", "--map-root-user", "--mount"], &["--user", "--preserve-credentials", "--mount"]),
];

/// A mounted disk. It is gone when dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    _holder: Child,
    pid: u32,
    place: PathBuf,
    enter: &'static [&'static str],
}

impl SmallDisk {
    /// Mounts a disk of this size at a place; the inner error says why this machine does not allow it.
    pub(crate) async fn mount(place: &Path, mb: u32) -> Result<Result<Self, String>, Finding> {
        fs::create_dir_all(place)?;
        let mut refused = String::new();
        for (unshare, enter) in WAYS {
            let script =
                format!("mount -t tmpfs -o size={mb}m none \"$0\" && echo mounted && exec cat");
            let mut command = Command::new("unshare");
            command.args(unshare).args(["sh", "-c", &script]).arg(place);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut holder = match command.kill_on_drop(true).spawn() {
                Ok(holder) => holder,
                Err(error) => return Ok(Err(format!("unshare: {error}"))),
            };
            let (Some(said), Some(mut complained), Some(pid)) =
                (holder.stdout.take(), holder.stderr.take(), holder.id())
            else {
                return Err(Finding::new("no output to read"));
            };
            let mut line = String::new();
            BufReader::new(said).read_line(&mut line).await?;
            if line == "mounted\n" {
                return Ok(Ok(Self { _holder: holder, pid, place: place.to_owned(), enter }));
            }
            refused.clear();
            complained.read_to_string(&mut refused).await?;
        }
        Ok(Err(refused.trim().to_owned()))
    }

    /// A command that runs a program where the disk is.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.enter).arg("--target").arg(self.pid.to_string());
        command.arg("--").arg(program);
        command
    }

    /// Fills the disk to the last page, until the returned file is removed.
    pub(crate) fn fill(&self) -> io::Result<PathBuf> {
        let place = self.place.strip_prefix("/").unwrap_or(&self.place);
        let path = Path::new("/proc").join(self.pid.to_string()).join("root").join(place);
        let path = path.join("ballast");
        let mut file = File::create(&path)?;
        loop {
            match file.write_all(&[0; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(path),
                Err(error) => return Err(error),
            }
        }
    }
}
