//! A server and a worker in their own processes, measured from outside.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use abide_command::Failed;
use tokio::{process::Child, time::sleep};

use crate::{
    machine::Usage,
    place::{spawn_server, spawn_worker},
    report::spinner,
};

/// A server and its worker.
pub(crate) struct Processes {
    server: Child,
    worker: Child,
    pub(crate) url: String,
    /// When the server was ready.
    pub(crate) ready: Instant,
}

/// Resident memory in megabytes.
#[derive(Clone, Copy)]
pub(crate) struct MemoryUse {
    pub(crate) server_mb: f64,
    pub(crate) worker_mb: f64,
}

impl MemoryUse {
    /// The increase of both together.
    pub(crate) const fn above(self, before: Self) -> f64 {
        self.server_mb + self.worker_mb - before.server_mb - before.worker_mb
    }
}

impl Processes {
    pub(crate) async fn start(data: &Path) -> Result<Self, Failed> {
        let (server, url) = spawn_server(data).await?;
        let ready = Instant::now();
        let worker = spawn_worker(&url).await?;
        Ok(Self { server, worker, url, ready })
    }

    pub(crate) fn memory(&self) -> Option<MemoryUse> {
        let mb = |process| Some(Usage::of(&[process])?.resident as f64 / 1e6);
        Some(MemoryUse { server_mb: mb(self.server.id()?)?, worker_mb: mb(self.worker.id()?)? })
    }

    /// Processor time of both, in percent of one core.
    pub(crate) async fn watch(&self, time: Duration) -> Option<f64> {
        let both = [self.server.id()?, self.worker.id()?];
        let bar = spinner("idle");
        let (before, begun) = (Usage::of(&both)?, Instant::now());
        sleep(time).await;
        let (after, elapsed) = (Usage::of(&both)?, begun.elapsed());
        bar.finish_and_clear();
        let used = after.cpu.saturating_sub(before.cpu);
        Some(100.0 * used.as_secs_f64() / elapsed.as_secs_f64())
    }

    /// Kills both, as a crash would.
    pub(crate) async fn end(mut self) -> Result<(), Failed> {
        for process in [&mut self.worker, &mut self.server] {
            process.kill().await.map_err(|error| {
                Failed::refused(format_args!("a process of the benchmark cannot be ended: {error}"))
            })?;
        }
        Ok(())
    }
}
