//! A worker that holds the task of a run, while large signals come for it.

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

use crate::{Arena, Finding, Report, memory::Memory};

/// Signals of almost two megabytes.
const SIGNALS: usize = 200;
const BYTES: usize = 2_000_000;

/// How long the task is held: less than its timeout.
const HELD: Duration = Duration::from_secs(6);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut client = AbideClient::new(victim.channel().await?);
    let workflow = WorkflowKey { namespace: "default".into(), workflow: "buffer".into() };
    let (workflow_type, queue) = ("buffer".into(), "buffer".into());
    let start = StartRunRequest {
        workflow: Some(workflow.clone()),
        spec: Some(RunSpec { workflow_type, queue, ..RunSpec::default() }),
        ..StartRunRequest::default()
    };
    client.start_run(start).await?;
    let worker = take_the_task(victim.channel().await?).await?;
    let payload = Payload { data: vec![7; BYTES].into(), ..Payload::default() };
    let signal = Signal { name: "large".into(), input: vec![payload], ..Signal::default() };
    let mut attackers = JoinSet::new();
    for _ in 0..SIGNALS {
        let request = SignalRunRequest {
            target: Some(RunTarget { workflow: Some(workflow.clone()), run: None }),
            signal: Some(signal.clone()),
            ..SignalRunRequest::default()
        };
        let mut client = client.clone();
        attackers.spawn(async move { client.signal_run(request).await });
    }
    let _ = timeout(HELD, async { while attackers.join_next().await.is_some() {} }).await;
    drop((attackers, worker));
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

/// A worker that takes one task and does nothing with it.
async fn take_the_task(channel: Channel) -> Result<Streaming<ServerFrame>, Finding> {
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        session: "holds".into(),
        identity: "holds".into(),
        ..Hello::default()
    };
    let credit =
        Credit { namespace: "default".into(), queue: "buffer".into(), kind: 1, credits: 1 };
    let frame = WorkerFrame { hello: Some(hello), credits: vec![credit], ..WorkerFrame::default() };
    let frames = tokio_stream::once(frame).chain(tokio_stream::pending());
    let mut given = WorkersClient::new(channel).connect(frames).await?.into_inner();
    while let Some(frame) = given.message().await? {
        if !frame.tasks.is_empty() {
            return Ok(given);
        }
    }
    Err(Finding::new("the worker got no task"))
}
