//! Workers that give much credit, take the tasks of large runs and never read them. Then one small
//! message for each of these runs at the same time, which loads all of them.

use std::time::Duration;

use abide_core::codec::generated::{Payload, RunSpec, WorkflowKey};
use abide_proto::{
    PROTOCOL_VERSION,
    generated::{
        Credit, Hello, RunTarget, ServerFrame, Signal, SignalRunRequest, StartRunRequest,
        WorkerFrame, abide_client::AbideClient, workers_client::WorkersClient,
    },
};
use tokio::{task::JoinSet, time::timeout};
use tokio_stream::StreamExt as _;
use tonic::{Streaming, transport::Channel};

use crate::{Arena, Finding, Report, Victim, memory::Memory};

/// Workers, each with a connection of its own, and their credit.
const WORKERS: usize = 4;
const CREDITS: u32 = 10_000;

/// Runs with an input of almost two megabytes, which comes with their first task.
const RUNS: usize = 400;
const BYTES: usize = 2_000_000;

/// Starts at a time.
const STARTS: usize = 8;

/// Connections that send signals.
const SENDERS: usize = 4;

/// How long each part takes at most.
const HELD: Duration = Duration::from_secs(60);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        workers.push(connect(victim.channel().await?, worker).await?);
    }
    let late = |what: &str| Finding::new(format!("{what} take more than {HELD:?}"));
    timeout(HELD, start_all(&victim)).await.map_err(|_| late("the starts"))??;
    drop(workers);
    let signals = timeout(HELD, signal_all(&victim)).await.map_err(|_| late("the signals"))??;
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report.with("runs", RUNS).with("signals", signals))
}

/// A worker that does not read what it is given.
async fn connect(channel: Channel, worker: usize) -> Result<Streaming<ServerFrame>, Finding> {
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: format!("unread-{worker}"),
        identity: "unread".into(),
        ..Hello::default()
    };
    let credit =
        Credit { namespace: "default".into(), queue: "unread".into(), kind: 1, credits: CREDITS };
    let frame = WorkerFrame { hello: Some(hello), credits: vec![credit], ..WorkerFrame::default() };
    let frames = tokio_stream::once(frame).chain(tokio_stream::pending());
    Ok(WorkersClient::new(channel).connect(frames).await?.into_inner())
}

fn workflow(run: usize) -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: format!("unread-{run}") }
}

/// Starts the runs, a few at a time. Some may be refused.
async fn start_all(victim: &Victim) -> Result<(), Finding> {
    let client = AbideClient::new(victim.channel().await?);
    let mut starts = JoinSet::new();
    for run in 0..RUNS {
        if starts.len() >= STARTS {
            starts.join_next().await;
        }
        let mut client = client.clone();
        starts.spawn(async move { client.start_run(start(run)).await.is_ok() });
    }
    while starts.join_next().await.is_some() {}
    Ok(())
}

fn start(run: usize) -> StartRunRequest {
    let payload = Payload { data: vec![7; BYTES].into(), ..Payload::default() };
    let (workflow_type, queue) = ("unread".into(), "unread".into());
    StartRunRequest {
        workflow: Some(workflow(run)),
        spec: Some(RunSpec { workflow_type, queue, input: vec![payload], ..RunSpec::default() }),
        ..StartRunRequest::default()
    }
}

/// Sends a signal to every run at the same time. Returns how many were accepted.
async fn signal_all(victim: &Victim) -> Result<usize, Finding> {
    let mut clients = Vec::new();
    for _ in 0..SENDERS {
        clients.push(AbideClient::new(victim.channel().await?));
    }
    let mut signals = JoinSet::new();
    for run in 0..RUNS {
        let mut client = clients[run % SENDERS].clone();
        let request = SignalRunRequest {
            target: Some(RunTarget { workflow: Some(workflow(run)), run: None }),
            signal: Some(Signal { name: "small".into(), ..Signal::default() }),
            ..SignalRunRequest::default()
        };
        signals.spawn(async move { client.signal_run(request).await.is_ok() });
    }
    let answers = signals.join_all().await;
    Ok(answers.into_iter().filter(|accepted| *accepted).count())
}
