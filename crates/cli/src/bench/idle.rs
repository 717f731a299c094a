//! `abide bench idle`: what sleeping runs cost while nothing happens, and how fast an engine with many
//! of them is ready again.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use abide::Client;
use clap::Args;
use tokio::{process::Child, task::JoinSet, time::sleep};
use uuid::Uuid;

use super::{
    Session,
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
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
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
        let (mut server, mut worker, client) = processes(&data).await?;
        fall_asleep(&client, "runs that fill the worker's cache", WARM).await?;
        sleep(REST).await;
        let before = usage(&server, &worker);
        fall_asleep(&client, "sleeping runs", self.runs).await?;
        sleep(REST).await;
        let after = usage(&server, &worker);
        let cpu_percent = Self::watch(&server, &worker, session.time).await;
        drop(client);
        end(&mut server).await?;
        end(&mut worker).await?;
        let begun = Instant::now();
        let (mut server, url) = spawn_server(&data).await?;
        let ready = begun.elapsed();
        let mut worker = spawn_worker(&url).await?;
        sleep(REST).await;
        let again = usage(&server, &worker);
        end(&mut server).await?;
        end(&mut worker).await?;
        let mb = |usage: Option<Usage>| usage.map(|usage| usage.resident as f64 / 1e6);
        let added_mb = mb(before).zip(mb(after)).map(|(before, after)| after - before);
        session.report(
            &Report::new("idle", format!("{} sleeping runs", self.runs))
                .count("runs", self.runs)
                .known("rss_mb_before", mb(before))
                .known("rss_mb_after", mb(after))
                .known("rss_mb_added", added_mb)
                .known("rss_mb_after_restart", mb(again))
                .figure("restart_ready_s", ready.as_secs_f64())
                .known("idle_cpu_percent", cpu_percent),
        )?;
        let ready_s = ready.as_secs_f64();
        session.figures.idle = Some(Figures { runs: self.runs, added_mb, ready_s, cpu_percent });
        Ok(())
    }

    /// Processor time of both processes, in percent of one core.
    async fn watch(server: &Child, worker: &Child, time: Duration) -> Option<f64> {
        let bar = spinner("idle");
        let (before, begun) = (usage(server, worker)?, Instant::now());
        sleep(time).await;
        let (after, elapsed) = (usage(server, worker)?, begun.elapsed());
        bar.finish_and_clear();
        let used = after.cpu.saturating_sub(before.cpu);
        Some(100.0 * used.as_secs_f64() / elapsed.as_secs_f64())
    }
}

async fn processes(data: &Path) -> Result<(Child, Child, Client), Failed> {
    let (server, url) = spawn_server(data).await?;
    let worker = spawn_worker(&url).await?;
    let common = Common::at(url);
    Ok((server, worker, common.client().await?))
}

fn usage(server: &Child, worker: &Child) -> Option<Usage> {
    Usage::of(&[server.id()?, worker.id()?])
}

async fn end(child: &mut Child) -> Result<(), Failed> {
    child.kill().await.map_err(|error| {
        Failed::refused(format_args!("a process of the benchmark cannot be ended: {error}"))
    })
}

/// Starts so many runs that sleep for long, and waits until each has begun to.
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
