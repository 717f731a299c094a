//! `abide bench idle`: what sleeping runs cost while nothing happens, and how fast an engine with
//! many of them restarts.

use std::time::{Duration, Instant};

use abide::prelude::days;
use abide_command::{Common, Failed, time::moment};
use clap::Args;
use tokio::time::sleep;

use crate::{
    options::at_least_one,
    processes::Processes,
    report::Report,
    session::Session,
    sleepers::{WARM, all_wait, fall_asleep},
    workflows::WaitFor,
};

/// Measure what sleeping runs cost: memory, time to be ready again, processor time while idle
#[derive(Args)]
#[command(after_help = "Example:
  abide bench idle --runs 100000")]
pub(crate) struct Idle {
    /// How many runs sleep
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = at_least_one)]
    runs: u64,
}

/// Longer than any measurement.
const SLEEP: Duration = days(7);

/// How long to let everything settle before memory is read.
const REST: Duration = Duration::from_secs(2);

pub(crate) struct Figures {
    pub(crate) runs: u64,
    pub(crate) added_mb: Option<f64>,
    pub(crate) ready_s: f64,
    pub(crate) cpu_percent: Option<f64>,
}

impl Idle {
    /// The measurement with so many runs.
    pub(crate) const fn with(runs: u64) -> Self {
        Self { runs }
    }

    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let data = session.directory.path().join("idle");
        let processes = Processes::start(&data).await?;
        let client = Common::at(processes.url.clone()).client().await?;
        let due = WaitFor::Until(moment(SLEEP)?);
        fall_asleep(&client, "runs that fill the worker's cache", WARM, |_| due).await?;
        all_wait(&client, WARM).await?;
        sleep(REST).await;
        let before = processes.memory();
        fall_asleep(&client, "sleeping runs", self.runs, |_| due).await?;
        all_wait(&client, WARM + self.runs).await?;
        sleep(REST).await;
        let after = processes.memory();
        // Work after the starts goes on for seconds: timeouts of tasks, pages that are copied.
        sleep(session.time * 3).await;
        let cpu_percent = processes.watch(session.time).await;
        drop(client);
        processes.end().await?;

        let begun = Instant::now();
        let processes = Processes::start(&data).await?;
        let ready_s = (processes.ready - begun).as_secs_f64();
        sleep(REST).await;
        let again = processes.memory();
        processes.end().await?;

        let added_mb = before.zip(after).map(|(before, after)| after.above(before));
        session.report(
            &Report::new("idle", format!("{} sleeping runs", self.runs))
                .count("runs", self.runs)
                .known("server_mb_before", before.map(|memory| memory.server_mb))
                .known("server_mb_after", after.map(|memory| memory.server_mb))
                .known("server_mb_after_restart", again.map(|memory| memory.server_mb))
                .known("worker_mb_before", before.map(|memory| memory.worker_mb))
                .known("worker_mb_after", after.map(|memory| memory.worker_mb))
                .known("rss_mb_added", added_mb)
                .figure("restart_ready_s", ready_s)
                .known("idle_cpu_percent", cpu_percent),
        )?;
        session.figures.idle = Some(Figures { runs: self.runs, added_mb, ready_s, cpu_percent });
        Ok(())
    }
}
