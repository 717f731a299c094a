//! `cargo xtask package`: the packages of a release, as a registry would get them, each compiled from its
//! archive. `cargo xtask test` makes the archives too and leaves the compiling out.

use std::time::Instant;

use crate::{
    problem::Problem,
    test_command::{Step, perform},
    workspace::Workspace,
};

/// Makes the archives without a network and without compiling them.
pub(crate) const QUICK: [&str; 2] = ["--no-verify", "--offline"];

/// Makes all archives and compiles each.
pub(crate) fn run(options: &[&str]) -> Result<(), Vec<Problem>> {
    let arguments = arguments(&Workspace::load()?, options);
    Ok(perform(&step(arguments), Instant::now())?)
}

pub(crate) fn step(arguments: Vec<String>) -> Step {
    Step {
        name: "packages",
        arguments,
        fix: "a package holds `src` and what its Cargo.toml includes; nothing else of the tree is there",
    }
}

/// What cargo is told. It would package test rigs too, which depend on crates without a version.
pub(crate) fn arguments(workspace: &Workspace, options: &[&str]) -> Vec<String> {
    let fixed = ["package", "--workspace", "--locked", "--allow-dirty", "--quiet"];
    let at_home = workspace.packages.iter().filter(|package| !package.published());
    let excluded = at_home.flat_map(|package| ["--exclude", package.name.as_str()]);
    fixed.into_iter().chain(excluded).chain(options.iter().copied()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use crate::workspace::Package;

    use super::*;

    #[test]
    fn what_stays_at_home_is_not_packaged() {
        let rig =
            Package { publish: Some(Vec::new()), name: "rig".to_owned(), ..Package::default() };
        let packages = vec![Package::default(), rig];
        let workspace = Workspace { root: "".into(), target: "".into(), packages };
        assert_eq!(
            arguments(&workspace, &["--no-verify"]).join(" "),
            "package --workspace --locked --allow-dirty --quiet --exclude rig --no-verify"
        );
    }
}
