//! `cargo xtask comparison`: the same six programs for Abide and its neighbours. It compiles those of the
//! neighbours with their published crates, checks that all are formatted alike, counts them, and writes the
//! counts and the programs into `docs/comparison.md`. A check of tidy sees that the page is as this would write it.
//! The programs of Abide are compiled and run with the examples.

mod page;

use std::process::Command;

use crate::{
    files::{self, File},
    output,
    problem::Problem,
    workspace::{self, Workspace},
};

const FOLDER: &str = "comparison";

const PAGE: &str = "docs/comparison.md";

const CONCEPTS: &str = "comparison/concepts.txt";

/// A system: its name, and where its programs are.
struct System {
    name: &'static str,
    folder: &'static str,
}

const ABIDE: System = System { name: "Abide", folder: "abide" };

const NEIGHBOURS: &[System] = &[
    System { name: "Temporal", folder: "temporal" },
    System { name: "Restate", folder: "restate" },
    System { name: "DBOS", folder: "dbos" },
];

/// File names of the programs, each with what it does.
const PROGRAMS: &[(&str, &str)] = &[
    ("hello", "Hello: a workflow with one step."),
    (
        "approval",
        "Approval: a purchase waits three days for a decision, and the deadline moves meanwhile.",
    ),
    (
        "signal",
        "Signal or timeout: an order waits a week for its payment, else a step reminds the customer.",
    ),
    (
        "saga",
        "Saga: a trip of three bookings; the last one fails, and the others are undone, newest first.",
    ),
    ("fan_out", "Fan-out: ten pages are counted at the same time, and the counts are added."),
    (
        "entity",
        "Entity: a customer's points, for years; they are added to, asked for, and outlive a run's history.",
    ),
];

impl System {
    fn path(&self, program: &str) -> String {
        match self.folder {
            "abide" => format!("{FOLDER}/abide/{program}.rs"),
            folder => format!("{FOLDER}/{folder}/src/bin/{program}.rs"),
        }
    }
}

fn systems() -> impl Iterator<Item = &'static System> {
    std::iter::once(&ABIDE).chain(NEIGHBOURS)
}

/// Compiles, checks and counts everything, and writes the page; with `--page` it only counts and writes.
pub(crate) fn run(options: &[&str]) -> Result<(), Vec<Problem>> {
    let workspace = Workspace::load()?;
    match options {
        [] => compile_and_format(&workspace)?,
        ["--page"] => {}
        _ => {
            let what = format!("does not understand `{}`", options.join(" "));
            let fix = "use it without options, or with `--page` to compile nothing";
            return Err(Problem::new("cargo xtask comparison", what, fix).into());
        }
    }
    let written = page::complete(&files::read(&workspace.root)?)?;
    let path = workspace.root.join(PAGE);
    std::fs::write(&path, written)
        .map_err(|error| Problem::new(PAGE, error.to_string(), "make the file writable"))?;
    output::line(&format!("comparison: {PAGE} is written"));
    Ok(())
}

fn compile_and_format(workspace: &Workspace) -> Result<(), Problem> {
    for system in NEIGHBOURS {
        output::line(&format!("\n==> {}", system.name));
        let mut check = workspace::cargo();
        check.current_dir(workspace.root.join(FOLDER).join(system.folder));
        check.args(["check", "--locked", "--bins"]);
        check.env("CARGO_TARGET_DIR", workspace.target.join(FOLDER));
        let fix = "correct the program, or the version in its Cargo.toml; Temporal's crates need \
                   `protoc`, installed or named in PROTOC";
        perform(check, system.folder, fix)?;
    }
    for system in systems() {
        let mut format = Command::new("rustfmt");
        format.current_dir(&workspace.root).args(["--check", "--edition", "2024"]);
        format.args(PROGRAMS.iter().map(|(program, _)| system.path(program)));
        perform(
            format,
            system.folder,
            "format it with rustfmt, which takes the settings of the tree",
        )?;
    }
    Ok(())
}

/// Finds a page that does not show the programs and their counts as they are.
pub(crate) fn check(files: &[File]) -> Vec<Problem> {
    match page::complete(files) {
        Err(problems) => problems,
        Ok(expected) => {
            let shown = files::find(files, PAGE).and_then(File::text).unwrap_or_default();
            if shown == expected {
                return Vec::new();
            }
            let what = "does not show the programs of comparison/ as they are";
            Problem::new(PAGE, what, "run `cargo xtask comparison --page`").into()
        }
    }
}

fn perform(mut command: Command, place: &str, fix: &str) -> Result<(), Problem> {
    let failed = |why: String| Problem::new(format!("{FOLDER}/{place}"), why, fix);
    let status = command.status().map_err(|error| failed(format!("cannot start: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("failed with {status}"))) }
}
