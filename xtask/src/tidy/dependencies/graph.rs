//! Every crate that a build for Linux contains, as `cargo metadata` sees it.

use std::fmt;

use serde::Deserialize;

use crate::{problem::Problem, workspace};

/// Crates of other platforms are not downloaded, so cargo cannot say anything of them.
const PLATFORM: &[&str] =
    &["--locked", "--all-features", "--filter-platform", "x86_64-unknown-linux-gnu"];

/// All crates.
#[derive(Debug, Deserialize)]
pub(crate) struct Graph {
    #[serde(rename = "packages")]
    crates: Vec<Crate>,
}

/// One version of a crate.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it comes from; `None` for our own.
    pub(crate) source: Option<String>,
}

impl Graph {
    /// Asks cargo about the workspace of the current folder.
    pub(crate) fn load() -> Result<Self, Problem> {
        workspace::metadata(PLATFORM)
    }

    pub(crate) fn crates(&self) -> impl Iterator<Item = &Crate> {
        self.crates.iter()
    }
}

impl fmt::Display for Crate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

#[cfg(test)]
impl Graph {
    pub(super) fn of(crates: Vec<Crate>) -> Self {
        Self { crates }
    }
}
