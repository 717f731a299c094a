//! Waiting updates of 40 kB, each with 20,000 empty payloads, which take fifty times as much in memory.

use std::time::Duration;

use abide_core::codec::generated::{Payload, RunSpec, UpdateRequest, WorkflowKey};
use abide_proto::generated::{
    RunTarget, StartRunRequest, UpdateRunRequest, abide_client::AbideClient,
};
use tokio::{task::JoinSet, time::timeout};

use crate::{Arena, Finding, Report, memory::Memory};

/// Updates per run: a run takes a hundred that wait.
const UPDATES: usize = 90;

/// Runs, each with a connection of its own for its updates.
const RUNS: usize = 7;

/// Payloads of an update.
const PAYLOADS: usize = 19_000;

/// How long they wait.
const HELD: Duration = Duration::from_secs(5);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut attackers = JoinSet::new();
    for run in 0..RUNS {
        let mut client = AbideClient::new(victim.channel().await?);
        let workflow =
            WorkflowKey { namespace: "default".into(), workflow: format!("waits-{run}") };
        let (workflow_type, queue) = ("waits".into(), "waits".into());
        let start = StartRunRequest {
            workflow: Some(workflow.clone()),
            spec: Some(RunSpec { workflow_type, queue, ..RunSpec::default() }),
            ..StartRunRequest::default()
        };
        client.start_run(start).await?;
        for number in 0..UPDATES {
            let request = UpdateRequest {
                name: "update".into(),
                input: vec![Payload::default(); PAYLOADS],
                ..UpdateRequest::default()
            };
            let update = UpdateRunRequest {
                target: Some(RunTarget { workflow: Some(workflow.clone()), run: None }),
                update: number.to_string(),
                request: Some(request),
                ..UpdateRunRequest::default()
            };
            let mut client = client.clone();
            attackers.spawn(async move { client.update_run(update).await });
        }
    }
    // Those that are not refused wait for a worker, which never comes.
    let _ = timeout(HELD, async { while attackers.join_next().await.is_some() {} }).await;
    drop(attackers);
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}
