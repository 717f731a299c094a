//! Measures what happens to runs when their node is killed: when the first of them continues on
//! another node, when all have, and that no timer is lost or fires twice.

use std::{collections::BTreeMap, time::Duration};

use abide::{Client, Timestamp};
use abide_command::{Failed, time::system_now};
use abide_core::ids::{ShardId, WorkflowKey};
use tokio::{task::JoinSet, time::sleep};
use uuid::Uuid;

use super::{cluster::Cluster, database::Database};
use crate::{
    place::LocalWorker,
    report::{Report, spinner},
    resumed,
    session::Session,
    workflows::{QUEUE, sleeper},
};

/// The servers' default lease.
const LEASE: Duration = Duration::from_secs(5);

/// Number of servers; one of them is killed.
const NODES: usize = 3;

/// Runs that sleep in each round. Their timers fall due from the kill on, over the time of a lease.
const RUNS: u64 = 320;

/// Time for the runs to fall asleep before the kill.
const LEAD: Duration = Duration::from_secs(8);

/// Time after the kill within which all runs must have continued.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Seconds from the kill until the first run of the killed node continued: the longest of all
    /// rounds.
    pub(crate) first_s: f64,
    /// Timers that did not fire exactly once.
    pub(crate) wrong: u64,
    pub(crate) lease_s: f64,
}

/// Outcome of one kill.
#[derive(Default)]
struct Round {
    /// Number of runs of the killed node.
    runs: usize,
    first: Duration,
    last: Duration,
    /// How late the runs of the other nodes continued, at most.
    others: Duration,
    wrong: u64,
}

/// Kills a node so many times.
pub(super) async fn measure(
    database: &Database,
    kills: u64,
    session: &Session<'_>,
) -> Result<Figures, Failed> {
    let mut cluster = Cluster::start(database, NODES).await?;
    let clients = cluster.clients().await?;
    let [caller, worked, ..] = clients.as_slice() else {
        return Err(Failed::refused("there are too few nodes to kill one"));
    };
    // Neither is connected to the node that is killed: the engine is measured, not the reconnect.
    let worker = LocalWorker::begin(worked);
    let mut worst = Figures { lease_s: LEASE.as_secs_f64(), ..Figures::default() };
    for kill in 1..=kills {
        let bar = spinner(format!("failover, kill {kill} of {kills}"));
        let round = kill_one(&mut cluster, caller).await?;
        bar.finish_and_clear();
        session.report(
            &Report::new("failover", format!("one of {NODES} nodes killed, lease of 5 s"))
                .count("runs", RUNS)
                .count("runs_of_killed_node", round.runs as u64)
                .figure("first_resumed_s", round.first.as_secs_f64())
                .figure("last_resumed_s", round.last.as_secs_f64())
                .figure("others_late_max_ms", round.others.as_secs_f64() * 1e3)
                .count("timers_not_fired_once", round.wrong),
        )?;
        worst.first_s = worst.first_s.max(round.first.as_secs_f64());
        worst.wrong += round.wrong;
        if kill < kills {
            cluster.restore().await?;
        }
    }
    worker.end().await?;
    Ok(worst)
}

async fn kill_one(cluster: &mut Cluster<'_>, client: &Client) -> Result<Round, Failed> {
    let kill_at = system_now().saturating_add(LEAD);
    let (waiting, goal) = (resumed::waiting() + RUNS, resumed::resumed() + RUNS);
    let runs = fall_asleep(client, kill_at).await?;
    resumed::until_waiting(waiting).await;
    if system_now() >= kill_at {
        return Err(Failed::refused("the runs did not fall asleep before the kill")
            .hint("measure on a machine with less load"));
    }
    let shards = cluster.shards_of_last().await?;
    sleep(kill_at.saturating_since(system_now())).await;
    let killed_at = system_now();
    cluster.kill_last().await?;
    let dead_at = system_now();
    // A run that does not continue is found by its history.
    let _ = tokio::time::timeout(PATIENCE, resumed::until_resumed(goal)).await;
    // Runs that were due before the node died may have continued there.
    let mut gone_on = resumed::take().0;
    gone_on.retain(|(due, _)| *due > dead_at);
    let mut round = judge(&runs, &shards, killed_at, gone_on);
    for id in runs.values() {
        let history = client.handle::<sleeper>(id.clone()).history().await?;
        let fired = history.iter().filter(|event| event.name() == "TimerFired");
        round.wrong += u64::from(fired.count() != 1);
    }
    Ok(round)
}

/// Puts runs to sleep, each until its own millisecond. Returns their ids by that time.
async fn fall_asleep(
    client: &Client,
    first: Timestamp,
) -> Result<BTreeMap<Timestamp, String>, Failed> {
    let first = first.unix_millis();
    let step = u64::try_from(LEASE.as_millis()).unwrap_or_default() / RUNS;
    let runs: BTreeMap<_, _> = (1..=RUNS)
        .map(|number| {
            let due = Timestamp::from_unix_millis(first + number * step);
            (due, format!("failover-{}", Uuid::now_v7()))
        })
        .collect();
    let mut starts = JoinSet::new();
    for (due, id) in &runs {
        let start = sleeper::start(client, id.clone(), due.unix_millis()).queue(QUEUE);
        starts.spawn(async move { start.await.map(drop) });
    }
    while let Some(started) = starts.join_next().await {
        started.map_err(Failed::refused)??;
    }
    Ok(runs)
}

/// When the runs of the killed node continued, and those of the others.
fn judge(
    runs: &BTreeMap<Timestamp, String>,
    shards: &[ShardId],
    killed_at: Timestamp,
    gone_on: Vec<(Timestamp, Timestamp)>,
) -> Round {
    let mut round = Round { first: PATIENCE, ..Round::default() };
    for (due, at) in gone_on {
        let Some(id) = runs.get(&due) else { continue };
        if shards.contains(&shard_of(id)) {
            let after = at.saturating_since(killed_at);
            round.runs += 1;
            round.first = round.first.min(after);
            round.last = round.last.max(after);
        } else {
            round.others = round.others.max(at.saturating_since(due));
        }
    }
    round
}

fn shard_of(id: &str) -> ShardId {
    let key = WorkflowKey { namespace: "default".into(), workflow: id.into() };
    key.slot().shard()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_killed_node_are_told_from_the_others() {
        let at = |seconds| Timestamp::EPOCH.saturating_add(Duration::from_secs(seconds));
        let runs = BTreeMap::from([(at(11), "a".to_owned()), (at(12), "b".to_owned())]);
        assert_ne!(shard_of("a"), shard_of("b"));
        let gone_on = vec![(at(11), at(15)), (at(12), at(14))];
        let round = judge(&runs, &[shard_of("a")], at(10), gone_on);
        assert_eq!(round.runs, 1);
        assert_eq!((round.first, round.last), (Duration::from_secs(5), Duration::from_secs(5)));
        assert_eq!(round.others, Duration::from_secs(2));
    }
}
