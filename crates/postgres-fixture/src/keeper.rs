//! Keeps a server until nobody needs it: a shell that makes the data, starts the server, and ends it when
//! nobody holds the other end of the shell's input any more, in whatever way the holder ended.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdin, Stdio},
};

use crate::{StartError, programs};

/// The shell. The server ends when this is dropped.
pub(crate) struct Keeper {
    shell: Child,
    /// Ends the server when it is closed.
    leash: Option<ChildStdin>,
}

/// A terminal that ends a test, and whoever ends it after its time, tell all its processes to end. This one
/// has work left then.
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

/// Mounts the small disk and becomes the rest. The mount is seen by nobody else and goes with its last user.
const MOUNT: &str = r#"
mkdir "$1/small" && mount -t tmpfs -o "size=$2m,mode=700$3" none "$1/small" || { echo no mounts >&2; exit 1; }
shift 3
exec "$@"
"#;

impl Keeper {
    /// Starts a server with these options on data that the words make, and waits until it is ready.
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

    /// Why the server did not start.
    fn reason(mut self, folder: &Path, mounts: bool) -> StartError {
        self.leash = None;
        let mut reason = String::new();
        if let Some(mut errors) = self.shell.stderr.take() {
            // Without a message there is still the log below.
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
        // What could not be ended is ended by the system, with the folder.
        let _ = self.shell.wait();
    }
}

/// What stands before the shell, so that it sees a small disk.
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
