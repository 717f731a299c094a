//! `cargo xtask test`, the command that must pass before a change is merged: formatting, lints,
//! tests (including tidy) with the PostgreSQL that they need, the packages of a release, the simulator, and
//! hostile input. It stops at the first step that fails. `cargo xtask hostile` only sends hostile input to a real server.

use std::{
    fmt,
    time::{Duration, Instant},
};

use crate::{
    output, packages,
    problem::Problem,
    workspace::{self, Workspace},
};

const SIMULATOR: &str = "abide-sim";

/// Seeds of a simulator run, unless `--seeds` is given.
const SEEDS: u64 = 20_000;

/// Time limit of the simulator in seconds, regardless of remaining seeds.
const SIMULATOR_SECONDS: u64 = 150;

/// Time limit of the search for deliberate bugs, in seconds.
const BUG_HUNT_SECONDS: u64 = 30;

/// All steps together take no longer than this on two cores, so that people still run them.
const MINUTES_MAX: u64 = 75;

/// Minutes of the fuzzer, after the scenarios. The machine may run other things too, so response times
/// are not checked.
const HOSTILE_MINUTES: &str = "2";

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<String>,
    pub(crate) fix: &'static str,
}

/// Runs every step in order.
pub(crate) fn run(options: &[&str]) -> Result<(), Vec<Problem>> {
    let seeds = seeds(options)?;
    let workspace = Workspace::load()?;
    let simulated = workspace.has_package(SIMULATOR);
    let steps = steps(seeds, simulated, packages::arguments(&workspace, &packages::QUICK));
    let mut times = Vec::new();
    let started_at = Instant::now();
    for (index, step) in steps.iter().enumerate() {
        output::line(&heading(index + 1, steps.len(), step));
        let step_started_at = Instant::now();
        perform(step, started_at)?;
        let elapsed = minutes(step_started_at.elapsed());
        output::line(&format!("{} passed in {elapsed}", step.name));
        times.push(format!("{elapsed:>9}  {}", step.name));
    }
    if !simulated {
        output::line(&format!("\nsimulator skipped: the workspace has no package {SIMULATOR}"));
    }
    let elapsed = started_at.elapsed();
    output::line(&format!("\n{}", times.join("\n")));
    output::line(&format!("test: all {} steps passed in {}", steps.len(), minutes(elapsed)));
    Ok(in_time(elapsed)?)
}

fn in_time(elapsed: Duration) -> Result<(), Problem> {
    if elapsed <= Duration::from_secs(MINUTES_MAX * 60) {
        return Ok(());
    }
    let what = format!("took {}; the limit is {MINUTES_MAX} min", minutes(elapsed));
    Err(Problem::new(
        "cargo xtask test",
        what,
        "make the slowest step faster, or run it on idle cores",
    ))
}

fn steps(seeds: u64, simulated: bool, package: Vec<String>) -> Vec<Step> {
    let step = |name, command: &str, fix| Step {
        name,
        arguments: command.split(' ').map(str::to_owned).collect(),
        fix,
    };
    let mut steps = vec![
        step("format", "fmt --all --check", "run `cargo fmt --all`"),
        step(
            "lint",
            "clippy --workspace --all-targets --locked -- -D warnings",
            "follow clippy's advice; an exception is an #[expect] with its reason",
        ),
        step(
            "PostgreSQL",
            "run --locked -p abide-postgres-fixture",
            "install the package postgresql, or name the folder of its programs in PG_BIN",
        ),
        step(
            "tests",
            "test --workspace --locked",
            "run the failed test alone with `cargo test -p <package> <name>`",
        ),
    ];
    steps.push(packages::step(package));
    if simulated {
        let run = format!("run --release --locked -p {SIMULATOR} --");
        steps.push(step(
            "simulator",
            &format!("{run} --seeds {seeds} --seconds {SIMULATOR_SECONDS}"),
            "repeat the seed it names with `cargo run --release -p abide-sim -- --seed S`",
        ));
        steps.push(step(
            "simulator's deliberate bugs",
            &format!("{run} --bugs --seconds {BUG_HUNT_SECONDS}"),
            "the simulator no longer finds a bug that is put in on purpose: \
             look at what changed in its faults or checkers",
        ));
    }
    steps.push(hostile_step(&["--minutes", HOSTILE_MINUTES, "--shared"]));
    steps
}

