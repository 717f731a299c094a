//! Which crate may depend on which. The table below is the architecture: a new arrow is a decision,
//! not an accident. It also keeps the pure crates pure, by naming what they must never depend on.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    problem::Problem,
    workspace::{DependencyKind, Package},
};

/// An arrow points to the dependency: a crate may use everything to its left in the same line,
/// except itself and its neighbours between commas. A crate that stands alone uses no other.
const TABLE: &[&str] = &[
    "core <- store <- shard <- engine <- gateways <- server <- cli",
    "core <- proto <- sdk, gateways, server",
    "core <- store <- store-* <- server, embedded, cli",
    "core, sdk-macros <- sdk <- embedded, sdk-testing, sim",
    "engine <- embedded <- sdk-testing",
    "shard, store <- sim",
    "sdk, embedded, sdk-testing <- abide <- cli, examples",
    "core, abide <- command <- bench, crash-test <- cli",
    // Both give the servers that they start a secret; `abide bench` runs an engine in its own process too.
    "server <- bench, crash-test",
    "embedded <- bench",
    // `abide bench store` repeats the recorded transitions of the benchmarks, and `abide bench hello`
    // counts the commits of a store that it opens itself.
    "core, store, store-*, shard <- benches <- bench",
    "core, proto, sdk, engine, server, postgres-fixture <- hostile",
    "core <- program",
    "sqlite-disk",
    "postgres-fixture",
    "xtask",
];

const TABLE_FILE: &str = "the table in xtask/src/tidy/arrows.rs";

/// All packages in this folder are called `examples` in the table.
const EXAMPLES: &str = "examples";

/// Tests of any crate above the core may use the conformance suite that lives here.
const CONFORMANCE: &str = "abide-store";

/// Crates that exist for tests; any test may use them, and nothing else may.
const FOR_TESTS: &[&str] = &["abide-sqlite-disk", "abide-postgres-fixture", "abide-program"];

/// Tests that need both ends of a connection: those of the left crate may use the right one.
const BOTH_ENDS: &[(&str, &str)] = &[("abide-server", "abide-sdk")];

/// Runtimes, randomness and databases, which the pure crates must not use. Names that continue with
/// `-` or `_` are included.
const IMPURE: &[&str] = &["tokio", "async-std", "futures", "rand", "rusqlite", "postgres"];

/// Crates that must stay pure, and what else each must not use.
const PURE: &[(&str, &[&str])] = &[("abide-core", &[]), ("abide-shard", &["prost"])];

/// Package names, each with the names of the packages that it may use.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Finds dependencies that the table does not allow.
pub(crate) fn check(packages: &[Package]) -> Vec<Problem> {
    let arrows = read_table();
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in packages {
        let place = package.manifest_path.display().to_string();
        let Some(direct) = arrows.get(role(package)) else {
            let what = format!("{} is not in {TABLE_FILE}", package.name);
            problems.push(Problem::new(place, what, "give the crate its place in the table"));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            let allowed = match dependency.kind {
                _ if !members.contains(name) => true,
                Some(DependencyKind::Dev) => {
                    may_test_with(&arrows, direct, name)
                        || BOTH_ENDS.contains(&(package.name.as_str(), name))
                }
                Some(DependencyKind::Build) | None => direct.contains(name),
            };
            if !allowed {
                problems.push(forbidden_arrow(package, name, dependency.kind, direct));
            }
        }
        problems.extend(impurities(package));
    }
    problems
}

/// Dev-dependencies point down: to what the table allows through any number of arrows.
fn may_test_with(arrows: &Arrows, direct: &BTreeSet<String>, name: &str) -> bool {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&String> = direct.iter().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(arrows.get(next).into_iter().flatten());
        }
    }
    // A crate without arrows is the core, on which the suite itself depends, or has no use for it.
    let above_the_core = !direct.is_empty();
    reached.contains(&name.to_owned())
        || (name == CONFORMANCE && above_the_core)
        || FOR_TESTS.contains(&name)
}

fn forbidden_arrow(
    package: &Package,
    name: &str,
    kind: Option<DependencyKind>,
    direct: &BTreeSet<String>,
) -> Problem {
    let kind = match kind {
        None => "depends on",
        Some(DependencyKind::Build) => "has a build-dependency on",
        Some(DependencyKind::Dev) => "has a dev-dependency on",
    };
    let allowed: Vec<&str> = direct.iter().map(String::as_str).collect();
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
    Problem::new(
        package.manifest_path.display().to_string(),
        format!("{} {kind} {name}; it may use: {allowed}", package.name),
        format!("move the code to the crate where it belongs; the arrows are {TABLE_FILE}"),
    )
}

fn impurities(package: &Package) -> Vec<Problem> {
    let Some((_, besides)) = PURE.iter().find(|(name, _)| *name == package.name) else {
        return Vec::new();
    };
    let banned =
        |name: &str| IMPURE.iter().chain(*besides).any(|banned| is_or_extends(name, banned));
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.is_none() && banned(&dependency.name))
        .map(|dependency| {
            Problem::new(
                package.manifest_path.display().to_string(),
                format!("{} must stay pure and depends on {}", package.name, dependency.name),
                "let the value come in as an argument and do the effect in a crate above",
            )
        })
        .collect()
}

