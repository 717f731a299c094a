//! The one binary: an engine to try at once (`dev`), a server (`serve`), all commands of clients
//! and operators, and the benchmarks.
//!
//! - `input` reads what is sent, `output` shows what comes back; the crate `abide-command` finds the
//!   engine, prints, and says what went wrong and with which exit code.
//! - `node` runs an engine for `dev` and `serve`; `demo` is the worker that `dev` includes.
//! - `new` creates a project.
//! - `workflow`, `waits`, `approvals`, `activity`, `timer`, `repair`, `search_attribute`,
//!   `schedule`, `batch`, `completions`: one file per command.
//! - `codec` serves keys' owners: a codec endpoint, and keys.
//! - `replay` checks whether a worker's program fits existing histories.
//! - `abide bench` and `abide crash-test` are crates of their own.

mod activity;
mod approvals;
mod batch;
mod codec;
mod completions;
mod demo;
mod input;
mod new;
mod node;
mod nodes;
mod output;
mod repair;
mod replay;
mod schedule;
mod search_attribute;
mod timer;
mod waits;
mod workflow;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

use abide_bench::Bench;
use abide_command::{Common, Failed};
use abide_crash_test::CrashTest;
use clap::{Parser, Subcommand};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Workflows and requests allocate on one thread and free on another; this allocator is good at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable workflow engine: run a server, manage workflows, test and benchmark
#[derive(Parser)]
#[command(
    name = "abide",
    version = version(),
    after_help = "Begin with:
  abide dev

Exit codes:
  0  success
  1  the request was refused, or the operation failed
  2  the command line, an input or the configuration is invalid
  3  the engine is unreachable

Environment:
  ABIDE_LOG  log filter for standard error, such as `debug` [default: warn]"
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(node::dev::Dev),
    Serve(node::serve::Serve),
    New(new::New),
    /// Start, inspect, signal, cancel and pause workflows
    #[command(subcommand, visible_alias = "w")]
    Workflow(workflow::Command),
    /// Show what runs wait for
    #[command(subcommand)]
    Waits(waits::Command),
    /// List and decide approval requests
    #[command(subcommand)]
    Approvals(approvals::Command),
    /// Complete, fail or heartbeat an activity from outside its worker
    #[command(subcommand)]
    Activity(activity::Command),
    /// Reschedule timers and deadlines
    #[command(subcommand)]
    Timer(timer::Command),
    Repair(repair::Repair),
    /// Register, list and remove search attributes
    #[command(subcommand)]
    SearchAttribute(search_attribute::Command),
    /// Create, list, change and trigger schedules, which start workflows at their times
    #[command(subcommand)]
    Schedule(schedule::Command),
    /// One action on many runs
    #[command(subcommand)]
    Batch(batch::Command),
    /// List the nodes of a cluster, or generate its secret
    #[command(subcommand)]
    Nodes(nodes::Command),
    /// Serve a codec endpoint, or generate a key for encryption
    #[command(subcommand)]
    Codec(codec::Command),
    Replay(replay::Replay),
    Bench(Bench),
    CrashTest(CrashTest),
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(arguments()) {
        Ok(cli) => cli,
        // Help and the version come this way too, and are not errors.
        Err(error) if error.use_stderr() && env::args_os().any(|word| word == "--json") => {
            return Failed::from(error).report(true);
        }
        Err(error) => error.exit(),
    };
    let filter = EnvFilter::try_from_env("ABIDE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = fmt::layer().with_writer(std::io::stderr).with_target(false);
    tracing_subscriber::registry().with(filter).with(log).init();
    let json = cli.common.json;
    let done = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => Err(Failed::refused(format_args!("cannot start the async runtime: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(json),
    }
}

/// The version, with the commit in a binary that `cargo xtask dist` has built.
const fn version() -> &'static str {
    match option_env!("ABIDE_VERSION") {
        Some(version) => version,
        None => env!("CARGO_PKG_VERSION"),
    }
}

/// The command line. Under the name `cargo-abide` this is a subcommand of cargo, which passes on the
/// subcommand's name as the first argument.
fn arguments() -> impl Iterator<Item = OsString> {
    let mut words: Vec<OsString> = env::args_os().collect();
    let program = words.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|name| name == "cargo-abide")
        && words.get(1).is_some_and(|word| word == "abide")
    {
        words.remove(1);
    }
    words.into_iter()
}

async fn run(cli: Cli) -> Result<(), Failed> {
    let Cli { common, command } = cli;
    match command {
        Command::Dev(dev) => dev.run(&common).await,
        Command::Serve(serve) => serve.run(&common).await,
        Command::New(new) => new.run(&common),
        Command::Workflow(command) => command.run(&common).await,
        Command::Waits(command) => command.run(&common).await,
        Command::Approvals(command) => command.run(&common).await,
        Command::Activity(command) => command.run(&common).await,
        Command::Timer(command) => command.run(&common).await,
        Command::Repair(repair) => repair.run(&common).await,
        Command::SearchAttribute(command) => command.run(&common).await,
        Command::Schedule(command) => command.run(&common).await,
        Command::Batch(command) => command.run(&common).await,
        Command::Nodes(command) => command.run(&common).await,
        Command::Codec(command) => command.run(&common).await,
        Command::Replay(replay) => replay.run(&common).await,
        Command::Bench(bench) => bench.run(&common).await,
        Command::CrashTest(crash_test) => crash_test.run(&common).await,
        Command::Completions(completions) => completions.run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }

    /// Every command that does something has a usage example.
    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command) {
            let subcommands: Vec<_> =
                command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
            if subcommands.is_empty() && !command.is_hide_set() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Example"), "`{}` has no example", command.get_name());
            }
            subcommands.into_iter().for_each(check);
        }
        check(&Cli::command());
    }
}
