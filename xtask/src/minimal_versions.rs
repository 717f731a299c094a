//! `cargo xtask minimal-versions`: whether the versions that our Cargo.toml files name suffice. It builds a
//! copy of the tree in the target folder with the oldest version of each direct dependency. It needs
//! the registry, so the test command leaves it out.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    files::{self, File},
    output,
    problem::Problem,
    workspace::{self, Workspace},
};

/// Folder of the copy and of its build, below the target folder.
const COPY: &str = "minimal-versions";

/// Resolves and compiles the copy.
pub(crate) fn run() -> Result<(), Vec<Problem>> {
    let Workspace { root, target, .. } = Workspace::load()?;
    let copy = target.join(COPY);
    write(&copy.join("tree"), &files::read(&root)?).map_err(|error| {
        Problem::new(copy.display().to_string(), error.to_string(), "make the folder writable")
    })?;
    // The option is not stable, and the compiler accepts it from those who say that they know.
    let mut update = cargo_in(&copy);
    update.env("RUSTC_BOOTSTRAP", "1").args(["update", "-Z", "direct-minimal-versions"]);
    perform(update, "name a newer version in the root Cargo.toml: another crate needs it")?;
    let mut check = cargo_in(&copy);
    check.args(["check", "--workspace", "--all-features", "--locked"]);
    perform(check, "name the version in the root Cargo.toml that has what the error names")?;
    output::line("minimal-versions: the oldest versions that the Cargo.toml files name suffice");
    Ok(())
}

/// Writes the files and removes what an earlier copy left.
fn write(tree: &Path, files: &[File]) -> std::io::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    for file in files {
        let path: PathBuf = tree.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(tree))?;
        fs::write(path, &file.content)?;
    }
    Ok(())
}

fn cargo_in(copy: &Path) -> Command {
    let mut cargo = workspace::cargo();
    cargo.current_dir(copy.join("tree")).env("CARGO_TARGET_DIR", copy.join("build"));
    cargo
}

fn perform(mut command: Command, fix: &'static str) -> Result<(), Problem> {
    let failed = |why: String| Problem::new("cargo xtask minimal-versions", why, fix);
    let status = command.status().map_err(|error| failed(format!("cannot start: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("cargo failed with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_and_nothing_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        write(&tree, &[File::new("a/old.txt", "old")]).unwrap();
        write(&tree, &[File::new("a/b/new.txt", "new")]).unwrap();
        assert_eq!(fs::read(tree.join("a/b/new.txt")).unwrap(), b"new");
        assert!(!tree.join("a/old.txt").exists());
    }
}
