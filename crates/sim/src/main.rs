//! Command line of the simulator: runs seeds, or shows that it finds every deliberate bug.

#![expect(clippy::print_stdout, reason = "this is what the program is for")]

mod progress;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use abide_sim::{
    runner::{self, Campaign, Lines, Outcome, Summary},
    sabotage::Bug,
};
use clap::Parser;

use crate::progress::Progress;

/// Default number of seeds.
const SEEDS: u64 = 1_000;

/// Runs worlds of shards, stores, workers and clients in which much fails, and checks what must
/// hold.
#[derive(Parser)]
struct Arguments {
    /// Number of seeds to run.
    #[arg(long)]
    seeds: Option<u64>,
    /// First seed; without --seeds, the only one.
    #[arg(long)]
    seed: Option<u64>,
    /// Start no seed after this many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Show that every deliberate bug is found.
    #[arg(long)]
    bugs: bool,
    /// Inject this deliberate bug into every world.
    #[arg(long, value_parser = bug)]
    bug: Option<Bug>,
    /// Print everything that happened in the failing seed.
    #[arg(long)]
    trace: bool,
}

fn bug(name: &str) -> Result<Bug, String> {
    let found = Bug::ALL.iter().find(|bug| bug.name() == name).copied();
    let names = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("the bugs are {}", names()))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    runner::silence_panics();
    if arguments.bugs { find_bugs(&arguments) } else { run_seeds(&arguments) }
}

fn run_seeds(arguments: &Arguments) -> ExitCode {
    let alone = if arguments.seed.is_some() { 1 } else { SEEDS };
    let seeds = arguments.seeds.unwrap_or_else(|| match arguments.bug {
        Some(bug) if arguments.seed.is_none() => bug.found_within(),
        _ => alone,
    });
    let campaign = arguments.campaign(seeds, arguments.bug);
    let progress = Progress::new(seeds);
    let summary = campaign.run(|summary| progress.show(summary));
    progress.finish();
    println!("{}", describe(&summary, progress.elapsed()));
    match &summary.failure {
        Some(failure) => {
            explain(failure, arguments);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

impl Arguments {
    fn campaign(&self, seeds: u64, bug: Option<Bug>) -> Campaign {
        let until = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        Campaign { first: self.seed.unwrap_or_default(), seeds, until, bug }
    }
}

fn describe(summary: &Summary, elapsed: Duration) -> String {
    let counts = summary.counts;
    let each = |count: u64| count / summary.seeds.max(1);
    let rate = progress::rate(summary.seeds, elapsed);
    format!(
        "{} seeds in {:.1} s ({rate:.0} per second); each on average: {} inputs, {} faults, {} runs, \
         {} events, {} timers and {} moves of them, {} requests acknowledged; {} tasks saw a timer fire \
         and a signal come",
        summary.seeds,
        elapsed.as_secs_f64(),
        each(counts.inputs),
        each(counts.faults),
        each(counts.runs),
        each(counts.events),
        each(counts.timers),
        each(counts.moves),
        each(counts.acknowledged),
        counts.close_calls,
    )
}

/// Prints what was wrong, what happened before, and how to reproduce it.
fn explain(failure: &Outcome, arguments: &Arguments) {
    let lines = if arguments.trace { Lines::All } else { Lines::OfTheRun };
    let again = runner::trace_seed(failure.seed, arguments.bug, lines);
    let Some(violation) = &again.violation else { return };
    println!("\nseed {} is wrong", failure.seed);
    println!("{violation}");
    let shown = if arguments.trace { again.trace.len() } else { TRACE_LINES };
    let from = again.trace.len().saturating_sub(shown);
    for line in &again.trace[from..] {
        println!("  {line}");
    }
    let bug = arguments.bug.map_or_else(String::new, |bug| format!(" --bug {}", bug.name()));
    println!("\nrepeat it: cargo run --release -p abide-sim -- --seed {}{bug}", failure.seed);
}

/// Lines of the trace that are shown unless all are requested.
const TRACE_LINES: usize = 30;

fn find_bugs(arguments: &Arguments) -> ExitCode {
    let bugs: Vec<_> = match arguments.bug {
        Some(bug) => vec![bug],
        None => Bug::ALL.to_vec(),
    };
    let mut missed = 0;
    println!("{:<24} {:>6} {:>8}  found by", "bug", "seed", "within");
    for bug in bugs {
        let seeds = arguments.seeds.unwrap_or_else(|| bug.found_within());
        let summary = arguments.campaign(seeds, Some(bug)).run(|_| {});
        let found = summary.failure.as_ref().and_then(|failure| {
            let violation = failure.violation.as_ref()?;
            Some((failure.seed, violation.check))
        });
        match found {
            Some((seed, check)) => println!("{:<24} {seed:>6} {seeds:>8}  {check}", bug.name()),
            None => {
                missed += 1;
                println!("{:<24} {:>6} {seeds:>8}  NOT FOUND: {}", bug.name(), "-", bug.what());
            }
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
