//! The clock of the server is set forward by an hour, and back. What was due in that hour fires once. Runs
//! that start afterwards have the true time, and their sleeps are no longer than they should be. The times
//! of a run never go back.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use abide_core::{
    codec::generated::{Event, Payloads, RunSpec, TimerSpec, Timestamp, WorkflowKey, body::Fact},
    operation::CallError,
};
use abide_proto::{
    error::from_status,
    generated::{
        self as wire, Command, GetHistoryRequest, RunTarget, SignalRunRequest, StartRunRequest,
        abide_client::AbideClient, command::Ask,
    },
};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep},
};
use tonic::{Status, transport::Channel};

use crate::{Arena, Finding, Report, Victim, worker::Worker};

const HOUR: u64 = 3600;

/// Seconds that most runs sleep, and those of the runs that are due while the clock is ahead.
const NAP: i64 = 1;
const LONG_NAP: i64 = 600;

const QUEUE: &str = "clock";

/// Runs of each kind.
const RUNS: usize = 8;

/// How long anything may take that should happen within a second or two.
const PATIENCE: Duration = Duration::from_secs(60);

/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let mut victim = arena.start().await?;
    let client = AbideClient::new(victim.channel().await?);
    let worker = spawn_worker(&victim).await?;
    let ids = |kind: &str| (0..RUNS).map(|number| format!("{kind}-{number}")).collect::<Vec<_>>();
    let (long, ahead, after) = (ids("long"), ids("ahead"), ids("after"));
    start_all(&client, &long).await?;
    until(&client, &long, |facts| facts.contains_key("TimerStarted")).await?;

    victim.set_clock_ahead(HOUR).await?;
    until_told(&victim, "clock: set: by +3").await?;
    until(&client, &long, |facts| facts.contains_key("RunCompleted")).await?;
    start_all(&client, &ahead).await?;
    until(&client, &ahead, |facts| facts.contains_key("RunCompleted")).await?;
    // These go on after the clock is set back.
    let open = ids("open");
    start_all(&client, &open).await?;

    victim.set_clock_ahead(0).await?;
    until_told(&victim, "clock: set: by -3").await?;
    let began = Instant::now();
    start_all(&client, &after).await?;
    until(&client, &after, |facts| facts.contains_key("RunCompleted")).await?;
    let took = began.elapsed();
    for id in &open {
        let signalled = || {
            let (mut client, signal) = (client.clone(), signal(id));
            async move { client.signal_run(signal).await }
        };
        repeat(signalled).await?;
    }
    until(&client, &open, |facts| facts.contains_key("SignalReceived")).await?;
    check(&client, &[long, ahead, open].concat(), &after).await?;
    let figures = victim.get("/metrics").await?;
    let counted = figures.contains("\nabide_clock_steps_total 2\n");
    Finding::unless(counted, || format!("two steps are not counted: {figures}"))?;
    let told = victim.log().matches("the system clock was set").count();
    Finding::unless(told == 2, || format!("{told} lines tell of two steps"))?;
    worker.abort();
    victim.end().await?;
    Ok(Report::default().with("runs", 4 * RUNS).with("naps after it", format!("{took:.1?}")))
}

fn start(id: &str) -> StartRunRequest {
    let spec = RunSpec { workflow_type: "nap".into(), queue: QUEUE.into(), ..RunSpec::default() };
    StartRunRequest {
        workflow: Some(workflow(id)),
        spec: Some(spec),
        key: Some(id.into()),
        ..StartRunRequest::default()
    }
}

fn signal(id: &str) -> SignalRunRequest {
    let signal = wire::Signal { name: "hello".into(), key: Some(id.into()), ..Default::default() };
    SignalRunRequest { target: target(id), signal: Some(signal), ..SignalRunRequest::default() }
}

fn workflow(id: &str) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: id.into() }
}

fn target(id: &str) -> Option<RunTarget> {
    Some(RunTarget { workflow: Some(workflow(id)), run: None })
}

async fn start_all(client: &AbideClient<Channel>, ids: &[String]) -> Result<(), Finding> {
    for id in ids {
        let started = || {
            let (mut client, start) = (client.clone(), start(id));
            async move { client.start_run(start).await }
        };
        repeat(started).await?;
    }
    Ok(())
}

/// Repeats a call with a key while shards reload, which they do when the clock is set back.
async fn repeat<T, F>(call: impl Fn() -> F) -> Result<(), Finding>
where
    F: Future<Output = Result<T, Status>>,
{
    let began = Instant::now();
    loop {
        match call().await {
            Ok(_) => return Ok(()),
            Err(status)
                if from_status(&status) == CallError::Reset && began.elapsed() < PATIENCE => {}
            Err(status) => return Err(status.into()),
        }
    }
}

