//! This same program as another process, for measurements and crash tests.

use std::{env, io, process::Command};

/// This program, without what the environment says to it: a test is not to depend on which engine,
/// namespace or configuration somebody uses otherwise.
pub(crate) fn own_process() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("ABIDE_") && name != "ABIDE_LOG" {
            command.env_remove(name);
        }
    }
    Ok(command)
}