fn is_or_extends(name: &str, banned: &str) -> bool {
    name.strip_prefix(banned).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

fn role(package: &Package) -> &str {
    if package.manifest_path.starts_with(EXAMPLES) { EXAMPLES } else { &package.name }
}

fn read_table() -> Arrows {
    let mut arrows = Arrows::new();
    for line in TABLE {
        let mut left = BTreeSet::new();
        for group in line.split(" <- ") {
            let members: Vec<String> = group.split(", ").flat_map(package_names).collect();
            for member in &members {
                arrows.entry(member.clone()).or_default().extend(left.iter().cloned());
            }
            left.extend(members);
        }
    }
    arrows
}

fn package_names(word: &str) -> Vec<String> {
    match word {
        "abide" | "xtask" | EXAMPLES => vec![word.to_owned()],
        "gateways" => vec!["abide-gateway-temporal".into(), "abide-gateway-durabletask".into()],
        "store-*" => vec!["abide-store-sqlite".into(), "abide-store-postgres".into()],
        _ => vec![format!("abide-{word}")],
    }
}

#[cfg(test)]
mod tests {
    use crate::workspace::Dependency;

    use super::*;

    fn package(
        folder: &str,
        name: &str,
        dependencies: &[(&str, Option<DependencyKind>)],
    ) -> Package {
        let dependency = |(name, kind): &(&str, _)| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
            ..Dependency::default()
        };
        Package {
            name: name.to_owned(),
            manifest_path: format!("{folder}/Cargo.toml").into(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Package::default()
        }
    }

    /// Problems found when `name` depends on `dependency`, which is ours if its name says so.
    fn check_arrow(name: &str, dependency: &str, kind: Option<DependencyKind>) -> Vec<String> {
        let mut packages = vec![package("crates/user", name, &[(dependency, kind)])];
        if dependency.starts_with("abide") {
            packages.push(package("crates/used", dependency, &[]));
        }
        check(&packages).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn the_table_reads_as_written() {
        let arrows = read_table();
        let of = |name: &str| arrows[name].iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!(of("abide-core"), "");
        assert_eq!(of("abide-shard"), "abide-core abide-store");
        assert_eq!(of("abide-store-sqlite"), "abide-core abide-store");
        assert_eq!(
            of("abide-sim"),
            "abide-core abide-sdk abide-sdk-macros abide-shard abide-store"
        );
        assert_eq!(of("abide"), "abide-embedded abide-sdk abide-sdk-testing");
        assert_eq!(
            of("abide-sdk-testing"),
            "abide-core abide-embedded abide-engine abide-sdk abide-sdk-macros"
        );
        assert_eq!(of("xtask"), "");
    }

    #[test]
    fn arrows_of_the_table_pass() {
        assert!(check_arrow("abide-shard", "abide-store", None).is_empty());
        assert!(check_arrow("abide-server", "abide-store-postgres", None).is_empty());
        assert!(check_arrow("abide-shard", "bytes", None).is_empty());
    }

    #[test]
    fn a_crate_for_tests_is_used_by_tests_alone() {
        let dev = Some(DependencyKind::Dev);
        assert!(check_arrow("abide-store-sqlite", "abide-sqlite-disk", dev).is_empty());
        assert!(!check_arrow("abide-store-sqlite", "abide-sqlite-disk", None).is_empty());
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let found = check_arrow("abide-store", "abide-shard", None);
        assert!(found[0].contains("abide-store depends on abide-shard; it may use: abide-core"));
        let build = Some(DependencyKind::Build);
        assert!(check_arrow("xtask", "abide-core", build)[0].contains("it may use: none"));
    }

    #[test]
    fn dev_dependencies_point_down() {
        let dev = Some(DependencyKind::Dev);
        assert!(check_arrow("abide", "abide-engine", dev).is_empty());
        assert!(check_arrow("abide-proto", CONFORMANCE, dev).is_empty());
        assert!(check_arrow("abide-core", CONFORMANCE, dev)[0].contains("dev-dependency"));
        assert!(check_arrow("abide-store", "abide-shard", dev)[0].contains("dev-dependency"));
    }

    #[test]
    fn an_unknown_crate_is_found() {
        let found = check(&[package("crates/util", "abide-util", &[])]);
        assert!(found[0].what.contains("abide-util is not in the table"));
        assert!(check(&[package("examples/hello", "hello", &[])]).is_empty());
    }

    #[test]
    fn pure_crates_stay_pure() {
        assert!(check_arrow("abide-core", "tokio", None)[0].contains("must stay pure"));
        assert!(check_arrow("abide-core", "futures-util", None)[0].contains("must stay pure"));
        assert!(check_arrow("abide-shard", "prost", None)[0].contains("must stay pure"));
        assert_eq!(impurities(&package("", "abide-core", &[("prost", None)])), []);
        let dev = Some(DependencyKind::Dev);
        assert_eq!(impurities(&package("", "abide-core", &[("rand", dev)])), []);
        assert_eq!(impurities(&package("", "abide-core", &[("random-name", None)])), []);
    }
}
