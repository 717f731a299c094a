//! More than a gigabyte of everything at once: unfinished messages, unread histories, unread
//! answers, idle connections.

use std::time::Duration;

use abide_proto::generated::{
    CallsFrame, DescribeRunRequest, HistoryRowsRequest, NumberedCall, numbered_call::Call as Asked,
};
use bytes::Bytes;
use prost::Message as _;
use tokio::{task::JoinSet, time::timeout};
use tonic::transport::Channel;

use super::{unfinished, unread};
use crate::{Arena, Finding, Report, memory::Memory, raw};

/// How long all of it is held.
const HELD: Duration = Duration::from_secs(15);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    unread::large_run(&victim).await?;
    let memory = Memory::watch(&victim).await?;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(victim.channel().await?);
    }
    let mut attackers = JoinSet::new();
    // 64 messages of 16 MB.
    for _ in 0..16 {
        let channel = victim.channel().await?;
        for _ in 0..4 {
            attackers.spawn(unfinished::hold(channel.clone()));
        }
    }
    let mut unread = Vec::new();
    for _ in 0..16 {
        unread.push(unread::followers(&victim, 25).await?);
        let channel = victim.channel().await?;
        for _ in 0..4 {
            attackers.spawn(ask(channel.clone()));
        }
    }
    let _ = timeout(HELD, async { while attackers.join_next().await.is_some() {} }).await;
    drop((attackers, unread, idle));
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

/// Asks for pages and descriptions in endless frames, and reads no answer.
async fn ask(channel: Channel) {
    let call = |number: u64| {
        let target = Some(unread::target());
        let call = if number.is_multiple_of(2) {
            Asked::History(HistoryRowsRequest { target, from: 0, follow: None })
        } else {
            Asked::Describe(DescribeRunRequest { target })
        };
        NumberedCall { number, call: Some(call) }
    };
    let frame = CallsFrame { calls: (0..1_000).map(call).collect(), abandoned: vec![0; 3_000] };
    let frame = Bytes::from(frame.encode_to_vec());
    let frames = tokio_stream::iter(std::iter::repeat(frame));
    let unread = raw::stream(&channel, "/abide.v1.Abide/Calls", frames).await;
    std::future::pending::<()>().await;
    drop(unread);
}
