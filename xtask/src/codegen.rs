//! Generates the Rust code for the schemas under `proto/`. It is committed, so that a build of the
//! workspace needs neither a build script nor `protoc`. A test fails when the two differ.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use prost::Message;
use prost_build::{Config, Module};

const HISTORY: &str = "proto/history.proto";
const HISTORY_CODE: &str = "crates/core/src/codec/generated.rs";

const API: [&str; 3] =
    ["proto/abide/v1/peer.proto", "proto/abide/v1/service.proto", "proto/abide/v1/worker.proto"];
const API_CODE: &str = "crates/proto/src/generated.rs";
const API_DESCRIPTORS: &str = "crates/proto/src/descriptors.bin";

/// Module with the messages of the history schema, which the API reuses.
const HISTORY_MODULE: &str = "::abide_core::codec::generated";

/// Large cases that the core boxes. They are boxed here too, so that the small ones stay small.
const BOXED: [&str; 10] = [
    "Body.fact.run_started",
    "Body.fact.run_continued_as_new",
    "Body.fact.task_failed",
    "Body.fact.activity_scheduled",
    "Body.fact.child_initiated",
    "Effect.action.start_child",
    "RunStarted.schedule",
    "Note.case.schedule_changed",
    "Note.case.schedule_stepped",
    "ScheduleChange.case.updated",
];

/// Path and content of a generated file.
type Output = (&'static str, Vec<u8>);

/// Writes the generated files.
pub(crate) fn run() -> io::Result<()> {
    generate()?.into_iter().try_for_each(|(path, content)| fs::write(root().join(path), content))
}

fn generate() -> io::Result<Vec<Output>> {
    let mut outputs = vec![(HISTORY_CODE, history()?.into_bytes())];
    outputs.extend(api()?);
    Ok(outputs)
}

fn history() -> io::Result<String> {
    let root = root();
    let files = protox::compile([root.join(HISTORY)], [root.join("proto")]).map_err(unreadable)?;
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
    Ok(modules.into_values().fold(head("proto/history.proto"), |text, module| text + &module))
}

/// Messages, clients and servers of the API, and the descriptors for reflection.
fn api() -> io::Result<[Output; 2]> {
    let root = root();
    let schemas = API.map(|schema| root.join(schema));
    let files = protox::compile(schemas, [root.join("proto")]).map_err(unreadable)?;
    let folder = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .out_dir(folder.path())
        .emit_rerun_if_changed(false)
        .build_transport(false)
        .codec_path("crate::codec::Codec")
        .bytes(".")
        .btree_map(".")
        .extern_path(".abide.history.v1", HISTORY_MODULE)
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .compile_fds_with_config(files.clone(), names())?;
    let code = fs::read_to_string(folder.path().join("abide.v1.rs"))?;
    let mut descriptors = files;
    for file in &mut descriptors.file {
        // Drops comments and positions, which reflection does not need.
        file.source_code_info = None;
    }
    Ok([
        (API_CODE, (head("proto/abide/v1") + &code).into_bytes()),
        (API_DESCRIPTORS, descriptors.encode_to_vec()),
    ])
}

/// Generates message names, by which requests are found in the descriptors.
fn names() -> Config {
    let mut config = Config::new();
    config.enable_type_names();
    config
}

fn head(schema: &str) -> String {
    format!("//! Generated from `{schema}` by `cargo xtask codegen`; do not edit.\n\n")
}

fn unreadable(error: protox::Error) -> io::Error {
    io::Error::other(format!("a schema under proto/ cannot be compiled: {error}"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_fresh() {
        for (path, content) in generate().unwrap() {
            assert!(
                fs::read(root().join(path)).unwrap() == content,
                "{path} does not agree with proto/; run `cargo xtask codegen` and commit it"
            );
        }
    }
}
