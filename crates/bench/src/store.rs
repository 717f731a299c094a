//! `abide bench store`: the rows and bytes of the transitions of hello, and what a sync of the disk
//! costs.

use abide_benches::{clients::Until, disk, latencies::Latencies, sqlite, workload::Workload};
use abide_command::Failed;
use clap::Args;

use crate::{
    machine::Usage,
    report::{Report, spinner},
    session::Session,
};

/// Measure the store alone: hello's transitions, committed by many clients at once
#[derive(Args)]
#[command(after_help = "Example:
  abide bench store --seconds 10 --clients 1,16,256")]
pub(crate) struct Store {
    /// How many clients, with commas between them; aims need 256
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,16,256")]
    clients: Vec<usize>,
}

impl Default for Store {
    fn default() -> Self {
        Self { clients: vec![256] }
    }
}

/// Number of clients that the aims are about.
const AIMED_CLIENTS: usize = 256;

pub(crate) struct Figures {
    /// Rate of the store with 256 clients.
    pub(crate) transitions_per_s: Option<f64>,
    /// Durations of a single sync of the disk.
    pub(crate) fdatasync: Latencies,
}

impl Store {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let time = session.time;
        let directory = session.directory.path().to_owned();
        let bar = spinner("syncs of the disk");
        let place = directory.clone();
        let fdatasync = blocking(move || {
            disk::fdatasync(&place, time).map_err(|error| {
                Failed::refused(format_args!("the disk cannot be measured: {error}"))
            })
        })
        .await?;
        bar.finish_and_clear();
        session.report(
            &Report::new("disk", "4 kB appended and synced, alone")
                .figure("fdatasync_p50_ms", fdatasync.percentile_ms(50))
                .figure("fdatasync_p99_ms", fdatasync.percentile_ms(99))
                .count("syncs", fdatasync.count() as u64),
        )?;
        let mut figures = Figures { transitions_per_s: None, fdatasync };
        for clients in self.clients {
            let bar = spinner(format!("the store, {clients} clients"));
            let (place, process) = (directory.clone(), [std::process::id()]);
            let before = Usage::of(&process);
            let measured = blocking(move || {
                sqlite::fresh(&place, Workload::Hello, clients, Until::Elapsed(time))
                    .map_err(Failed::refused)
            })
            .await?;
            bar.finish_and_clear();
            if clients == AIMED_CLIENTS {
                figures.transitions_per_s = Some(measured.rate());
            }
            let written = before.zip(Usage::of(&process)).map(|(before, after)| {
                (after.written - before.written) as f64 / measured.transitions as f64
            });
            session.report(
                &Report::new("store", format!("hello's transitions, {clients} clients"))
                    .count("clients", clients as u64)
                    .figure("transitions_per_s", measured.rate())
                    .figure("p50_ms", measured.latencies.percentile_ms(50))
                    .figure("p99_ms", measured.latencies.percentile_ms(99))
                    .known("bytes_per_transition", written),
            )?;
        }
        session.figures.store = Some(figures);
        Ok(())
    }
}

/// Runs blocking work outside the async runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, Failed> {
    tokio::task::spawn_blocking(work).await.map_err(Failed::refused)?
}
