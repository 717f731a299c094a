//! `abide crash-test`: kills the true server and the true worker, again and again, while clients work,
//! and then looks for anything that was lost, doubled or cut short.

mod check;
mod journey;
mod processes;
mod traveller;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use abide::{
    Client,
    grpc::{GrpcOptions, GrpcTransport},
    worker::Worker,
};
use clap::Args;
use fastrand::Rng;
use serde_json::json;
use tokio::sync::watch;

use self::{
    check::Finding,
    journey::{Detour, Journey, Ledger, QUEUE},
    processes::{Processes, Victim},
};
use crate::{connection::Common, failed::Failed};

/// Kill the server and the worker again and again, and look for anything lost
///
/// Starts a server on a fresh data folder and a worker, lets clients run workflows with activities,
/// sleeps, signals, updates and children, and kills the processes with SIGKILL at random moments.
/// Every call that was not answered is repeated with its key. At the end each acknowledged start,
/// signal, update and result must have exactly one effect, no sleep may be cut short, and no activity
/// may run again after its result was recorded.
#[derive(Args)]
#[command(after_help = "Example:
  abide crash-test --kills 1000")]
pub(crate) struct CrashTest {
    /// How often each of the two processes is killed
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// How many clients work at the same time
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Decides who is killed when; by default another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Where everything is kept; by default a temporary folder, which is left if something is found
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Be the worker that is killed
    #[arg(long, hide = true)]
    work: bool,
}

impl CrashTest {
    pub(crate) async fn run(self, common: &Common) -> Result<(), Failed> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let folder = self.folder.clone().unwrap_or_else(|| {
            std::env::temp_dir().join(format!("abide-crash-test-{}", std::process::id()))
        });
        if self.work {
            return work(common, &folder).await;
        }
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failed::usage(format_args!("{}: {error}", folder.display())))?;
        let begun = Instant::now();
        let result = self.torture(seed, &folder).await;
        let journeys = result.map_err(|finding| {
            Failed::refused(format_args!("seed {seed}: {finding}"))
                .hint(format!("everything is in {}", folder.display()))
        })?;
        if self.folder.is_none() {
            // Leftovers in the temporary folder hurt nobody.
            drop(std::fs::remove_dir_all(&folder));
        }
        let (kills, seconds) = (self.kills, begun.elapsed().as_secs_f64());
        let object = json!({
            "seed": seed, "kills_of_server": kills, "kills_of_worker": kills,
            "journeys": journeys, "seconds": seconds,
        });
        let words = format!(
            "{journeys} journeys over {kills} kills of the server and {kills} of the worker in \
             {seconds:.0} s: nothing lost, nothing doubled, no sleep cut short (seed {seed})"
        );
        common.output().say(&object, words)
    }

    async fn torture(&self, seed: u64, folder: &Path) -> Result<usize, Finding> {
        let mut rng = Rng::with_seed(seed);
        let mut processes = Processes::start(folder).map_err(unable("start"))?;
        let client = connect(&processes.url())?;
        let (stop, stopped) = watch::channel(false);
        let travellers: Vec<_> = (0..self.clients)
            .map(|number| {
                let rng = rng.fork();
                tokio::spawn(traveller::travel(client.clone(), rng, number, stopped.clone()))
            })
            .collect();
        self.kill(&mut rng, &mut processes, &travellers).await?;
        // The last journeys end undisturbed.
        stop.send_replace(true);
        let mut journeys = Vec::new();
        for traveller in travellers {
            let made =
                traveller.await.map_err(|error| Finding::new("client", error.to_string()))?;
            journeys.extend(made?);
        }
        let ledger =
            Ledger::read(&processes::ledger_of(folder)).map_err(unable("read the ledger"))?;
        check::everything(&client, &journeys, &ledger).await?;
        Ok(journeys.len())
    }

    async fn kill<T>(
        &self,
        rng: &mut Rng,
        processes: &mut Processes,
        travellers: &[tokio::task::JoinHandle<T>],
    ) -> Result<(), Finding> {
        let mut left = [self.kills; 2];
        while left != [0, 0] {
            tokio::time::sleep(Duration::from_millis(rng.u64(20..800))).await;
            if let Some(victim) = processes.ended().map_err(unable("look after"))? {
                return Err(Finding::new(format!("{victim:?}"), "ended by itself; see its log"));
            }
            if travellers.iter().any(tokio::task::JoinHandle::is_finished) {
                // A client found something; its own words say what.
                return Ok(());
            }
            let victim = processes::choose(rng, left);
            processes.kill(victim).map_err(unable("restart"))?;
            match victim {
                Victim::Server => left[0] -= 1,
                Victim::Worker => left[1] -= 1,
            }
            let done = 2 * self.kills - left[0] - left[1];
            tracing::info!("killed the {victim:?}, {done} of {}", 2 * self.kills);
        }
        Ok(())
    }
}

/// Works for the journeys until it is killed.
async fn work(common: &Common, folder: &Path) -> Result<(), Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::refused(format_args!("worker: {error}"));
    let client = connect(&common.engine_url()).map_err(|error| failed(&error))?;
    let ledger = Ledger::open(&processes::ledger_of(folder)).map_err(|error| failed(&error))?;
    let worker = Worker::new(&client).queue(QUEUE).activities(ledger);
    let worker = worker.workflow::<Journey>().workflow::<Detour>();
    worker.run().await.map_err(|error| failed(&error))
}

fn connect(url: &str) -> Result<Client, Finding> {
    let transport = GrpcTransport::new(&GrpcOptions::new(url));
    let transport = transport.map_err(|error| Finding::new(url, error.to_string()))?;
    Ok(Client::new(Arc::new(transport)).with_call_timeout(traveller::PATIENCE))
}

fn unable(what: &'static str) -> impl Fn(std::io::Error) -> Finding {
    move |error| Finding::new("processes", format!("cannot {what}: {error}"))
}

/// The system's time in milliseconds since 1970: what workers and engine share.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
