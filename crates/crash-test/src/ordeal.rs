//! The course of a crash test: processes start, clients work while faults happen in random order,
//! then the clients finish without faults, and everything is checked.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use abide::{Client, list::RunFilter};
use abide_command::{Common, Failed};
use fastrand::Rng;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    auction::Auctions,
    check::{self, Finding, unable},
    faults::{self, Failovers, FaultKind, Kills, Scene},
    journey::Ledger,
    options::{CrashTest, Plan},
    register::Registers,
    report::{self, Survived},
    site::{self, Site},
    stopwatch::Stopwatch,
    traveller::{self, PATIENCE, Traveller},
    worker,
};

impl CrashTest {
    /// Runs the test, or serves as one of its workers.
    pub async fn run(self, common: &Common) -> Result<(), Failed> {
        let folder = self.folder();
        if self.works() {
            return worker::work(common, &folder).await;
        }
        let plan = self.plan()?;
        site::prepare(&folder)?;
        let begun = Instant::now();
        let survived = torture(&plan, &folder).await.map_err(|finding| {
            Failed::refused(format_args!("seed {}: {finding}", plan.seed))
                .hint(format!("everything is in {}", folder.display()))
        })?;
        if self.folder_is_temporary() {
            // Leftovers in the temporary folder do no harm.
            drop(std::fs::remove_dir_all(&folder));
        }
        report::tell(common.output(), &plan, &survived, begun.elapsed())
    }
}

async fn torture(plan: &Plan, folder: &Path) -> Result<Survived, Finding> {
    let mut rng = Rng::with_seed(plan.seed);
    let mut site = Site::start(folder, &plan.layout).await?;
    let client = site::connect(&site.urls(), PATIENCE)?;
    Finding::check("the store", "runs before the test", 0, count_runs(&client).await?)?;
    let first = faults::rehearse(&client).await?;
    let (stop, stopped) = watch::channel(false);
    let stopwatch = Arc::new(Stopwatch::default());
    let travellers = travellers(plan, &site, &mut rng, &stopwatch, &stopped)?;
    let nodes = site.nodes.iter().map(|node| site::connect(&node.url, PATIENCE));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let registers = Registers::begin(&client, nodes, &mut rng, &stopped);
    let longest = longest_nap(&site);
    let auctions = Auctions::begin(&client, &stopwatch, longest, &mut rng, &stopped);
    let mut ordeal = Ordeal {
        kills: Kills::of_each(if plan.has(FaultKind::Kill) { plan.kills } else { 0 }),
        failovers: Failovers::default(),
        times: BTreeMap::new(),
        travellers,
        registers,
        auctions,
    };
    ordeal.endure(plan, &mut site, &client, &mut rng, &stopwatch).await?;
    // The last journeys end without faults.
    stop.send_replace(true);
    let Ordeal { kills, failovers, times, travellers, registers, auctions } = ordeal;
    let mut journeys = Vec::new();
    for traveller in travellers {
        let made = traveller.await.map_err(|error| Finding::new("client", error.to_string()))?;
        journeys.extend(made?);
    }
    let (mut others, readings) = registers.end().await?;
    others.extend(failovers.beacons.iter().cloned().chain([first]));
    let auctioned = auctions.end().await?;
    others.extend(auctioned.ids);
    let ledger = Ledger::read(&site::ledger_of(folder)).map_err(unable("read the ledger"))?;
    let repeated = check::everything(&client, &journeys, &others, &ledger).await?;
    Ok(Survived {
        journeys: journeys.len(),
        repeated,
        both: kills.both,
        failovers,
        times,
        calls: stopwatch.longest(),
        readings,
        moves: auctioned.moves,
        lost_answers: site.nodes.iter().flat_map(|node| &node.proxy).map(|way| way.lost()).sum(),
    })
}

type Travelling = JoinHandle<Result<Vec<traveller::Journeyed>, Finding>>;

fn travellers(
    plan: &Plan,
    site: &Site,
    rng: &mut Rng,
    stopwatch: &Arc<Stopwatch>,
    stopped: &watch::Receiver<bool>,
) -> Result<Vec<Travelling>, Finding> {
    let (longest_nap, urls) = (longest_nap(site), site.urls());
    (0..plan.clients)
        .map(|number| {
            let client = site::connect(&urls, PATIENCE)?;
            let (stopwatch, rng) = (Arc::clone(stopwatch), rng.fork());
            let traveller = Traveller { client, stopwatch, rng, longest_nap };
            Ok(tokio::spawn(traveller.travel(number, stopped.clone())))
        })
        .collect()
}

/// The longest sleep: with several nodes, it can end while no node owns the run.
fn longest_nap(site: &Site) -> Duration {
    if site.shared() { site.lease * 2 } else { Duration::ZERO }
}

/// The faults of a test, while clients work.
struct Ordeal {
    kills: Kills,
    failovers: Failovers,
    /// How often each fault has happened.
    times: BTreeMap<FaultKind, u32>,
    travellers: Vec<Travelling>,
    registers: Registers,
    auctions: Auctions,
}

impl Ordeal {
    /// Carries out every fault as often as requested, in random order.
    async fn endure(
        &mut self,
        plan: &Plan,
        site: &mut Site,
        client: &Client,
        rng: &mut Rng,
        stopwatch: &Stopwatch,
    ) -> Result<(), Finding> {
        let mut others = plan.others();
        rng.shuffle(&mut others);
        while !(self.kills.done() && others.is_empty()) {
            // Mostly the engine serves again before the next fault; sometimes it is still starting.
            if rng.u8(0..4) > 0 {
                count_runs(client).await?;
            }
            let longest_ms = if site.shared() { site.lease.as_millis() } else { 800 };
            let pause_ms = rng.u64(20..u64::try_from(longest_ms).unwrap_or(u64::MAX).max(800));
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            site.check_alive()?;
            if let Some(finding) = self.registers.ended().or_else(|| self.auctions.ended()) {
                return Err(finding);
            }
            if self.travellers.iter().any(JoinHandle::is_finished) {
                // A client found something; its own finding says what.
                return Ok(());
            }
            let kill = !self.kills.done() && (others.is_empty() || rng.bool());
            let fault = if kill { Some(FaultKind::Kill) } else { others.pop() };
            let Some(fault) = fault else { return Ok(()) };
            tracing::info!(%fault, "begins");
            stopwatch.blame(fault);
            let restart_database = plan.restart_database.as_deref();
            let Self { kills, failovers, .. } = self;
            let mut scene = Scene { site, client, restart_database, kills, failovers };
            scene.perform(fault, rng).await?;
            tracing::info!(%fault, "is over");
            *self.times.entry(fault).or_default() += 1;
        }
        Ok(())
    }
}

/// The number of runs, as soon as the engine can answer.
async fn count_runs(client: &Client) -> Result<u64, Finding> {
    let count = client.count_runs(RunFilter::default()).await;
    count.map_err(|error| Finding::new("the engine", error.to_string()))
}
