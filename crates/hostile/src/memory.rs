//! Memory of a victim while clients hold on to resources, and what other clients experience.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{Bytes, Finding, Machine, Report, Victim, Watch};

/// The most memory that a server may need, whatever strangers hold open. Beside other work it serves
/// more slowly, and so holds a little more.
const fn most(machine: Machine) -> Bytes {
    match machine {
        Machine::Own => Bytes::mb(400),
        Machine::Shared => Bytes::mb(500),
    }
}

/// Bound on the slowest call of an honest client.
const SLOWEST: Duration = Duration::from_millis(250);

/// Memory that may remain at the end: the engine's own, and what the allocator keeps.
const fn left(machine: Machine) -> Bytes {
    match machine {
        Machine::Own => Bytes::mb(200),
        Machine::Shared => Bytes::mb(300),
    }
}

/// How long it may take until memory is released.
const GIVEN_BACK: Duration = Duration::from_secs(20);

/// Interval between two measurements.
const LOOK: Duration = Duration::from_millis(100);

/// Watches the memory of a victim, and an honest client of it.
pub(crate) struct Memory {
    before: Bytes,
    watch: Watch,
}

impl Memory {
    /// Starts an honest client that runs until [`Memory::end`].
    pub(crate) async fn watch(victim: &Victim) -> Result<Self, Finding> {
        let mut honest = victim.honest().await?;
        honest.round().await?;
        Ok(Self { before: victim.rss(), watch: honest.watch() })
    }

    /// Call it after the strangers have let go: the memory must have stayed within its bound, and
    /// must go down again.
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
