//! This same program as another process, for measurements and crash tests.

use std::{env, io, process::Command};

/// This program without the `ABIDE_` variables of the environment, except `ABIDE_LOG`: a test must
/// not depend on the engine, namespace or configuration that the user works with otherwise.
pub fn own_process() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("ABIDE_") && name != "ABIDE_LOG" {
            command.env_remove(name);
        }
    }
    Ok(command)
}
