//! Keeps a server running for as long as the test process lives. A shell creates the data folder,
//! starts the server, and stops it at the end of its standard input: that comes when the test
//! process exits for any reason, a kill included.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdin, Stdio},
};

use crate::{StartError, programs};

/// Handle of the shell. Dropping it stops the server.
pub(crate) struct Keeper {
    shell: Child,
    /// Standard input of the shell; the server stops when it is closed.
    leash: Option<ChildStdin>,
}

/// Ignores signals: a terminal, or a timeout that kills a test, signals the whole process group,
/// but this shell must still stop the server.
const KEEP: &str = r#"
trap '' INT TERM HUP
programs="$1" folder="$2" options="$3"
shift 3
[ -d "$folder/data" ] || "$@" >&2 </dev/null || exit 1
"$programs/pg_ctl" start -w -s -D "$folder/data" -l "$folder/log" -o "$options" >&2 </dev/null || exit 1
echo ready
cat >/dev/null
"$programs/pg_ctl" stop -s -m immediate -D "$folder/data" >/dev/null 2>&1
cd / && rm -rf "$folder"
"#;

/// Mounts the small disk, then runs the rest. The mount is private to this process tree and
/// disappears with it.
const MOUNT: &str = r#"
mkdir "$1/small" && mount -t tmpfs -o "size=$2m,mode=700$3" none "$1/small" || { echo no mounts >&2; exit 1; }
shift 3
exec "$@"
"#;

impl Keeper {
    /// Creates the data folder with the given command, starts a server with these options, and
    /// waits until it is ready.
    pub(crate) fn start(
        programs: &Path,
        user: Option<(&str, u32)>,
        folder: &Path,
        (options, make): (&str, &[String]),
        small_disk: Option<u32>,
    ) -> Result<Self, StartError> {
        let place = folder.display().to_string();
        let mut words = mounted(small_disk, user, &place);
        words.extend(programs::prefix(user));
        words.extend(["/bin/sh", "-c", KEEP, "keeper"].map(str::to_owned));
        words.extend([programs.display().to_string(), place, options.to_owned()]);
        words.extend_from_slice(make);
        let shell = programs::command(&words)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| StartError::Failed(error.to_string()))?;
        let mut keeper = Self { shell, leash: None };
        keeper.leash = keeper.shell.stdin.take();
        if keeper.is_ready() {
            Ok(keeper)
        } else {
            Err(keeper.reason(folder, small_disk.is_some()))
        }
    }

    fn is_ready(&mut self) -> bool {
        let mut line = String::new();
        self.shell.stdout.take().is_some_and(|output| {
            BufReader::new(output).read_line(&mut line).is_ok() && line.trim() == "ready"
        })
    }

    /// Error that says why the server did not start.
    fn reason(mut self, folder: &Path, mounts: bool) -> StartError {
        self.leash = None;
        let mut reason = String::new();
        if let Some(mut errors) = self.shell.stderr.take() {
            // The log, read below, helps even without a message.
            let _ = errors.read_to_string(&mut reason);
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        if mounts && (reason.contains("no mounts") || reason.contains("unshare")) {
            return StartError::NoMounts(reason);
        }
        if log.contains("SSL is not supported by this build") {
            return StartError::NoTls;
        }
        StartError::Failed(format!("{reason}{log}"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.leash = None;
        // Errors are ignored: the system cleans up what is left.
        let _ = self.shell.wait();
    }
}

/// Command prefix that gives the shell a small disk.
fn mounted(small_disk: Option<u32>, user: Option<(&str, u32)>, folder: &str) -> Vec<String> {
    let Some(megabytes) = small_disk else { return Vec::new() };
    let namespaces: &[&str] = if programs::is_root() {
        &["--mount"]
    } else {
        &["--map-current-user", "--keep-caps", "--mount"]
    };
    let owner = user.map_or_else(String::new, |(_, number)| format!(",uid={number}"));
    let mut words = vec!["unshare".to_owned()];
    words.extend(namespaces.iter().map(|word| (*word).to_owned()));
    words.extend(["/bin/sh", "-c", MOUNT, "mount", folder].map(str::to_owned));
    words.extend([megabytes.to_string(), owner]);
    words
}
