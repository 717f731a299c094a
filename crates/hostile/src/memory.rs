//! How much memory a victim has while somebody holds on to things, and what others feel.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{Bytes, Finding, Machine, Report, Victim, Watch};

/// The most memory that a server may need, whatever strangers hold open. On a machine that is busy with
/// other things, what was evicted takes longer to go.
const fn most(machine: Machine) -> Bytes {
    match machine {
        Machine::Own => Bytes::mb(400),
        Machine::Shared => Bytes::mb(600),
    }
}

/// The slowest call of an honest client.
const SLOWEST: Duration = Duration::from_millis(250);

/// What is left when all is over: the engine's own, and what the allocator keeps at hand.
const fn left(machine: Machine) -> Bytes {
    match machine {
        Machine::Own => Bytes::mb(150),
        Machine::Shared => Bytes::mb(200),
    }
}

/// How long it may take until memory is given back.
const GIVEN_BACK: Duration = Duration::from_secs(20);

/// How far apart the looks at it are.
const LOOK: Duration = Duration::from_millis(100);

/// Watches the memory of a victim, and an honest client of it.
pub(crate) struct Memory {
    before: Bytes,
    watch: Watch,
}

impl Memory {
    /// Begins to watch.
    pub(crate) async fn watch(victim: &Victim) -> Result<Self, Finding> {
        let mut honest = victim.honest().await?;
        honest.round().await?;
        Ok(Self { before: victim.rss(), watch: honest.watch() })
    }

    /// What strangers hold was let go: the memory must have been within its bound, and come back.
    pub(crate) async fn end(self, victim: &Victim) -> Result<Report, Finding> {
        let latency = self.watch.end().await?;
        let (peak, until) = (victim.peak_rss(), Instant::now() + GIVEN_BACK);
        let left = left(victim.machine());
        while victim.rss() > left && Instant::now() < until {
            sleep(LOOK).await;
        }
        let after = victim.rss();
        let figures = format!("{} -> {peak} -> {after}, slowest call {latency}", self.before);
        Finding::unless(peak <= most(victim.machine()), || format!("too much memory: {figures}"))?;
        Finding::unless(after <= left, || format!("memory is not given back: {figures}"))?;
        let soon = latency.worst <= SLOWEST || victim.machine() == Machine::Shared;
        Finding::unless(soon, || format!("others wait: {figures}"))?;
        Ok(Report::default()
            .with("RSS before", self.before)
            .with("at most", peak)
            .with("after", after)
            .with("slowest call", latency))
    }
}
