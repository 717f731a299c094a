//! Every crate that a build for Linux contains, as `cargo metadata` sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use serde::Deserialize;

use crate::{
    problem::Problem,
    workspace::{self, DependencyKind},
};

/// Crates of other platforms are not downloaded, so cargo cannot say anything of them.
const PLATFORM: &[&str] =
    &["--locked", "--all-features", "--filter-platform", "x86_64-unknown-linux-gnu"];

/// All crates and what each needs.
#[derive(Debug, Deserialize)]
pub(crate) struct Graph {
    #[serde(rename = "packages")]
    crates: Vec<Crate>,
    resolve: Resolve,
}

/// One version of a crate.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Crate {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// Where it comes from; `None` for our own.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    kind: Option<DependencyKind>,
}

impl Graph {
    /// Asks cargo about the workspace of the current folder.
    pub(crate) fn load() -> Result<Self, Problem> {
        workspace::metadata(PLATFORM)
    }

    pub(crate) fn crates(&self) -> impl Iterator<Item = &Crate> {
        self.crates.iter()
    }

    /// What is linked into the package of this name, itself included, by name and version.
    pub(crate) fn linked_into(&self, name: &str) -> Vec<&Crate> {
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let first = self.crates.iter().filter(|found| found.name == name);
        let mut waiting: Vec<&str> = first.map(|found| found.id.as_str()).collect();
        let mut reached = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if reached.insert(id) {
                let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
                let linked =
                    edges.filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
                waiting.extend(linked.map(|edge| edge.pkg.as_str()));
            }
        }
        let mut linked: Vec<&Crate> =
            self.crates.iter().filter(|found| reached.contains(found.id.as_str())).collect();
        linked.sort_by_key(|found| (&found.name, &found.version));
        linked
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
        Self { crates, resolve: Resolve::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_normal_dependencies_are_linked() {
        let krate = |id: &str| Crate { id: id.to_owned(), name: id.to_owned(), ..Crate::default() };
        let edge = |id: &str, kind| Edge { pkg: id.to_owned(), dep_kinds: vec![Kind { kind }] };
        let node = |id: &str, deps| Node { id: id.to_owned(), deps };
        let dev = Some(DependencyKind::Dev);
        let nodes = vec![
            node("program", vec![edge("library", None), edge("rig", dev)]),
            node("library", vec![edge("program", None)]),
        ];
        let crates = ["rig", "program", "library"].map(krate).into();
        let graph = Graph { crates, resolve: Resolve { nodes } };
        let names: Vec<&str> =
            graph.linked_into("program").iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["library", "program"]);
    }
}
