//! Where a scenario is played: a temporary folder, in which it starts as many servers as it needs.

use std::{
    net::Ipv4Addr,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use abide_server::Config;
use tempfile::TempDir;

use crate::{Finding, Victim};

/// Who uses the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Nobody else: how long things take is judged.
    Own,
    /// Others too, as builds and tests: how long things take is told and not judged.
    Shared,
}

/// Where one scenario is played. It is gone afterwards, with all of its servers.
#[derive(Debug)]
pub struct Arena {
    folder: TempDir,
    started: AtomicU32,
    machine: Machine,
}

impl Arena {
    /// An empty arena.
    pub fn new(machine: Machine) -> Result<Self, Finding> {
        let folder = TempDir::with_prefix("abide-hostile-")?;
        Ok(Self { folder, started: AtomicU32::new(0), machine })
    }

    /// A server on an empty store, with the default configuration and free ports.
    pub async fn start(&self) -> Result<Victim, Finding> {
        self.start_with(|_| {}).await
    }

    /// The same with a changed configuration. A victim that names the `data` of an earlier one goes on
    /// with its store.
    pub async fn start_with(&self, change: impl FnOnce(&mut Config)) -> Result<Victim, Finding> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let free = (Ipv4Addr::LOCALHOST, 0).into();
        let data = self.path(&format!("data-{number}"));
        let mut config =
            Config { grpc_address: free, http_address: free, data, ..Config::default() };
        change(&mut config);
        Victim::start(&self.path(&format!("server-{number}")), &config, self.machine).await
    }

    /// A path in the arena's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
