//! `abide new`: the project that it creates compiles, passes its tests and runs.

use std::{env, fs, path::Path, process::Command};

use crate::harness::{Ran, abide};

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Cargo in the project, without a network and with the build of the workspace as far as it fits.
fn cargo(project: &Path, arguments: &str) -> Ran {
    let this = env::current_exe().expect("a test is a file");
    let target = this.ancestors().nth(3).expect("tests are in target/<profile>/deps");
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments.split(' ')).args(["--offline", "--quiet"]).current_dir(project);
    // As in the workspace's Cargo.toml: crates with other settings would be built once more.
    command.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only").env("CARGO_TARGET_DIR", target);
    Ran::of(&mut command)
}

#[test]
fn a_new_project_passes_its_tests_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("shop");
    let said = Ran::of(abide().arg("new").arg(&project)).good();
    assert!(said.starts_with("Created ") && said.contains("cargo test"), "{said}");

    // A user's cargo chooses the newest versions; here those of the workspace are at hand.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("both exist");
    let tested = cargo(&project, "test").good();
    assert!(tested.contains("2 passed"), "{tested}");
    assert_eq!(cargo(&project, "run").good(), "Ada has paid\n");
    assert!(project.join("shop.db").exists(), "what it did is stored");
    assert_eq!(cargo(&project, "run -- swim").code, Some(1));
}

/// The parts of Abide's source that an image gets are what a project needs of it.
#[test]
fn an_image_gets_all_of_the_source_that_a_project_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let (project, source) = (folder.path().join("shop"), folder.path().join("abide"));
    Ran::of(abide().arg("new").arg(&project)).good();
    let dockerfile = fs::read_to_string(project.join("Dockerfile")).expect("a Dockerfile");
    let here = root().canonicalize().expect("it exists");
    let context = format!("docker build --build-context abide={} -t shop .", here.display());
    assert!(dockerfile.contains(&context), "{dockerfile}");
    let copies = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY --from=abide "));
    let copies: Vec<[String; 2]> =
        copies.map(|paths| serde_json::from_str(paths).expect("a list of two")).collect();
    fs::create_dir(&source).expect("a new folder");
    for [part, to] in &copies {
        assert_eq!(Path::new(to), here.join(part), "it is where Cargo.toml looks for it");
        // A link in place of a copy: what is not copied is not found.
        std::os::unix::fs::symlink(here.join(part), source.join(part)).expect("a link");
    }
    let manifest = fs::read_to_string(project.join("Cargo.toml")).expect("a manifest");
    let moved = manifest.replace(&here.display().to_string(), &source.display().to_string());
    fs::write(project.join("Cargo.toml"), moved).expect("a manifest");
    fs::copy(here.join("Cargo.lock"), project.join("Cargo.lock")).expect("both exist");
    let known = cargo(&project, "metadata --format-version 1").good();
    assert!(known.contains("abide-embedded"), "{known}");
}

#[test]
fn an_existing_folder_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path().join("shop");
    fs::create_dir(&project).expect("a new folder");
    let refused = Ran::of(abide().arg("new").arg(&project)).bad(2);
    assert!(refused.contains("exists already"), "{refused}");
    assert_eq!(fs::read_dir(&project).expect("it is there").count(), 0);
}

#[cfg(unix)]
#[test]
fn cargo_abide_is_the_same_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let subcommand = folder.path().join("cargo-abide");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_abide"), &subcommand).expect("a link");
    // Cargo passes on the name of its subcommand.
    let project = folder.path().join("shop");
    let mut command = Command::new(&subcommand);
    Ran::of(command.args(["abide", "new"]).arg(&project).arg("--path").arg(root())).good();
    let manifest = fs::read_to_string(project.join("Cargo.toml")).expect("a project");
    let facade = root().join("crates/abide").canonicalize().expect("it exists");
    assert!(manifest.contains(&format!("path = \"{}\"", facade.display())), "{manifest}");
}
