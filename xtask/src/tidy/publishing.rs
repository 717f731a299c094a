//! Whether a release can be published as the tree stands: crates of a release have what a registry shows,
//! need only each other, in exactly this version, and document their features. Test rigs stay at home.

use std::collections::BTreeMap;

use crate::{
    files::{self, File},
    problem::Problem,
    workspace::{Dependency, DependencyKind, Package},
};

/// Crates that no release contains: they are chores, examples, or exist for tests. All others are
/// needed by the library `abide` or by the binary of the same name.
const AT_HOME: &[&str] = &[
    "abide-examples",
    "abide-hostile",
    "abide-postgres-fixture",
    "abide-program",
    "abide-sim",
    "abide-sqlite-disk",
    "xtask",
];

/// The crate that users import, and the file that introduces its features.
const FACADE: (&str, &str) = ("abide", "crates/abide/src/lib.rs");

/// A registry takes no more of either.
const KEYWORDS_MAX: usize = 5;

/// Finds what would make a release fail, or be less than it should be.
pub(crate) fn check(packages: &[Package], files: &[File]) -> Vec<Problem> {
    let members = packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut problems = Vec::new();
    for package in packages {
        let mut found = Vec::new();
        let at_home = AT_HOME.contains(&package.name.as_str());
        match (package.published(), at_home) {
            (true, false) => {
                found.extend(missing_metadata(package));
                found.extend(wrong_dependencies(package, &members));
                found.extend(features_without_words(package, files));
            }
            (false, true) => {}
            (true, true) => found.push((
                "is for tests or chores, and its Cargo.toml lets it be published".to_owned(),
                "write `publish = false`",
            )),
            (false, false) => found.push((
                "is not published".to_owned(),
                "remove `publish = false`, or name it in xtask/src/tidy/publishing.rs",
            )),
        }
        let place = package.manifest_path.display().to_string();
        problems
            .extend(found.into_iter().map(|(what, fix)| Problem::new(place.as_str(), what, fix)));
    }
    problems
}

