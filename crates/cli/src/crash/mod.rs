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
use abide_core::list::RunFilter;
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
/// sleeps, signals, updates and children, and kills the processes with SIGKILL at random moments, one
/// or both at once, mostly at work and sometimes while they start. Every call that was not answered
/// is repeated with its key. At the end each acknowledged start, signal, update and result must have
/// exactly one effect, no sleep may be cut short, no activity may run again after its result was
/// recorded, and one that runs at most once may not run twice.
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
    /// Where everything is kept, which must be new; by default a temporary folder, which is left if
    /// something is found
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Be the worker that is killed
    #[arg(long, hide = true)]
    work: bool,
}

/// What was found when nothing was found.
struct Survived {
    journeys: usize,
    /// Attempts of activities beyond the first.
    repeated: usize,
    /// How often both processes were killed at once.
    both: u32,
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
        processes::prepare(&folder)?;
        let begun = Instant::now();
        let Survived { journeys, repeated, both } =
            self.torture(seed, &folder).await.map_err(|finding| {
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
            "kills_of_both_at_once": both, "journeys": journeys, "repeated_attempts": repeated,
            "seconds": seconds,
        });
        let words = format!(
            "{journeys} journeys over {kills} kills of the server and {kills} of the worker, {both} of \
             them at once, in {seconds:.0} s: nothing lost, nothing doubled, no sleep cut short; \
             {repeated} attempts of activities were repeated (seed {seed})"
        );
        common.output().say(&object, words)
    }

    async fn torture(&self, seed: u64, folder: &Path) -> Result<Survived, Finding> {
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
        let both = self.kill(&mut rng, &mut processes, &client, &travellers).await?;
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
        let repeated = check::everything(&client, &journeys, &ledger).await?;
        Ok(Survived { journeys: journeys.len(), repeated, both })
    }

    /// Kills each process as often as was asked for. Gives how often both were killed at once.
    async fn kill<T>(
        &self,
        rng: &mut Rng,
        processes: &mut Processes,
        client: &Client,
        travellers: &[tokio::task::JoinHandle<T>],
    ) -> Result<u32, Finding> {
        let (mut left, mut both) = ([self.kills; 2], 0);
        while left != [0, 0] {
            // Mostly the engine serves again before anything is killed; sometimes it only starts.
            if rng.u8(0..4) > 0 {
                serves(client).await?;
            }
            tokio::time::sleep(Duration::from_millis(rng.u64(20..800))).await;
            if let Some(victim) = processes.ended().map_err(unable("look after"))? {
                return Err(Finding::new(format!("{victim:?}"), "ended by itself; see its log"));
            }
            if travellers.iter().any(tokio::task::JoinHandle::is_finished) {
                // A client found something; its own words say what.
                return Ok(both);
            }
            let victim = processes::choose(rng, left);
            processes.kill(victim).map_err(unable("restart"))?;
            left[0] -= u32::from(victim.has_server());
            left[1] -= u32::from(victim.has_worker());
            both += u32::from(victim == Victim::Both);
            let done = 2 * self.kills - left[0] - left[1];
            tracing::info!("killed the {victim:?}, {done} of {}", 2 * self.kills);
        }
        Ok(both)
    }
}

/// Waits until the engine answers.
async fn serves(client: &Client) -> Result<(), Finding> {
    let answer = client.count_runs(RunFilter::default()).await;
    answer.map(drop).map_err(|error| Finding::new("the engine", error.to_string()))
}

/// Works for the journeys until it is killed.
async fn work(common: &Common, folder: &Path) -> Result<(), Failed> {
    let failed = |error: &dyn std::fmt::Display| Failed::refused(format_args!("worker: {error}"));
    let client = connect(&common.engine_url()?).map_err(|error| failed(&error))?;
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
