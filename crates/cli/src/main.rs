//! The one binary: an engine to try at once (`dev`), a server (`serve`), all commands of clients
//! and operators, and the benchmarks.
//!
//! - `connection` finds the engine, `input` reads what is sent, `output` writes what comes back,
//!   `failed` says what went wrong and with which exit code.
//! - `node` runs an engine for `dev` and `serve`; `demo` is the worker that `dev` includes.
//! - `workflow`, `waits`, `approvals`, `activity`, `timer`, `repair`, `completions`: one file per
//!   command.
//! - `replay` checks whether a worker's program fits existing histories.
//! - `bench` measures, `crash` kills; both start this same program with `own_process`.

mod activity;
mod approvals;
mod bench;
mod completions;
mod connection;
mod crash;
mod demo;
mod failed;
mod input;
mod node;
mod nodes;
mod output;
mod own_process;
mod repair;
mod replay;
mod timer;
mod waits;
mod workflow;

use std::{env, process::ExitCode};

use clap::{Parser, Subcommand};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::{connection::Common, failed::Failed};

/// Workflows that survive every crash: an engine, a server, and all that is done to them
#[derive(Parser)]
#[command(
    name = "abide",
    version,
    after_help = "Begin with:
  abide dev

Exit codes:
  0  done
  1  refused, or what was asked for failed
  2  the command line, an input or a configuration is wrong
  3  the engine cannot be reached

ABIDE_LOG sets what is logged to standard error, as in ABIDE_LOG=debug."
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What can be done.
#[derive(Subcommand)]
enum Command {
    Dev(node::dev::Dev),
    Serve(node::serve::Serve),
    /// Start workflows, speak to them, look at them
    #[command(subcommand, visible_alias = "w")]
    Workflow(workflow::Command),
    /// See what runs wait for
    #[command(subcommand)]
    Waits(waits::Command),
    /// See what waits for a decision, and decide
    #[command(subcommand)]
    Approvals(approvals::Command),
    /// Speak for an activity that its worker has left to somebody outside
    #[command(subcommand)]
    Activity(activity::Command),
    /// Move timers and deadlines
    #[command(subcommand)]
    Timer(timer::Command),
    Repair(repair::Repair),
    /// See the servers of a cluster
    #[command(subcommand)]
    Nodes(nodes::Command),
    Replay(replay::Replay),
    Bench(bench::Bench),
    CrashTest(crash::CrashTest),
    Completions(completions::Completions),
}

/// Workflows allocate many small values on one thread and free them on another; this allocator is
/// good at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
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
        Err(error) => Err(Failed::refused(format_args!("no runtime can be started: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.report(json),
    }
}

async fn run(cli: Cli) -> Result<(), Failed> {
    let Cli { common, command } = cli;
    match command {
        Command::Dev(dev) => dev.run(&common).await,
        Command::Serve(serve) => serve.run(&common).await,
        Command::Workflow(command) => command.run(&common).await,
        Command::Waits(command) => command.run(&common).await,
        Command::Approvals(command) => command.run(&common).await,
        Command::Activity(command) => command.run(&common).await,
        Command::Timer(command) => command.run(&common).await,
        Command::Repair(repair) => repair.run(&common).await,
        Command::Nodes(command) => command.run(&common).await,
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
