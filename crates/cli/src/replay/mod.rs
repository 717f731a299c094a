//! `abide replay`: does a new build of a worker's program fit the histories of existing runs?
//!
//! `histories` gathers them, from files or from a server; `program` starts the worker's program,
//! which replays them, and reads its report.

mod histories;
mod program;

use std::{ffi::OsString, path::PathBuf};

use abide::__private::worker::ReplayOutcome;
use abide_command::{Common, Failed, Output, Table, time::parse_length};
use abide_core::{list::RunFilter, visible::visible};
use clap::Args;
use serde_json::json;

use self::histories::{Fetched, Gathered};
use crate::workflow::Filter;

/// Check a new worker build against recorded histories
#[derive(Args)]
#[command(
    after_help = "Starts the worker program once, with the environment variable ABIDE_REPLAY set. Its workers then
replay the histories instead of connecting to an engine.

Example:
  abide replay tests/*.history -- ./target/release/worker
  abide replay tests/histories -- cargo run --bin worker
  abide replay --type order --status open --limit 500 -- ./target/release/worker"
)]
pub(crate) struct Replay {
    /// Files from `abide workflow history --record`, or directories of .history files [default: fetch
    /// histories from the engine]
    #[arg(value_name = "FILE")]
    histories: Vec<PathBuf>,
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of histories to fetch, newest runs first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// Time limit for the program
    #[arg(long, value_name = "LENGTH", default_value = "1m", value_parser = parse_length)]
    timeout: std::time::Duration,
    /// Worker program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// A history and its outcome.
struct Replayed {
    history: histories::History,
    end: ReplayEnd,
}

/// The outcome of a history.
enum ReplayEnd {
    /// A worker has replayed it.
    Outcome(ReplayOutcome),
    /// A worker has the workflow, but the program did not get to it, for this reason.
    NotReplayed(String),
    /// No worker has the workflow.
    UnknownType,
}

impl Replay {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let folder = tempfile::tempdir()?;
        let filter = RunFilter::from(self.filter);
        let Gathered { histories, fetched } = if self.histories.is_empty() {
            histories::fetch(&common.client().await?, filter, self.limit, folder.path()).await?
        } else if filter != RunFilter::default() {
            return Err(Failed::usage("history files and run filters cannot be combined")
                .hint("omit either the files or the filters, such as --type and --status"));
        } else {
            histories::of_files(&self.histories)?
        };
        if let Some(Fetched { runs, of }) = fetched
            && !common.json
        {
            common.output().line(format_args!("fetched the histories of {runs} of {of} runs"))?;
        }
        let replayed =
            program::replay(&self.program, self.timeout, folder.path(), histories).await?;
        show(&replayed, common.output())?;
        judge(&replayed)
    }
}

fn show(replayed: &[Replayed], output: Output) -> Result<(), Failed> {
    if output.json() {
        return replayed.iter().try_for_each(|Replayed { history, end }| {
            let (outcome, message) = told(end);
            output.object(&json!({
                "history": history.name, "workflow": history.workflow, "run": history.run,
                "type": history.workflow_type, "events": history.events,
                "outcome": outcome, "message": message,
            }))
        });
    }
    let mut table = Table::new(["history", "type", "events", "outcome"]);
    for Replayed { history, end } in replayed {
        let (outcome, _) = told(end);
        let (name, workflow_type) = (history.name.clone(), history.workflow_type.clone());
        table.row([name, workflow_type, history.events.to_string(), outcome.replace('_', " ")]);
    }
    output.lines(table)?;
    for Replayed { history, end } in replayed {
        if let (_, Some(message)) = told(end) {
            output.lines(format_args!("\n{}: {message}", visible(&history.name)))?;
        }
    }
    Ok(())
}

/// The outcome as programs read it, and the text for people.
fn told(end: &ReplayEnd) -> (&'static str, Option<&str>) {
    match end {
        ReplayEnd::Outcome(ReplayOutcome::Fits) => ("fits", None),
        ReplayEnd::Outcome(ReplayOutcome::Mismatch(message)) => ("mismatch", Some(message)),
        ReplayEnd::Outcome(ReplayOutcome::Fault(message)) => ("fault", Some(message)),
        ReplayEnd::Outcome(ReplayOutcome::Unreadable(message)) => ("unreadable", Some(message)),
        ReplayEnd::NotReplayed(why) => ("not_replayed", Some(why)),
        ReplayEnd::UnknownType => ("unknown_type", None),
    }
}

fn judge(replayed: &[Replayed]) -> Result<(), Failed> {
    let count = |is: fn(&ReplayEnd) -> bool| replayed.iter().filter(|one| is(&one.end)).count();
    let fitting = count(|end| matches!(end, ReplayEnd::Outcome(ReplayOutcome::Fits)));
    let others = replayed.len() - fitting;
    if others == 0 {
        return Ok(());
    }
    let failed =
        Failed::refused(format_args!("{others} of {} histories do not fit", replayed.len()));
    Err(failed.hint(if count(|end| matches!(end, ReplayEnd::NotReplayed(_))) > 0 {
        "after the program stops, because of a history or of --timeout, no further history is replayed"
    } else if count(|end| matches!(end, ReplayEnd::UnknownType)) > 0 {
        "a type is unknown if no worker of the program registers it"
    } else {
        "keep the old code behind `ctx.patched(\"...\")`, or let these runs finish with the old build"
    }))
}