/// What is wrong, and what to do about it.
type Finding = (String, &'static str);

fn missing_metadata(package: &Package) -> Vec<Finding> {
    let present = [
        ("description", package.description.is_some()),
        ("license", package.license.is_some()),
        ("readme", package.readme.is_some()),
        ("rust-version", package.rust_version.is_some()),
        ("keywords", (1..=KEYWORDS_MAX).contains(&package.keywords.len())),
        ("categories", (1..=KEYWORDS_MAX).contains(&package.categories.len())),
    ];
    let missing = present.into_iter().filter(|(_, present)| !present);
    let finding = |field| format!("has no `{field}`, or too many of them");
    missing
        .map(|(field, _)| (finding(field), "inherit it, as in `keywords.workspace = true`"))
        .collect()
}

fn wrong_dependencies(package: &Package, members: &BTreeMap<&str, &Package>) -> Vec<Finding> {
    let ours = package.dependencies.iter().filter_map(|dependency| {
        members.get(dependency.name.as_str()).map(|member| (dependency, *member))
    });
    ours.filter_map(|(dependency, member)| wrong_dependency(dependency, member)).collect()
}

/// Published crates name each other in their exact version. Tests may use crates that stay at home, but
/// then without a version: only such dependencies are left out of a package.
fn wrong_dependency(dependency: &Dependency, member: &Package) -> Option<Finding> {
    let Dependency { name, kind, req } = dependency;
    let exact = format!("={}", member.version);
    match (member.published(), kind) {
        (true, _) if *req == exact => None,
        (true, _) => Some((
            format!("depends on {name} in version `{req}` instead of `{exact}`"),
            "give it this version in the root Cargo.toml, and write `workspace = true` here",
        )),
        (false, Some(DependencyKind::Dev)) if req == "*" => None,
        (false, Some(DependencyKind::Dev)) => Some((
            format!("names a version of {name}, which is not published"),
            "remove the version, so that packages leave the dependency out",
        )),
        (false, Some(DependencyKind::Build) | None) => Some((
            format!("depends on {name}, which is not published"),
            "publish that crate too, or do without it",
        )),
    }
}

/// Features of the facade stand in its documentation; those of parts have a comment.
fn features_without_words(package: &Package, files: &[File]) -> Vec<Finding> {
    let manifest = package.manifest_path.display().to_string();
    let text = |path: &str| files::find(files, path).and_then(File::text).unwrap_or_default();
    let optional = package.features.keys().filter(|name| *name != "default");
    let (manifest, facade) = (text(&manifest), text(FACADE.1));
    let undocumented = optional.filter(|name| {
        let in_table = package.name != FACADE.0 || facade.contains(&format!("//! | `{name}`"));
        !(commented(manifest, name) && in_table)
    });
    let fix =
        "say above it in one line what it adds; features of `abide` also have a line in its lib.rs";
    undocumented
        .map(|name| (format!("has the feature `{name}` without a word on it"), fix))
        .collect()
}

/// Whether a comment stands above the line that declares the feature; implied ones need none.
fn commented(manifest: &str, feature: &str) -> bool {
    let declaration = format!("{feature} = ");
    let mut before = "";
    for line in manifest.lines() {
        if line.starts_with(&declaration) && !line.contains('{') {
            return before.starts_with('#');
        }
        before = line;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(name: &str) -> Package {
        let words = || vec!["word".to_owned()];
        Package {
            name: name.to_owned(),
            manifest_path: format!("{name}/Cargo.toml").into(),
            version: "1.2.3".to_owned(),
            description: Some("What it is.".to_owned()),
            license: Some("Apache-2.0".to_owned()),
            readme: Some("README.md".into()),
            rust_version: Some("1.95".to_owned()),
            keywords: words(),
            categories: words(),
            ..Package::default()
        }
    }

    fn at_home(name: &str) -> Package {
        Package { publish: Some(Vec::new()), ..complete(name) }
    }

    fn using(name: &str, req: &str, kind: Option<DependencyKind>) -> Package {
        let dependency = Dependency { name: name.to_owned(), kind, req: req.to_owned() };
        Package { dependencies: vec![dependency], ..complete("abide-user") }
    }

    fn found(packages: &[Package], files: &[File]) -> Vec<String> {
        check(packages, files).into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_complete_crate_passes_and_an_incomplete_one_is_named() {
        assert!(found(&[complete("abide-core"), at_home("abide-sim")], &[]).is_empty());
        let bare = Package { keywords: Vec::new(), readme: None, ..complete("abide-core") };
        let found = check(&[bare], &[]);
        assert_eq!(found[0].place, "abide-core/Cargo.toml");
        assert_eq!(found[0].what, "has no `readme`, or too many of them");
        assert_eq!(found[1].what, "has no `keywords`, or too many of them");
    }

    #[test]
    fn what_is_published_is_a_decision() {
        assert!(found(&[complete("abide-sim")], &[])[0].contains("lets it be published"));
        assert_eq!(found(&[at_home("abide-core")], &[]), ["is not published"]);
    }

    #[test]
    fn crates_of_a_release_name_each_other_exactly() {
        let with =
            |user: Package| found(&[user, complete("abide-core"), at_home("abide-sim")], &[]);
        let dev = Some(DependencyKind::Dev);
        assert!(with(using("abide-core", "=1.2.3", None)).is_empty());
        assert!(with(using("abide-core", "^1.2.3", None))[0].contains("instead of `=1.2.3`"));
        assert!(with(using("abide-core", "*", dev))[0].contains("instead of `=1.2.3`"));
        assert!(with(using("abide-sim", "*", dev)).is_empty());
        assert!(with(using("abide-sim", "=1.2.3", dev))[0].contains("names a version"));
        assert!(with(using("abide-sim", "*", None))[0].contains("which is not published"));
        assert!(with(using("serde", "^1", None)).is_empty());
    }

    #[test]
    fn features_are_introduced() {
        let features = |name: &str| BTreeMap::from([(name.to_owned(), Vec::new())]);
        let package = Package { features: features("fast"), ..complete("abide") };
        let manifest = |text: &str| File::new("abide/Cargo.toml", text);
        let table = File::new(FACADE.1, "//! | `fast` | it is fast |\n");
        let check = |files: &[File]| {
            let package = Package { features: features("fast"), ..complete("abide") };
            found(&[package], files)
        };
        assert_eq!(found(&[package], &[]), ["has the feature `fast` without a word on it"]);
        assert!(check(&[manifest("# Fast.\nfast = []\n"), table]).is_empty());
        let table = File::new(FACADE.1, "//! | `fast` | it is fast |\n");
        assert_eq!(check(&[manifest("[features]\nfast = []\n"), table]).len(), 1);
    }
}
