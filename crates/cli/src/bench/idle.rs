//! `abide bench idle`: what sleeping runs cost while nothing happens, and how fast an engine with many
//! of them is ready again.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use abide::Client;
use abide_core::list::{WaitFilter, WaitKind};
use clap::Args;
use tokio::{process::Child, task::JoinSet, time::sleep};
use uuid::Uuid;

use super::{
    Session, at_least_one,
    machine::Usage,
    place::{spawn_server, spawn_worker},
    report::{Report, progress, spinner},
    workflows::{QUEUE, Sleeper},
};
use crate::{connection::Common, failed::Failed, output::moment};

/// Measure what sleeping runs cost: memory, time to be ready again, processor time while idle
#[derive(Args)]
#[command(after_help = "Example:
  abide bench idle --runs 100000")]
pub(super) struct Idle {
    /// How many runs sleep
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = at_least_one)]
    runs: u64,
}

/// Runs that fill the worker's cache before anything counts.
const WARM: u64 = 2_000;

/// Starts that are under way at a time.
const CONCURRENCY: u64 = 256;

/// Longer than any measurement.
const SLEEP: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long everything may take to come to rest before memory is read.
const REST: Duration = Duration::from_secs(2);

/// How long to wait before the sleeping runs are counted again, and how many are listed at a time.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const PAGE: usize = 1_000;

/// What was measured.
pub(super) struct Figures {
    pub(super) runs: u64,
    pub(super) added_mb: Option<f64>,
    pub(super) ready_s: f64,
    pub(super) cpu_percent: Option<f64>,
}

impl Idle {
    /// The measurement with so many runs.
    pub(super) const fn with(runs: u64) -> Self {
        Self { runs }
    }

    pub(super) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let data = session.directory.path().join("idle");
        let processes = Processes::start(&data).await?;
        let client = Common::at(processes.url.clone()).client().await?;
        fall_asleep(&client, "runs that fill the worker's cache", WARM).await?;
        all_sleep(&client, WARM).await?;
        sleep(REST).await;
        let before = processes.memory();
        fall_asleep(&client, "sleeping runs", self.runs).await?;
        all_sleep(&client, WARM + self.runs).await?;
        sleep(REST).await;
        let after = processes.memory();
        // What follows the starts ends seconds after them: timeouts of tasks, pages that are copied.
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

        let added_mb = before.zip(after).map(|(before, after)| after.sum() - before.sum());
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

/// A server and its worker.
struct Processes {
    server: Child,
    worker: Child,
    url: String,
    /// When the server was ready.
    ready: Instant,
}

/// Resident memory, in megabytes.
#[derive(Clone, Copy)]
struct Memory {
    server_mb: f64,
    worker_mb: f64,
}

impl Memory {
    const fn sum(self) -> f64 {
        self.server_mb + self.worker_mb
    }
}

impl Processes {
    async fn start(data: &Path) -> Result<Self, Failed> {
        let (server, url) = spawn_server(data).await?;
        let ready = Instant::now();
        let worker = spawn_worker(&url).await?;
        Ok(Self { server, worker, url, ready })
    }

    fn memory(&self) -> Option<Memory> {
        let mb = |process| Some(Usage::of(&[process])?.resident as f64 / 1e6);
        Some(Memory { server_mb: mb(self.server.id()?)?, worker_mb: mb(self.worker.id()?)? })
    }

    /// Processor time of both, in percent of one core.
    async fn watch(&self, time: Duration) -> Option<f64> {
        let both = [self.server.id()?, self.worker.id()?];
        let bar = spinner("idle");
        let (before, begun) = (Usage::of(&both)?, Instant::now());
        sleep(time).await;
        let (after, elapsed) = (Usage::of(&both)?, begun.elapsed());
        bar.finish_and_clear();
        let used = after.cpu.saturating_sub(before.cpu);
        Some(100.0 * used.as_secs_f64() / elapsed.as_secs_f64())
    }

    /// Kills both, as a crash would.
    async fn end(mut self) -> Result<(), Failed> {
        for process in [&mut self.worker, &mut self.server] {
            process.kill().await.map_err(|error| {
                Failed::refused(format_args!("a process of the benchmark cannot be ended: {error}"))
            })?;
        }
        Ok(())
    }
}

/// Waits until so many runs are listed as sleeping.
async fn all_sleep(client: &Client, runs: u64) -> Result<(), Failed> {
    let bar = progress("asleep", runs);
    loop {
        let asleep = sleeping(client).await?;
        bar.set_position(asleep);
        if asleep >= runs {
            bar.finish_and_clear();
            return Ok(());
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// How many waits for time there are.
async fn sleeping(client: &Client) -> Result<u64, Failed> {
    let mut filter = WaitFilter { kind: Some(WaitKind::Timer), ..WaitFilter::default() };
    let mut count = 0;
    loop {
        let page = client.waits(filter.clone(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        filter.after = Some(last.position());
        count += page.len() as u64;
    }
}

/// Starts so many runs that sleep for long.
async fn fall_asleep(client: &Client, what: &'static str, runs: u64) -> Result<(), Failed> {
    let bar = progress(what, runs);
    let due = moment(SLEEP)?.unix_millis();
    let mut starters = JoinSet::new();
    for starter in 0..CONCURRENCY.min(runs) {
        let (client, bar) = (client.clone(), bar.clone());
        starters.spawn(async move {
            for _ in (starter..runs).step_by(usize::try_from(CONCURRENCY).unwrap_or(1)) {
                let id = format!("idle-{}", Uuid::now_v7());
                client.start::<Sleeper>(id, due).queue(QUEUE).await?;
                bar.inc(1);
            }
            Ok::<_, Failed>(())
        });
    }
    while let Some(starter) = starters.join_next().await {
        starter.map_err(Failed::refused)??;
    }
    bar.finish_and_clear();
    Ok(())
}
