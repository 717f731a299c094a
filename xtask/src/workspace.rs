//! The workspace as cargo sees it: its root, its packages and their declared dependencies.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, de::DeserializeOwned};

use crate::problem::Problem;

/// Output of `cargo metadata`, as far as the chores need it.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Where cargo puts what it builds.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    /// The packages of the workspace.
    pub(crate) packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Where its `Cargo.toml` is, relative to the root.
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) version: String,
    /// Registries that may have it: `None` for all, empty for none.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) readme: Option<PathBuf>,
    pub(crate) rust_version: Option<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    /// Name of the package itself, even if the dependency is renamed.
    pub(crate) name: String,
    /// `None` for a normal dependency.
    pub(crate) kind: Option<DependencyKind>,
    /// The versions it allows; `*` if it names none.
    pub(crate) req: String,
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
        let mut workspace: Self = metadata(&["--no-deps"])?;
        for package in &mut workspace.packages {
            package.manifest_path = relative(&package.manifest_path, &workspace.root);
        }
        Ok(workspace)
    }

    /// Whether the workspace has a package of this name.
    pub(crate) fn has_package(&self, name: &str) -> bool {
        self.package(name).is_some()
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    /// Whether a release contains it.
    pub(crate) fn published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }
}

/// What `cargo metadata` says with these options.
pub(crate) fn metadata<T: DeserializeOwned>(options: &[&str]) -> Result<T, Problem> {
    let place = "cargo metadata";
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]).args(options);
    let output = command.output().map_err(|error| {
        Problem::new(place, format!("cannot start cargo: {error}"), "put cargo on the PATH")
    })?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Problem::new(place, reason, "correct the Cargo.toml that cargo names"));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        Problem::new(
            place,
            format!("cannot read the answer: {error}"),
            "use the Rust version that the root Cargo.toml names",
        )
    })
}

/// The cargo that runs this program, or else the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn relative(path: &Path, root: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_path_buf()
}