/// `cargo xtask hostile`: only that step, with these options.
pub(crate) fn hostile(options: &[&str]) -> Result<(), Vec<Problem>> {
    Ok(perform(&hostile_step(options), Instant::now())?)
}

fn hostile_step(options: &[&str]) -> Step {
    let run = ["run", "--release", "--locked", "-p", "abide-hostile", "--"];
    Step {
        name: "hostile input",
        arguments: run.iter().chain(options).map(|word| (*word).to_owned()).collect(),
        fix: "repeat it with the command that it names; `--only NAME` plays one scenario",
    }
}

pub(crate) fn perform(step: &Step, started_at: Instant) -> Result<(), Problem> {
    let status = workspace::cargo().args(&step.arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failure(step, status, started_at.elapsed())),
        Err(error) => Err(failure(step, error, started_at.elapsed())),
    }
}

fn failure(step: &Step, reason: impl fmt::Display, elapsed: Duration) -> Problem {
    let what = format!("failed with {reason}, {} after the start", minutes(elapsed));
    Problem::new(command_line(step), what, step.fix)
}

fn seeds(options: &[&str]) -> Result<u64, Problem> {
    let refused = |what: String| {
        Problem::new("cargo xtask test", what, "use `cargo xtask test` or `... test --seeds 500`")
    };
    match options {
        [] => Ok(SEEDS),
        ["--seeds", number] => number
            .parse()
            .map_err(|error| refused(format!("--seeds takes a number, not `{number}`: {error}"))),
        _ => Err(refused(format!("does not understand `{}`", options.join(" ")))),
    }
}

fn heading(number: usize, count: usize, step: &Step) -> String {
    format!("\n==> {number}/{count} {}: {}", step.name, command_line(step))
}

fn command_line(step: &Step) -> String {
    format!("cargo {}", step.arguments.join(" "))
}

fn minutes(elapsed: Duration) -> String {
    format!("{:.1} min", elapsed.as_secs_f64() / 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_runs_only_where_it_exists() {
        let package = || vec!["package".to_owned()];
        assert_eq!(steps(7, false, package()).len(), 6);
        let lines: Vec<String> = steps(7, true, package()).iter().map(command_line).collect();
        assert_eq!(
            lines[4..],
            [
                "cargo package",
                "cargo run --release --locked -p abide-sim -- --seeds 7 --seconds 150",
                "cargo run --release --locked -p abide-sim -- --bugs --seconds 30",
                "cargo run --release --locked -p abide-hostile -- --minutes 2 --shared",
            ]
        );
    }

    #[test]
    fn options_are_understood_or_refused() {
        assert_eq!(seeds(&[]), Ok(SEEDS));
        assert_eq!(seeds(&["--seeds", "5"]), Ok(5));
        assert!(seeds(&["--seeds", "five"]).unwrap_err().what.contains("`five`"));
        assert!(seeds(&["--fast"]).unwrap_err().what.contains("`--fast`"));
    }

    #[test]
    fn a_run_that_takes_too_long_fails() {
        assert_eq!(in_time(Duration::from_secs(75 * 60)), Ok(()));
        let problem = in_time(Duration::from_secs(75 * 60 + 6)).unwrap_err();
        assert_eq!(problem.what, "took 75.1 min; the limit is 75 min");
    }

    #[test]
    fn a_failed_step_says_what_where_and_how_to_fix_it() {
        let step = &steps(7, false, Vec::new())[0];
        assert_eq!(
            failure(step, "exit status: 1", Duration::from_secs(90)).to_string(),
            "cargo fmt --all --check: failed with exit status: 1, 1.5 min after the start\n  \
             fix: run `cargo fmt --all`"
        );
    }
}
