//! The disk of the store is full while clients start runs. They are refused at once, what is stored can be
//! read, and the server goes on by itself when there is room. What it acknowledged is there, also after it
//! was killed.

use std::{fs, time::Duration};

use abide_core::{
    codec::generated::{RunSpec, WorkflowKey},
    operation::CallError,
};
use abide_proto::{
    error::from_status,
    generated::{
        CountRunsRequest, DescribeRunRequest, GetHistoryRequest, RunTarget, StartRunRequest,
        abide_client::AbideClient,
    },
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{Status, transport::Channel};

use crate::{Arena, Finding, Machine, Report, Victim, small_disk::SmallDisk};

/// Size of the disk.
const DISK_MB: u32 = 48;

/// Runs that are started while there is room, and starts while there is none.
const GOOD: usize = 20;
const STARTS: usize = 220;

/// Starts in flight.
const AT_A_TIME: usize = 8;

/// How long a call may take to be answered or refused.
const fn at_once(machine: Machine) -> Duration {
    match machine {
        Machine::Own => Duration::from_secs(2),
        Machine::Shared => Duration::from_secs(20),
    }
}

/// How long the server may take to notice that there is room.
const HEALED: Duration = Duration::from_secs(60);

/// Interval between two looks at the probe.
const LOOK: Duration = Duration::from_millis(100);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let place = arena.path("disk");
    let disk = match SmallDisk::mount(&place, DISK_MB).await? {
        Ok(disk) => disk,
        Err(why) => return Report::default().skipping("all: no disk can be mounted", why),
    };
    let data = place.join("data");
    let victim = arena.start_on(&disk, &data).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    let mut acknowledged: Vec<_> = (0..GOOD).map(|number| format!("good-{number}")).collect();
    for id in &acknowledged {
        client.start_run(start(id)).await?;
    }
    let ballast = disk.fill()?;
    let began = Instant::now();
    acknowledged.extend(start_many(&client, at_once(victim.machine())).await?);
    let took = began.elapsed();
    let refused = GOOD + STARTS - acknowledged.len();
    Finding::unless(refused > 0, || "the disk is not full".into())?;
    let probe = victim.get("/readyz").await?;
    let told = probe.contains("\ndegraded\nstore: full: ");
    Finding::unless(told, || format!("the probe does not tell of the full disk: {probe}"))?;
    let logged = victim.log().contains("the store does not accept writes");
    Finding::unless(logged, || format!("nothing is logged: {}", victim.log()))?;
    look_at_all(&mut client, &acknowledged, at_once(victim.machine())).await?;

    fs::remove_file(ballast)?;
    let healed = heal(&victim).await?;
    victim.honest().await?.round().await?;
    victim.end().await?;
    let victim = arena.start_on(&disk, &data).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    look_at_all(&mut client, &acknowledged, HEALED).await?;
    let stored = client.count_runs(CountRunsRequest::default()).await?.into_inner().count;
    let expected = u64::try_from(acknowledged.len() + 1)?;
    Finding::unless(stored == expected, || {
        format!("{stored} runs are stored, {expected} were acknowledged")
    })?;
    victim.end().await?;
    Ok(Report::default()
        .with("starts refused", refused)
        .with("in", format!("{took:.1?}"))
        .with("healed after", format!("{healed:.1?}")))
}

fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

fn start(id: &str) -> StartRunRequest {
    let spec =
        RunSpec { workflow_type: "hello".into(), queue: "hello".into(), ..RunSpec::default() };
    StartRunRequest { workflow: Some(workflow(id)), spec: Some(spec), ..StartRunRequest::default() }
}

/// Starts runs, a few at a time. Returns those that were acknowledged; all others must be refused as
/// unavailable.
async fn start_many(
    client: &AbideClient<Channel>,
    at_once: Duration,
) -> Result<Vec<String>, Finding> {
    let mut starts = JoinSet::new();
    let mut acknowledged = Vec::new();
    for number in 0..STARTS + AT_A_TIME {
        if number >= AT_A_TIME
            && let Some(ended) = starts.join_next().await
        {
            let (id, started): (String, Result<Result<_, Status>, _>) = ended?;
            match started {
                Ok(Ok(_)) => acknowledged.push(id),
                Ok(Err(status)) => match from_status(&status) {
                    CallError::Unavailable(why) if why.contains("full") => {}
                    other => return Err(Finding::new(format!("{id} was refused with {other:?}"))),
                },
                Err(_) => return Err(Finding::new(format!("{id} hangs"))),
            }
        }
        if number < STARTS {
            let (mut client, id) = (client.clone(), format!("new-{number}"));
            starts.spawn(async move {
                let started = timeout(at_once, client.start_run(start(&id))).await;
                (id, started)
            });
        }
    }
    Ok(acknowledged)
}

/// Describes each run, and reads its history.
async fn look_at_all(
    client: &mut AbideClient<Channel>,
    ids: &[String],
    at_once: Duration,
) -> Result<(), Finding> {
    for id in ids {
        let target = Some(RunTarget { workflow: Some(workflow(id)), run: None });
        let describe = client.describe_run(DescribeRunRequest { target: target.clone() });
        timeout(at_once, describe).await??;
        let read = GetHistoryRequest { target, ..GetHistoryRequest::default() };
        let history = timeout(at_once, client.get_history(read)).await??.into_inner();
        let events = history.history.unwrap_or_default().events.len();
        Finding::unless(events == 2, || format!("{id} has {events} events"))?;
    }
    Ok(())
}

/// Waits until the probe says that all is well; returns how long that took.
async fn heal(victim: &Victim) -> Result<Duration, Finding> {
    let began = Instant::now();
    loop {
        let probe = victim.get("/readyz").await?;
        if probe.ends_with("\nready\n") {
            return Ok(began.elapsed());
        }
        Finding::unless(began.elapsed() < HEALED, || format!("it does not heal: {probe}"))?;
        sleep(LOOK).await;
    }
}
