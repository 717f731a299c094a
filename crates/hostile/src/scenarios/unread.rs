//! 900 followers on nine connections that never read a history of 56 MB.

use std::time::Duration;

use abide_core::codec::generated::{Payload, RunSpec, WorkflowKey};
use abide_proto::generated::{
    FollowHistoryRequest, GetHistoryResponse, RunTarget, Signal, SignalRunRequest, StartRunRequest,
    abide_client::AbideClient,
};
use tokio::time::sleep;
use tonic::{
    Streaming,
    transport::{Channel, Endpoint},
};

use crate::{Arena, Finding, Report, Victim, memory::Memory};

/// Rows of a megabyte.
const ROWS: usize = 56;

/// Entries in the memo, as small and as many as its limit allows.
const REMARKS: usize = 5_000;

/// How long nothing is read: longer than the server waits for readers.
const HELD: Duration = Duration::from_secs(15);

/// The smallest receive window of a client.
const WINDOW: u32 = 1 << 16;

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    large_run(&victim).await?;
    let memory = Memory::watch(&victim).await?;
    let mut unread = Vec::new();
    for _ in 0..9 {
        unread.extend(followers(&victim, 100).await?);
    }
    sleep(HELD).await;
    drop(unread);
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

/// Followers of the large run on their own connection, which do not read yet.
pub(super) async fn followers(
    victim: &Victim,
    count: usize,
) -> Result<Vec<Streaming<GetHistoryResponse>>, Finding> {
    let endpoint = Endpoint::from_shared(format!("http://{}", victim.address()))?;
    let endpoint =
        endpoint.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let mut client = AbideClient::new(endpoint.connect().await?);
    let mut followers = Vec::new();
    for _ in 0..count {
        let request = FollowHistoryRequest { target: Some(target()), after: 0 };
        match client.follow_history(request).await {
            Ok(follower) => followers.push(follower.into_inner()),
            // The connection was closed already, with everything that it holds.
            Err(_) => break,
        }
    }
    Ok(followers)
}

pub(super) fn target() -> RunTarget {
    RunTarget { workflow: Some(workflow()), run: None }
}

fn workflow() -> WorkflowKey {
    WorkflowKey { namespace: "default".into(), workflow: "large".into() }
}

/// A run whose history has 56 MB, and whose description has thousands of small parts.
pub(super) async fn large_run(victim: &Victim) -> Result<(), Finding> {
    let mut client: AbideClient<Channel> = AbideClient::new(victim.channel().await?);
    let remark = |number| {
        (format!("remark-{number}"), Payload { data: vec![7].into(), ..Payload::default() })
    };
    let spec = RunSpec {
        workflow_type: "large".into(),
        queue: "large".into(),
        memo: (0..REMARKS).map(remark).collect(),
        ..RunSpec::default()
    };
    let start = StartRunRequest {
        workflow: Some(workflow()),
        spec: Some(spec),
        ..StartRunRequest::default()
    };
    client.start_run(start).await?;
    let payload = Payload { data: vec![7; 1_000_000].into(), ..Payload::default() };
    let signal = Signal { name: "more".into(), input: vec![payload], ..Signal::default() };
    for _ in 0..ROWS {
        let request = SignalRunRequest {
            target: Some(target()),
            signal: Some(signal.clone()),
            ..SignalRunRequest::default()
        };
        client.signal_run(request).await?;
    }
    Ok(())
}
