//! Hostile input on the command line: plays scenarios and prints what they found.

#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use abide_hostile::{Finding, Machine, Report, fuzz::Campaign, scenarios, serve};
use clap::{Parser, Subcommand};
use indicatif::ProgressBar;

/// The same allocator as `abide`, so that memory figures are comparable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Attacks a real server process, and reports every crash, hang, leak and harm to other clients.
#[derive(Parser)]
struct Arguments {
    /// Run only this scenario; repeat for several. The fuzzer is called "fuzz".
    #[arg(long)]
    only: Vec<String>,
    /// For how long the fuzzer runs, after the scenarios.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Seed of the fuzzer's first round. Random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Maximum number of fuzzer rounds.
    #[arg(long, default_value_t = u64::MAX)]
    rounds: u64,
    /// The machine is shared with other work: report latencies, but do not count them as findings.
    #[arg(long)]
    shared: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server that is attacked.
    #[command(hide = true)]
    Serve {
        /// Path of its configuration file.
        config: PathBuf,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        Some(Command::Serve { config }) => serve::serve(&config).await,
        None => play(&arguments).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            println!("{finding}");
            ExitCode::FAILURE
        }
    }
}

/// Name of the fuzzer on the command line.
const FUZZ: &str = "fuzz";

/// Plays the requested scenarios, or all, and then the fuzzer.
async fn play(arguments: &Arguments) -> Result<(), Finding> {
    let asked =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|it| it == name);
    let names = || scenarios::ALL.iter().map(|scenario| scenario.name).chain([FUZZ]);
    if let Some(unknown) = arguments.only.iter().find(|it| names().all(|name| name != **it)) {
        let names: Vec<_> = names().collect();
        let names = names.join(", ");
        return Err(Finding::new(format!("there is no scenario {unknown}; there are: {names}")));
    }
    let began = Instant::now();
    let machine = if arguments.shared { Machine::Shared } else { Machine::Own };
    let mut findings = 0;
    for scenario in scenarios::ALL.iter().filter(|scenario| asked(scenario.name)) {
        println!("{}: {}", scenario.name, scenario.plays);
        findings += tell(scenario.name, scenario.play(machine)).await;
    }
    if asked(FUZZ) {
        findings += tell(FUZZ, fuzz(arguments)).await;
    }
    let took = began.elapsed().as_secs();
    println!("{findings} findings in {took} s");
    Finding::unless(findings == 0, || "the attacks had findings".to_owned())
}

async fn fuzz(arguments: &Arguments) -> Result<Report, Finding> {
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1 << 40));
    println!("{FUZZ}: messages by every method and both streams, valid and mutated; seed {seed}");
    let until = Instant::now() + Duration::try_from_secs_f64(60.0 * arguments.minutes)?;
    let bar = ProgressBar::new_spinner();
    let played = Campaign { seed, rounds: arguments.rounds, until }
        .run(|tally| {
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            bar.set_message(format!(
                "{} rounds, {} messages, {left} s left",
                tally.rounds, tally.messages
            ));
            bar.tick();
        })
        .await;
    bar.finish_and_clear();
    played
}

/// Prints the outcome; returns 1 if there was a finding, and 0 otherwise.
async fn tell(name: &str, play: impl Future<Output = Result<Report, Finding>>) -> usize {
    let began = Instant::now();
    let played = play.await;
    let took = began.elapsed();
    match played {
        Ok(report) => {
            println!("{name}: held for {took:.1?}: {report}");
            0
        }
        Err(finding) => {
            println!("{name}: FOUND after {took:.1?}: {finding}");
            1
        }
    }
}
