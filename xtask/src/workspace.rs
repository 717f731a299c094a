//! The workspace as cargo sees it: its root, its packages and their declared dependencies.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::problem::Problem;

/// Output of `cargo metadata`, as far as the chores need it.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// The packages of the workspace.
    pub(crate) packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where its `Cargo.toml` is, relative to the root.
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// Name of the package itself, even if the dependency is renamed.
    pub(crate) name: String,
    /// `None` for a normal dependency.
    pub(crate) kind: Option<DependencyKind>,
}

/// A dependency that is not linked into the package itself.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    /// For tests, examples and benchmarks.
    Dev,
    /// For the build script.
    Build,
}

impl Workspace {
    /// Asks cargo about the workspace of the current folder.
    pub(crate) fn load() -> Result<Self, Problem> {
        let arguments = ["metadata", "--format-version", "1", "--no-deps"];
        let place = "cargo metadata";
        let output = cargo().args(arguments).output().map_err(|error| {
            Problem::new(place, format!("cannot start cargo: {error}"), "put cargo on the PATH")
        })?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Problem::new(place, reason, "correct the Cargo.toml that cargo names"));
        }
        let mut workspace: Self = serde_json::from_slice(&output.stdout).map_err(|error| {
            Problem::new(
                place,
                format!("cannot read the answer: {error}"),
                "use the Rust version that the root Cargo.toml names",
            )
        })?;
        for package in &mut workspace.packages {
            package.manifest_path = relative(&package.manifest_path, &workspace.root);
        }
        Ok(workspace)
    }

    /// Whether the workspace has a package of this name.
    pub(crate) fn has_package(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }
}

/// The cargo that runs this program, or else the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn relative(path: &Path, root: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_path_buf()
}
