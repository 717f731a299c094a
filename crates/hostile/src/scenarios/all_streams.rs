//! One address that opens as many streams as the server has, and uses none of them.

use std::time::Duration;

use abide_proto::generated::{AnswersFrame, abide_client::AbideClient};
use tokio::time::sleep;
use tonic::Streaming;

use crate::{Arena, Finding, Report, Victim, memory::Memory};

/// Connections, each with as many streams as it may have.
const CONNECTIONS: usize = 11;
const STREAMS: usize = 990;

/// How long they stay open.
const HELD: Duration = Duration::from_secs(3);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.extend(streams(&victim).await?);
    }
    sleep(HELD).await;
    let report = memory.end(&victim).await?.with("streams", open.len());
    victim.end().await?;
    Ok(report)
}

/// Streams of calls on their own connection, which never carry one.
async fn streams(victim: &Victim) -> Result<Vec<Streaming<AnswersFrame>>, Finding> {
    let mut client = AbideClient::new(victim.channel().await?);
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        match client.calls(tokio_stream::pending()).await {
            Ok(stream) => open.push(stream.into_inner()),
            // The connection was closed already, with everything that it holds.
            Err(_) => break,
        }
    }
    Ok(open)
}
