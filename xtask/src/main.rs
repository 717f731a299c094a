//! Chores of the workspace, as `cargo xtask <command>`. They need nothing but cargo.

mod codegen;
mod comparison;
mod dist;
mod files;
mod minimal_versions;
mod output;
mod packages;
mod problem;
mod test_command;
mod tidy;
mod workspace;

use std::process::ExitCode;

use crate::{problem::Problem, workspace::Workspace};

const USAGE: &str = "\
usage: cargo xtask <command>

commands:
  test [--seeds N]  everything that must pass before a change is merged
  hostile [...]     hostile input against a true server, for five minutes or as long
                    as `--minutes N` says; `--seed S` repeats what the fuzzer found
  package [...]     the packages of a release, each compiled from its archive
  comparison        compile and count the programs of comparison/, and write their page;
                    with `--page` without compiling
  dist [--target T] the archives of a release: stripped binaries, checksums, licences
  minimal-versions  a build with the oldest versions that the Cargo.toml files allow
  tidy              only the checks on how the source tree is kept
  codegen           generate the code of proto/history.proto
  api               record the public API in crates/abide/public-api.txt
  golden            record new golden files in xtask/golden.txt
  help              this text";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            output::problems(&problems);
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), Vec<Problem>> {
    match arguments {
        ["test", options @ ..] => test_command::run(options),
        ["hostile", options @ ..] => test_command::hostile(options),
        ["package", options @ ..] => packages::run(options),
        ["comparison", options @ ..] => comparison::run(options),
        ["dist", options @ ..] => dist::run(options),
        ["minimal-versions"] => minimal_versions::run(),
        ["tidy"] => tidy::run(&Workspace::load()?),
        ["codegen"] => codegen::run().map_err(|error| {
            Problem::new("proto/history.proto", error.to_string(), "correct the schema").into()
        }),
        ["api"] => tidy::api::record(&Workspace::load()?),
        ["golden"] => tidy::golden::record(&Workspace::load()?),
        ["help" | "--help" | "-h"] => {
            output::line(USAGE);
            Ok(())
        }
        [] => Err(refused("no command given".to_owned())),
        _ => Err(refused(format!("does not understand `{}`", arguments.join(" ")))),
    }
}

fn refused(what: String) -> Vec<Problem> {
    Problem::new("cargo xtask", what, "choose one of the commands of `cargo xtask help`").into()
}
