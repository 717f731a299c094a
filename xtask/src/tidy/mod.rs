//! Checks of the source tree. One file per check; each is a function of the files or the packages
//! and returns what it finds. A test runs them all, so `cargo test` covers them. Nothing here
//! changes a file, except [`golden::record`] and
//! [`api::record`].

pub(crate) mod api;
mod arrows;
mod banned_words;
pub(crate) mod dependencies;
mod examples;
pub(crate) mod golden;
mod markdown;
mod module_docs;
mod promises;
mod publishing;
mod sizes;

use crate::{
    comparison,
    files::{self, File},
    output,
    problem::Problem,
    tidy::dependencies::graph::Graph,
    workspace::Workspace,
};

type FileCheck = fn(&[File]) -> Vec<Problem>;

/// Checks on files, by name.
const FILE_CHECKS: &[(&str, FileCheck)] = &[
    ("module docs", module_docs::check),
    ("sizes", sizes::check),
    ("golden files", golden::check),
    ("banned words", banned_words::check),
    ("markdown", markdown::check),
    ("examples", examples::check),
    ("public api", api::check),
    ("comparison", comparison::check),
];

/// Runs all checks and prints the result of each.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for (name, found) in check(workspace)? {
        output::line(&format!("tidy: {name}: {}", summary(found.len())));
        problems.extend(found);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Name and findings of each check.
fn check(workspace: &Workspace) -> Result<Vec<(&'static str, Vec<Problem>)>, Problem> {
    let files = files::read(&workspace.root)?;
    let mut found = vec![("crate arrows", arrows::check(&workspace.packages))];
    found.push(("publishing", publishing::check(&workspace.packages, &files)));
    found.push(("dependencies", dependencies::check(&Graph::load()?, &files)));
    found.push(("promises", promises::check(&workspace.root, &files)));
    found.extend(FILE_CHECKS.iter().map(|(name, check)| (*name, check(&files))));
    Ok(found)
}

fn summary(count: usize) -> String {
    match count {
        0 => "ok".to_owned(),
        1 => "1 problem".to_owned(),
        _ => format!("{count} problems"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let found = check(&Workspace::load().unwrap()).unwrap();
        let problems: Vec<String> =
            found.iter().flat_map(|(_, problems)| problems).map(Problem::to_string).collect();
        assert!(problems.is_empty(), "{}:\n{}", summary(problems.len()), problems.join("\n"));
    }
}
