//! Measures the SQLite store: transitions per second compared with a raw log, after two million
//! transitions, and with a million sleeping runs. Progress goes to stderr, the table (or JSON) to
//! stdout.

use std::{error::Error, path::PathBuf, time::Duration};

use abide_benches::{
    clients::{Until, drive},
    raw_log::RawLog,
    report::{Line, median, print, progress},
    sqlite,
    workload::{self, Workload, crowd},
};
use abide_store::Store;
use abide_store_sqlite::{Options, SqliteStore};
use clap::Parser;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures the SQLite store against a raw log.
#[derive(Parser)]
struct Arguments {
    /// One JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Number of interleaved repetitions of each pair; the median is reported.
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// A short measurement: one second each, once, and a tenth of the rows.
    #[arg(long)]
    quick: bool,
    /// Folder for the files; a temporary folder in it is removed at the end.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
}

/// How much to measure.
struct Plan {
    time: Until,
    repetitions: usize,
    aged_transitions: u64,
    sleepers: u64,
    directory: PathBuf,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let directory = tempfile::tempdir_in(&arguments.directory)?;
    let seconds = if arguments.quick { 1.0 } else { arguments.seconds };
    let plan = Plan {
        time: Until::Elapsed(Duration::from_secs_f64(seconds)),
        repetitions: if arguments.quick { 1 } else { arguments.repetitions },
        aged_transitions: if arguments.quick { 200_000 } else { 2_000_000 },
        sleepers: if arguments.quick { 100_000 } else { 1_000_000 },
        directory: directory.path().to_owned(),
    };
    let mut lines = beside_a_raw_log(&plan)?;
    lines.extend(after_many_transitions(&plan)?);
    lines.extend(with_sleepers(&plan)?);
    print(&lines, arguments.json)?;
    Ok(())
}

fn beside_a_raw_log(plan: &Plan) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for clients in [1, 16, 256, 2048] {
        let (mut raw, mut sqlite) = (Vec::new(), Vec::new());
        for repetition in 0..plan.repetitions {
            progress(format_args!("{clients} clients, repetition {}", repetition + 1));
            let log = RawLog::create(&plan.directory.join("raw"))?;
            raw.push(drive(&log, &mut crowd(clients, Workload::Hello), plan.time)?);
            drop(log);
            std::fs::remove_file(plan.directory.join("raw"))?;
            sqlite.push(sqlite::fresh(&plan.directory, Workload::Hello, clients, plan.time)?);
        }
        let (raw, sqlite) = (median(raw), median(sqlite));
        let ratio = Some(("raw log", sqlite.rate() / raw.rate()));
        lines.push(Line { name: "raw log", clients, measured: raw, ratio: None });
        lines.push(Line { name: "sqlite", clients, measured: sqlite, ratio });
    }
    Ok(lines)
}

fn after_many_transitions(plan: &Plan) -> Outcome<Vec<Line>> {
    let numbered = aged(plan, "after many transitions", Workload::Hello)?;
    let random = aged(plan, "after many transitions, random ids", Workload::HelloRandomIds)?;
    Ok(numbered.into_iter().chain(random).collect())
}

fn aged(plan: &Plan, name: &'static str, workload: Workload) -> Outcome<Vec<Line>> {
    progress(format_args!("{} transitions", plan.aged_transitions));
    let store = fresh_at(plan, name)?;
    drive(&store, &mut crowd(2048, workload), Until::Transitions(plan.aged_transitions))?;
    compared(plan, &store, name, workload)
}

fn with_sleepers(plan: &Plan) -> Outcome<Vec<Line>> {
    progress(format_args!("{} sleeping runs", plan.sleepers));
    let full = fresh_at(plan, "full")?;
    fill(&full, plan.sleepers)?;
    let mut lines = compared(plan, &full, "hello beside sleepers", Workload::Hello)?;
    lines.extend(compared(plan, &full, "sleep beside sleepers", Workload::Sleep)?);
    Ok(lines)
}

/// Commits in large batches, since only the rows matter here.
fn fill(store: &SqliteStore, runs: u64) -> Outcome<()> {
    let mut pending = Vec::new();
    for batch in workload::sleepers(runs, 0) {
        pending.push(store.commit(batch));
        if pending.len() == 4096 {
            pending.drain(..).try_for_each(pollster::block_on)?;
        }
    }
    pending.into_iter().try_for_each(pollster::block_on)?;
    Ok(())
}

/// Measures with 256 clients, interleaved with a fresh store.
fn compared(
    plan: &Plan,
    store: &SqliteStore,
    name: &'static str,
    workload: Workload,
) -> Outcome<Vec<Line>> {
    let (mut there, mut here) = (Vec::new(), Vec::new());
    for repetition in 0..plan.repetitions {
        progress(format_args!("{name}, repetition {}", repetition + 1));
        there.push(sqlite::fresh(&plan.directory, workload, 256, plan.time)?);
        here.push(drive(store, &mut crowd(256, workload), plan.time)?);
    }
    let (there, here) = (median(there), median(here));
    let ratio = Some(("fresh", here.rate() / there.rate()));
    Ok(vec![
        Line { name: "fresh", clients: 256, measured: there, ratio: None },
        Line { name, clients: 256, measured: here, ratio },
    ])
}

fn fresh_at(plan: &Plan, name: &str) -> Outcome<SqliteStore> {
    Ok(SqliteStore::open(&Options::new(plan.directory.join(name)))?)
}
