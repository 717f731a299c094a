//! A thousand connections that answer pings and ask for nothing, while other clients connect.

use crate::{Arena, Finding, Report, memory::Memory};

/// Connections of the attacker.
const COUNT: usize = 1_000;

/// Clients that connect afterwards.
const NEWCOMERS: usize = 20;

pub(super) async fn play(arena: &Arena) -> Result<Report, Finding> {
    let victim = arena.start().await?;
    let memory = Memory::watch(&victim).await?;
    let mut idle = Vec::new();
    for _ in 0..COUNT {
        idle.push(victim.channel().await?);
    }
    for _ in 0..NEWCOMERS {
        victim.honest().await?.round().await?;
    }
    let alive = victim.get("/healthz").await?;
    Finding::unless(alive.contains("alive"), || format!("probes are not answered: {alive}"))?;
    drop(idle);
    let report = memory.end(&victim).await?;
    victim.end().await?;
    Ok(report)
}
