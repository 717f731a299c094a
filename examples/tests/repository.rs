//! What the tests take from the repository: its files, and the real program.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of the guide's pages.
pub(crate) fn pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Names of the examples: folders with an expected output.
pub(crate) fn examples() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let examples = entries.filter(|entry| entry.path().join("expected.txt").exists());
    examples.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// The program `abide`. A test of the whole workspace has built it; a test of this package alone
/// builds it if necessary, because cargo builds only the programs of the tested package.
pub(crate) fn abide() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        // This test is `<target>/<profile>/deps/<test>`.
        let this = env::current_exe().unwrap();
        let profile = this.ancestors().nth(2).unwrap();
        let program = profile.join("abide");
        if program.exists() {
            return program;
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "--quiet", "--package", "abide-cli", "--bin", "abide"]);
        build.arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
        assert!(built.success(), "the program abide could not be built");
        program
    })
}
