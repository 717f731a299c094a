//! Thousands of counts over many runs at once, while an honest client lists runs.

use std::time::Duration;

use abide_core::codec::generated::{RunSpec, WorkflowKey};
use abide_proto::generated::{
    CallsFrame, CountRunsRequest, NumberedCall, StartRunRequest, abide_client::AbideClient,
    numbered_call::Call as Asked,
};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;

use crate::{Arena, Finding, Report, memory::Memory};

/// Runs that are counted.
const RUNS: u64 = 12_000;

const COUNTS: u64 = 8_000;

/// Calls per frame.
const FRAME: u64 = 4_000;

/// How long the counts have.
const HELD: Duration = Duration::from_secs(5);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    ask(victim.channel().await?, RUNS, start).await?;
    let memory = Memory::watch(&victim).await?;
    let count = |_| Asked::CountRuns(CountRunsRequest::default());
    // The answers to all of them need not come: their asker waits for itself.
    let counted = timeout(HELD, ask(victim.channel().await?, COUNTS, count)).await;
    if let Ok(counted) = counted {
        counted?;
    }
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

fn start(number: u64) -> Asked {
    let workflow =
        WorkflowKey { namespace: "default".into(), workflow: format!("counted-{number}") };
    let (workflow_type, queue) = ("counted".into(), "counted".into());
    Asked::Start(StartRunRequest {
        workflow: Some(workflow),
        spec: Some(RunSpec { workflow_type, queue, ..RunSpec::default() }),
        ..StartRunRequest::default()
    })
}

/// Makes so many calls on one stream, and reads their answers.
async fn ask(channel: Channel, calls: u64, call: impl Fn(u64) -> Asked) -> Result<(), Finding> {
    let calls: Vec<_> =
        (0..calls).map(|number| NumberedCall { number, call: Some(call(number)) }).collect();
    let frames: Vec<_> = calls
        .chunks(usize::try_from(FRAME)?)
        .map(|calls| CallsFrame { calls: calls.to_vec(), ..CallsFrame::default() })
        .collect();
    let frames = tokio_stream::iter(frames).chain(tokio_stream::pending());
    let mut answers = AbideClient::new(channel).calls(frames).await?.into_inner();
    let mut missing = calls.len();
    while missing > 0 {
        let frame = answers.message().await?;
        let frame = frame.ok_or_else(|| Finding::new("the stream of calls ended"))?;
        missing = missing.saturating_sub(frame.answers.len());
    }
    Ok(())
}
