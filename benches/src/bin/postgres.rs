//! Measures the PostgreSQL store: transitions per second with group commit, compared with one
//! transaction each. Every measurement creates its own schema in the database, to be dropped
//! afterwards.

use std::{error::Error, time::Duration};

use abide_benches::{
    clients::{Measured, Until},
    postgres,
    report::{Line, median, print, progress},
    workload::Workload,
};
use abide_store_postgres::Options;
use clap::Parser;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures the PostgreSQL store.
#[derive(Parser)]
struct Arguments {
    /// The database, as postgres://user:password@host:port/database.
    #[arg(long)]
    address: String,
    /// One JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Number of interleaved repetitions of each pair; the median is reported.
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Numbers of clients to measure.
    #[arg(long, value_delimiter = ',', default_value = "1,16,256,2048")]
    clients: Vec<usize>,
    /// Number of write transactions in flight, instead of the default.
    #[arg(long)]
    writers: Option<usize>,
    /// Skip the measurement with one transaction each.
    #[arg(long)]
    groups_only: bool,
}

/// Connections that commit one transition each; more were not faster.
const SINGLE_WRITERS: usize = 16;

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let mut groups = Options::new(&arguments.address)?;
    groups.writers = arguments.writers.unwrap_or(groups.writers);
    let mut singles = groups.clone();
    (singles.writers, singles.group_batches_max) = (SINGLE_WRITERS, 1);
    let time = Until::Elapsed(Duration::from_secs_f64(arguments.seconds));
    let mut lines = Vec::new();
    for clients in arguments.clients {
        let (mut single, mut grouped) = (Vec::new(), Vec::new());
        for repetition in 0..arguments.repetitions {
            progress(format_args!("{clients} clients, repetition {}", repetition + 1));
            if !arguments.groups_only {
                single.push(fresh(&singles, clients, time)?);
            }
            grouped.push(fresh(&groups, clients, time)?);
        }
        let grouped = median(grouped);
        let mut ratio = None;
        if !arguments.groups_only {
            let single = median(single);
            ratio = Some(("one transaction each", grouped.rate() / single.rate()));
            let name = "one transaction each";
            lines.push(Line { name, clients, measured: single, ratio: None });
        }
        lines.push(Line { name: "groups", clients, measured: grouped, ratio });
    }
    print(&lines, arguments.json)?;
    Ok(())
}

/// Measures a new store with this many clients.
fn fresh(options: &Options, clients: usize, until: Until) -> Outcome<Measured> {
    let (measured, counts) = postgres::fresh(options, Workload::Hello, clients, until)?;
    progress(format_args!("{counts:?}, {:.0}/s", measured.rate()));
    Ok(measured)
}
