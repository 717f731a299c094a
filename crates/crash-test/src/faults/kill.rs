//! Kills nodes and workers without warning, one or several at once, and restarts them: at once, or
//! after others may have taken over.

use fastrand::Rng;

use crate::{
    check::{Finding, unable},
    processes::Process,
    site::Site,
};

/// Kills that are left to do, and those done.
pub(crate) struct Kills {
    nodes_left: u32,
    workers_left: u32,
    /// How often nodes and workers were killed together, as in a power cut.
    pub(crate) both: u32,
}

/// The kinds of processes in one kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    Nodes,
    Workers,
    Both,
}

impl Kills {
    /// Plans so many kills of each kind.
    pub(crate) const fn of_each(count: u32) -> Self {
        Self { nodes_left: count, workers_left: count, both: 0 }
    }

    /// Whether no kills are left.
    pub(crate) const fn done(&self) -> bool {
        self.nodes_left == 0 && self.workers_left == 0
    }

    /// Chooses the next kill: nodes as often as workers, in random order, now and then both.
    fn choose(&self, rng: &mut Rng) -> Victims {
        match (self.nodes_left, self.workers_left) {
            (_, 0) => Victims::Nodes,
            (0, _) => Victims::Workers,
            _ => match rng.u8(0..5) {
                0 => Victims::Both,
                1 | 2 => Victims::Nodes,
                _ => Victims::Workers,
            },
        }
    }
}

pub(super) async fn perform(
    site: &mut Site,
    kills: &mut Kills,
    rng: &mut Rng,
) -> Result<(), Finding> {
    let victims = kills.choose(rng);
    let stays_away = site.shared() && rng.bool();
    let pause = site.lease.mul_f64(1.5 * rng.f64());
    let mut killed: Vec<&mut Process> = Vec::new();
    if victims != Victims::Workers {
        let nodes = site.nodes.iter_mut().map(|node| &mut node.process).collect();
        killed.extend(some(nodes, &mut kills.nodes_left, rng));
    }
    if victims != Victims::Nodes {
        let workers = site.workers.iter_mut().collect();
        killed.extend(some(workers, &mut kills.workers_left, rng));
    }
    kills.both += u32::from(victims == Victims::Both);
    for process in &mut killed {
        process.kill().await.map_err(unable("kill"))?;
    }
    if stays_away {
        tokio::time::sleep(pause).await;
    }
    for process in killed {
        process.start_again().map_err(unable("restart"))?;
    }
    Ok(())
}

/// Mostly one of them, sometimes several, no more than are left.
fn some<'a>(
    mut all: Vec<&'a mut Process>,
    left: &mut u32,
    rng: &mut Rng,
) -> impl Iterator<Item = &'a mut Process> {
    rng.shuffle(&mut all);
    let several = if rng.u8(0..3) == 0 { rng.usize(1..=all.len()) } else { 1 };
    let count = several.min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= u32::try_from(count).unwrap_or(*left);
    all.into_iter().take(count)
}
