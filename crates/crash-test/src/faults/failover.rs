//! A node is killed and stays away until the others own all its runs. Runs that were started before
//! are called at the moment of the kill: the answers show how long the failover took. They also
//! sleep, so that some of their timers fall due while no node owns them.

use std::time::{Duration, Instant};

use abide::{Client, prelude::*};
use fastrand::Rng;
use tokio::task::JoinSet;

use crate::{
    check::{Finding, unable},
    journey::QUEUE,
    site::Site,
    traveller::within_patience,
};

/// Number of runs that wait for the failover: enough to be on most shards.
const BEACONS: u32 = 64;

/// Sleeps once, and answers meanwhile.
#[derive(Default)]
pub(crate) struct Beacon;

#[workflow]
impl Beacon {
    /// Returns how long the sleep took by the workflow's own clock, in milliseconds.
    #[run]
    async fn run(ctx: &Context<Self>, nap_ms: u64) -> abide::Result<u64> {
        let begin = ctx.now();
        ctx.sleep(Duration::from_millis(nap_ms)).await?;
        let slept_ms = ctx.now().saturating_since(begin).as_millis();
        // A run that has slept enough stays open to be called.
        ctx.receive(Self::PUT_OUT).await?;
        Ok(u64::try_from(slept_ms).unwrap_or(u64::MAX))
    }

    #[update]
    pub(super) fn answer(&mut self, text: String) -> String {
        text
    }

    #[signal]
    pub(super) fn put_out();
}

#[derive(Default)]
pub(crate) struct Failovers {
    /// From each kill to the first answer of a run that had to wait for the failover.
    pub(crate) first: Times,
    /// From each kill to the last answer of all runs.
    pub(crate) all: Times,
    pub(crate) count: usize,
    /// Workflow ids of the runs.
    pub(crate) beacons: Vec<String>,
}

/// One duration per failover.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// The median and the longest, if there are any.
    pub(crate) fn median_and_longest(&self) -> Option<(Duration, Duration)> {
        let mut times = self.0.clone();
        times.sort_unstable();
        let median = times.len().checked_sub(1)? / 2;
        Some((*times.get(median)?, *times.last()?))
    }
}

impl Failovers {
    /// Adds the times that all runs took to answer. Runs of living nodes answer at once, those of
    /// the dead one not before most of its lease is over, so half a lease distinguishes them.
    fn add(&mut self, lease: Duration, took: &[Duration]) {
        self.count += 1;
        self.first.0.extend(took.iter().filter(|took| **took > lease / 2).min());
        self.all.0.extend(took.iter().max());
    }
}

pub(super) async fn perform(
    site: &mut Site,
    client: &Client,
    failovers: &mut Failovers,
    rng: &mut Rng,
) -> Result<(), Finding> {
    let round = failovers.count;
    let longest_nap = site.lease * 2;
    let mut starting = JoinSet::new();
    for number in 0..BEACONS {
        let nap = longest_nap * number / BEACONS;
        starting.spawn(light(client.clone(), format!("beacon-{round}-{number}"), nap));
    }
    let beacons = all(starting).await?;
    let victim = rng.usize(0..site.nodes.len());
    let Some(node) = site.nodes.get_mut(victim) else { return Ok(()) };
    node.process.kill().await.map_err(unable("kill"))?;
    let killed_at = Instant::now();
    let mut calling = JoinSet::new();
    for beacon in &beacons {
        calling.spawn(call(client.clone(), beacon.clone(), killed_at));
    }
    failovers.add(site.lease, &all(calling).await?);
    node.process.start_again().map_err(unable("restart"))?;
    node.process.ready().await.map_err(unable("restart"))?;
    let mut ending = JoinSet::new();
    for beacon in &beacons {
        ending.spawn(put_out(client.clone(), beacon.clone()));
    }
    all(ending).await?;
    failovers.beacons.extend(beacons.into_iter().map(|beacon| beacon.id));
    Ok(())
}

/// Waits until a first run has completed, so that workers are connected when the measurement
/// begins. Returns its id.
pub(crate) async fn rehearse(client: &Client) -> Result<String, Finding> {
    let beacon = light(client.clone(), "beacon-first".to_owned(), Duration::ZERO).await?;
    put_out(client.clone(), beacon.clone()).await?;
    Ok(beacon.id)
}

/// A started run, and how long it is to sleep.
#[derive(Clone)]
struct Lit {
    id: String,
    nap: Duration,
}

async fn light(client: Client, id: String, nap: Duration) -> Result<Lit, Finding> {
    let nap_ms = u64::try_from(nap.as_millis()).unwrap_or(u64::MAX);
    let start = Beacon::start(&client, id.as_str(), nap_ms).queue(QUEUE).key(id.as_str());
    start.await.map_err(|error| Finding::new(&id, error.to_string()))?;
    Ok(Lit { id, nap })
}

/// Returns the time from the kill to the answer.
async fn call(client: Client, beacon: Lit, killed_at: Instant) -> Result<Duration, Finding> {
    let Lit { id, .. } = beacon;
    let handle = client.handle::<Beacon>(id.as_str());
    let answer = handle.answer(id.clone()).id(format!("{id}-call"));
    let answer = within_patience(&id, "the answer", answer.into_future()).await?;
    let took = killed_at.elapsed();
    Finding::check(&id, "the answer", &id, &answer)?;
    Ok(took)
}

async fn put_out(client: Client, beacon: Lit) -> Result<(), Finding> {
    let Lit { id, nap } = beacon;
    let handle = client.handle::<Beacon>(id.as_str());
    let told = handle.put_out().key(format!("{id}-put-out"));
    within_patience(&id, "the signal", told.into_future()).await?;
    let slept_ms = within_patience(&id, "the result", handle.result()).await?;
    if Duration::from_millis(slept_ms) < nap {
        return Err(Finding::new(&id, format!("slept {slept_ms} ms, planned were {nap:?}")));
    }
    Ok(())
}

/// Waits for all of them; returns the first finding, if there is one.
async fn all<T: 'static>(mut set: JoinSet<Result<T, Finding>>) -> Result<Vec<T>, Finding> {
    let mut results = Vec::new();
    while let Some(ended) = set.join_next().await {
        results.push(ended.map_err(|error| Finding::new("client", error.to_string()))??);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_living_nodes_are_no_failover() {
        let seconds = |seconds: &[u64]| -> Vec<_> {
            seconds.iter().copied().map(Duration::from_secs).collect()
        };
        let mut failovers = Failovers::default();
        assert_eq!(failovers.all.median_and_longest(), None);
        for took in [&[0, 1, 5, 6], &[0, 0, 7, 9], &[1, 0, 4, 8]] {
            failovers.add(Duration::from_secs(4), &seconds(took));
        }
        let [median, longest] = [5, 7].map(Duration::from_secs);
        assert_eq!(failovers.first.median_and_longest(), Some((median, longest)));
        let [median, longest] = [8, 9].map(Duration::from_secs);
        assert_eq!(failovers.all.median_and_longest(), Some((median, longest)));
        assert_eq!(failovers.count, 3);
    }
}