async fn history(client: &AbideClient<Channel>, id: &str) -> Result<Vec<Event>, Finding> {
    let read = GetHistoryRequest { target: target(id), ..GetHistoryRequest::default() };
    let page = client.clone().get_history(read).await?.into_inner();
    Ok(page.history.unwrap_or_default().events)
}

/// The facts that matter here, by name, each with its number.
fn facts(events: &[Event]) -> BTreeMap<&'static str, usize> {
    let mut facts = BTreeMap::new();
    for event in events {
        let fact = event.body.as_ref().and_then(|body| body.fact.as_ref());
        let name = match fact {
            Some(Fact::TimerStarted(_)) => "TimerStarted",
            Some(Fact::TimerFired(_)) => "TimerFired",
            Some(Fact::SignalReceived(_)) => "SignalReceived",
            Some(Fact::RunCompleted(_)) => "RunCompleted",
            _ => continue,
        };
        *facts.entry(name).or_default() += 1;
    }
    facts
}

/// Waits until all these runs have facts such as this.
async fn until(
    client: &AbideClient<Channel>,
    ids: &[String],
    come: impl Fn(&BTreeMap<&'static str, usize>) -> bool,
) -> Result<(), Finding> {
    let began = Instant::now();
    for id in ids {
        loop {
            let events = history(client, id).await?;
            if come(&facts(&events)) {
                break;
            }
            Finding::unless(began.elapsed() < PATIENCE, || format!("{id} is stuck: {events:?}"))?;
            sleep(LOOK).await;
        }
    }
    Ok(())
}

/// Waits until the probe tells of the step.
async fn until_told(victim: &Victim, line: &str) -> Result<(), Finding> {
    let began = Instant::now();
    while !victim.get("/readyz").await?.contains(line) {
        Finding::unless(began.elapsed() < PATIENCE, || format!("no probe tells {line:?}"))?;
        sleep(LOOK).await;
    }
    Ok(())
}

/// No time goes back, nothing fires twice, and the runs that started last have the true time.
async fn check(
    client: &AbideClient<Channel>,
    before: &[String],
    after: &[String],
) -> Result<(), Finding> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    for id in before.iter().chain(after) {
        let events = history(client, id).await?;
        let times: Vec<_> = events.iter().map(|event| seconds_of(event.time)).collect();
        Finding::unless(times.is_sorted(), || format!("the time of {id} goes back: {times:?}"))?;
        let fired = facts(&events).get("TimerFired").copied().unwrap_or_default();
        Finding::unless(fired <= 1, || format!("{id} fired {fired} times"))?;
        let late = after.contains(id) && times.iter().any(|(seconds, _)| *seconds > now);
        Finding::unless(!late, || format!("{id} is not at the true time: {times:?}"))?;
    }
    Ok(())
}

fn seconds_of(time: Option<Timestamp>) -> (u64, u32) {
    let time = time.unwrap_or_default();
    (u64::try_from(time.seconds).unwrap_or_default(), time.nanos)
}

/// A worker whose runs sleep once, and end.
async fn spawn_worker(victim: &Victim) -> Result<AbortHandle, Finding> {
    let client = AbideClient::new(victim.channel().await?);
    let mut worker = Worker::connect(victim.channel().await?, QUEUE).await?;
    let works = tokio::spawn(async move {
        loop {
            let token = worker.task().await?;
            let id = token.as_ref().and_then(|token| token.workflow.clone()).unwrap_or_default();
            let events = history(&client, &id.workflow).await?;
            worker.complete(token, next(&id.workflow, &events)).await?;
        }
        #[expect(unreachable_code, reason = "names the error")]
        Ok::<_, Finding>(())
    });
    Ok(works.abort_handle())
}

/// The commands of the next task of a run.
fn next(id: &str, events: &[Event]) -> Vec<Command> {
    let facts = facts(events);
    let ask = if facts.contains_key("TimerFired") {
        Ask::CompleteRun(Payloads::default())
    } else if facts.contains_key("TimerStarted") {
        return Vec::new();
    } else {
        let last = events.last().and_then(|event| event.time).unwrap_or_default();
        let nap = if id.starts_with("long") { LONG_NAP } else { NAP };
        let fire_at = Some(Timestamp { seconds: last.seconds + nap, ..last });
        Ask::StartTimer(TimerSpec { timer: "nap".into(), fire_at, ..TimerSpec::default() })
    };
    vec![Command { ask: Some(ask), ..Command::default() }]
}
