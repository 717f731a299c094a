//! Messages of the largest size that lack their last byte: 160 on three connections, then as many
//! from connections that reconnect when they are closed.

use std::time::Duration;

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{Arena, Finding, Report, memory::Memory, raw};

/// The largest message that a server accepts.
const LENGTH: u32 = 16 << 20;

/// How long the unfinished messages are held.
const HELD: Duration = Duration::from_secs(15);

/// Pause between two connections of the same attacker.
const AGAIN: Duration = Duration::from_millis(50);

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut attackers = JoinSet::new();
    for streams in [54, 53, 53] {
        let channel = victim.channel().await?;
        for _ in 0..streams {
            attackers.spawn(hold(channel.clone()));
        }
    }
    // However the streams end, the attackers begin others.
    let _ = timeout(HELD, async { while attackers.join_next().await.is_some() {} }).await;
    drop(attackers);
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}

/// Begins messages again and again.
pub(super) async fn hold(channel: tonic::transport::Channel) {
    loop {
        let sent = usize::try_from(LENGTH - 1).unwrap_or(usize::MAX);
        let _ = raw::unfinished(channel.clone(), "/abide.v1.Abide/StartRun", (LENGTH, sent)).await;
        sleep(AGAIN).await;
    }
}
