//! Hostile input on the command line: plays scenarios and tells what they found.

#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::{path::PathBuf, process::ExitCode, time::Instant};

use abide_hostile::{
    Finding,
    scenarios::{self, Scenario},
    serve,
};
use clap::{Parser, Subcommand};

/// The allocator of `abide`, so that memory is what it would be there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Does to a true server what strangers may do, and tells what it could not stand.
#[derive(Parser)]
struct Arguments {
    /// Play only the scenarios of these names.
    #[arg(long)]
    only: Vec<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Be the server that is attacked.
    #[command(hide = true)]
    Serve {
        /// Its configuration.
        config: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Some(Command::Serve { config }) => serve::serve(&config).await,
        None => play(&arguments.only).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            println!("{finding}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the scenarios of these names, or all.
async fn play(only: &[String]) -> Result<(), Finding> {
    let named = |scenario: &&Scenario| only.is_empty() || only.iter().any(|it| it == scenario.name);
    let chosen: Vec<_> = scenarios::ALL.iter().filter(named).collect();
    Finding::unless(!chosen.is_empty(), || {
        let names: Vec<_> = scenarios::ALL.iter().map(|scenario| scenario.name).collect();
        format!("no such scenario; there are: {}", names.join(", "))
    })?;
    let mut findings = 0;
    for Scenario { name, plays, .. } in &chosen {
        println!("{name}: {plays}");
    }
    for scenario in chosen {
        let began = Instant::now();
        let played = scenario.play().await;
        let took = began.elapsed();
        match played {
            Ok(report) => println!("{}: held in {took:.1?}: {report}", scenario.name),
            Err(finding) => {
                findings += 1;
                println!("{}: FOUND after {took:.1?}: {finding}", scenario.name);
            }
        }
    }
    Finding::unless(findings == 0, || format!("{findings} findings"))
}
