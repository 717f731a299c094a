//! Generates the Rust form of `proto/history.proto`, which is committed, so that a build of the
//! workspace needs neither a build script nor `protoc`. A test fails when the two do not agree.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost_build::{Config, Module};

const SCHEMA: &str = "proto/history.proto";
const GENERATED: &str = "crates/core/src/codec/generated.rs";
const MODULE_DOC: &str =
    "//! Generated from `proto/history.proto` by `cargo xtask codegen`; do not edit.\n\n";

/// Cases that the core boxes because they are large. Boxed here too, so that the small ones stay small.
const BOXED: [&str; 6] = [
    "Body.fact.run_started",
    "Body.fact.run_continued_as_new",
    "Body.fact.task_failed",
    "Body.fact.activity_scheduled",
    "Body.fact.child_initiated",
    "Effect.action.start_child",
];

/// Writes the generated file.
pub(crate) fn run() -> io::Result<()> {
    fs::write(root().join(GENERATED), generate()?)
}

fn generate() -> io::Result<String> {
    let root = root();
    let files = protox::compile([root.join(SCHEMA)], [root.join("proto")])
        .map_err(|error| io::Error::other(format!("{SCHEMA}: {error}")))?;
    let requests = files
        .file
        .into_iter()
        .map(|file| (Module::from_protobuf_package_name(file.package()), file))
        .collect();
    let mut config = Config::new();
    config.bytes(["."]).btree_map(["."]);
    for case in BOXED {
        config.boxed(format!(".abide.history.v1.{case}"));
    }
    let modules = config.generate(requests)?;
    Ok(modules.into_values().fold(MODULE_DOC.to_owned(), |text, module| text + &module))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_fresh() {
        let committed = fs::read_to_string(root().join(GENERATED)).unwrap();
        assert!(
            committed == generate().unwrap(),
            "{GENERATED} does not agree with {SCHEMA}; run `cargo xtask codegen` and commit it"
        );
    }
}
