//! `abide bench hello`: runs with one activity each, as many as possible.

use std::time::{Duration, Instant};

use abide::Client;
use abide_benches::latencies::Latencies;
use abide_command::Failed;
use clap::Args;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    machine::Usage,
    place::Deployment,
    report::{Report, spinner},
    session::Session,
    workflows::{QUEUE, greeting},
};

/// Measure whole runs: started, one activity, completed, result seen by the client
#[derive(Args)]
#[command(after_help = "Example:
  abide bench hello --concurrency 256 --seconds 10
  abide bench hello --spawn
  abide bench hello --address http://127.0.0.1:7233")]
pub(crate) struct Hello {
    /// How many runs at a time
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    concurrency: usize,
    /// Put server and worker into processes of their own
    #[arg(long, conflicts_with = "address")]
    spawn: bool,
}

/// Warm-up before anything is measured, for code and caches.
pub(crate) const WARM_UP: Duration = Duration::from_millis(500);

impl Default for Hello {
    fn default() -> Self {
        Self { concurrency: 256, spawn: false }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) runs_per_s: f64,
    pub(crate) concurrency: usize,
}

impl Hello {
    /// The measurement with server and worker in their own processes.
    pub(crate) fn spawned() -> Self {
        Self { spawn: true, ..Self::default() }
    }

    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), Failed> {
        let directory = session.directory.path().join(if self.spawn { "spawned" } else { "hello" });
        std::fs::create_dir_all(&directory)?;
        let place = if self.spawn {
            Deployment::spawned(&directory).await?
        } else {
            Deployment::given(session.common, &directory).await?
        };
        let clients = [place.client.clone()];
        drive(&clients, self.concurrency, WARM_UP).await?;
        let bar = spinner(format!("hello, {}, {} at a time", place.what, self.concurrency));
        let (committed, used) = (place.committed(), Usage::of(&place.processes));
        let begun = Instant::now();
        let latencies = drive(&clients, self.concurrency, session.time).await?;
        let elapsed = begun.elapsed();
        bar.finish_and_clear();
        let runs = latencies.len() as f64;
        let committed = committed.zip(place.committed());
        let used = used.zip(Usage::of(&place.processes));
        let runs_per_s = runs / elapsed.as_secs_f64();
        let per_run = |value: f64| value / runs;
        let latencies = Latencies::from(latencies);
        session.report(
            &Report::new("hello", format!("{}, {} at a time", place.what, self.concurrency))
                .count("concurrency", self.concurrency as u64)
                .count("runs", latencies.count() as u64)
                .figure("runs_per_s", runs_per_s)
                .figure("p50_ms", latencies.percentile_ms(50))
                .figure("p99_ms", latencies.percentile_ms(99))
                .known(
                    "cpu_ms_per_run",
                    used.map(|(before, after)| {
                        per_run((after.cpu.saturating_sub(before.cpu)).as_secs_f64() * 1e3)
                    }),
                )
                .known(
                    "bytes_per_run",
                    used.map(|(before, after)| per_run((after.written - before.written) as f64)),
                )
                .known(
                    "commits_per_run",
                    committed.map(|(before, after)| {
                        per_run((after.transactions - before.transactions) as f64)
                    }),
                )
                .known(
                    "batches_per_run",
                    committed
                        .map(|(before, after)| per_run((after.batches - before.batches) as f64)),
                ),
        )?;
        place.end().await?;
        let figures = Figures { runs_per_s, concurrency: self.concurrency };
        if self.spawn {
            session.figures.hello_spawned = Some(figures);
        } else if session.measures_itself() {
            session.figures.hello = Some(figures);
        }
        Ok(())
    }
}

/// Drives so many clients side by side for so long, each with one run after another. Returns how
/// long each run took.
pub(crate) async fn drive(
    clients: &[Client],
    concurrency: usize,
    time: Duration,
) -> Result<Vec<Duration>, Failed> {
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for client in clients.iter().cycle().take(concurrency) {
        let client = client.clone();
        callers.spawn(async move {
            let mut latencies = Vec::new();
            while begun.elapsed() < time {
                let before = Instant::now();
                let id = format!("hello-{}", Uuid::now_v7());
                let start = greeting::start(&client, id, "world").queue(QUEUE);
                start.await?.result().await?;
                latencies.push(before.elapsed());
            }
            Ok::<_, Failed>(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(caller) = callers.join_next().await {
        latencies.extend(caller.map_err(Failed::refused)??);
    }
    Ok(latencies)
}
