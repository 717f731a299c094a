//! Whether everything that Abide is built from may be: its licence allows it, it comes from the registry, and
//! it is there once. The lists are those of `deny.toml`, so this check and `cargo deny` agree; what this
//! one leaves out needs a network: advisories, and crates that were withdrawn.

pub(crate) mod graph;
mod licence;
mod policy;

use std::collections::BTreeMap;

use self::{
    graph::{Crate, Graph},
    policy::{Policy, Skipped},
};
use crate::{
    files::{self, File},
    problem::Problem,
};

const POLICY: &str = "deny.toml";

/// Crates of a public registry begin like this; others come from a folder or a git repository.
const REGISTRY: &str = "registry+";

/// Finds crates that the policy does not allow, and exceptions that are no longer needed.
pub(crate) fn check(graph: &Graph, files: &[File]) -> Vec<Problem> {
    let text = files::find(files, POLICY).and_then(File::text).unwrap_or_default();
    let policy = match Policy::read(text) {
        Ok(policy) => policy,
        Err(error) => return Problem::new(POLICY, error, "correct the file").into(),
    };
    let foreign: Vec<&Crate> = graph.crates().filter(|found| found.source.is_some()).collect();
    let mut problems = Vec::new();
    for found in &foreign {
        let source = found.source.as_deref().unwrap_or_default();
        if !source.starts_with(REGISTRY) {
            let what = format!("comes from {source}");
            problems.push(Problem::new(found.to_string(), what, "use a published version"));
        }
        problems.extend(refused_licence(found, &policy));
    }
    problems.extend(duplicates(&foreign, &policy.skip));
    problems
}

fn refused_licence(found: &Crate, policy: &Policy) -> Option<Problem> {
    let expression = found.license.as_deref().unwrap_or_default();
    let allowed = |name: &str| policy.allowed.iter().any(|allowed| allowed == name);
    let what = match licence::satisfied(expression, &allowed) {
        Ok(true) => return None,
        Ok(false) => format!("has the licence `{expression}`, of which {POLICY} allows no part"),
        Err(error) => format!("has the licence `{expression}`, which {error}"),
    };
    Some(Problem::new(found.to_string(), what, "do without it, or decide to allow the licence"))
}

/// Crates of which more than one version is left when the skipped ones are taken away.
fn duplicates(foreign: &[&Crate], skip: &[Skipped]) -> Vec<Problem> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for found in foreign {
        versions.entry(&found.name).or_default().push(&found.version);
    }
    let mut problems = Vec::new();
    for (name, all) in &versions {
        let skipped = |version: &&&str| skip.iter().any(|one| one.matches(name, version));
        let left: Vec<&str> = all.iter().filter(|version| !skipped(version)).copied().collect();
        if left.len() > 1 {
            problems.push(Problem::new(
                *name,
                format!("is there in the versions {}", left.join(" and ")),
                format!("bring its users to one version, or name the older one in {POLICY}"),
            ));
        }
    }
    let needless = skip.iter().filter(|one| {
        let all = versions.get(one.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        all.len() < 2 || !all.iter().any(|version| one.matches(&one.name, version))
    });
    problems.extend(needless.map(|one| {
        let what = format!("skips {}@{}, which is not there twice", one.name, one.version);
        Problem::new(POLICY, what, "remove the line")
    }));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(version: &str, license: &str, source: Option<&str>) -> Crate {
        Crate {
            name: "a".to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: source.map(str::to_owned),
            ..Crate::default()
        }
    }

    fn problems(crates: Vec<Crate>, skip: &str) -> Vec<String> {
        let policy = format!("[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{skip}]\n");
        let files = [File::new(POLICY, policy)];
        let graph = Graph::of(crates);
        check(&graph, &files).into_iter().map(|problem| problem.to_string()).collect()
    }

    const HERE: Option<&str> = Some("registry+somewhere");

    #[test]
    fn allowed_crates_pass() {
        assert!(problems(vec![found("1.0.0", "MIT OR GPL-3.0", HERE)], "").is_empty());
        assert!(problems(vec![found("1.0.0", "our own", None)], "").is_empty());
    }

    #[test]
    fn other_licences_and_sources_are_found() {
        let refused = problems(vec![found("1.0.0", "GPL-3.0", HERE)], "");
        assert!(refused[0].starts_with("a 1.0.0: has the licence `GPL-3.0`, of which"));
        let refused = problems(vec![found("1.0.0", "MIT", Some("git+somewhere"))], "");
        assert!(refused[0].starts_with("a 1.0.0: comes from git+somewhere"));
    }

    #[test]
    fn duplicates_are_found_unless_they_are_named() {
        let two = || vec![found("1.2.0", "MIT", HERE), found("2.0.0", "MIT", HERE)];
        assert!(problems(two(), "")[0].starts_with("a: is there in the versions 1.2.0 and 2.0.0"));
        assert!(problems(two(), "{ crate = \"a@1\", reason = \"b\" }").is_empty());
        let one = vec![found("2.0.0", "MIT", HERE)];
        let needless = problems(one, "{ crate = \"a@1\", reason = \"b\" }");
        assert!(needless[0].starts_with("deny.toml: skips a@1, which is not there twice"));
    }

    #[test]
    fn a_broken_policy_is_found() {
        let files = [File::new(POLICY, "[licenses")];
        assert_eq!(check(&Graph::of(Vec::new()), &files)[0].place, POLICY);
    }
}
