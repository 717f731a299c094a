//! The arena of a scenario: a temporary folder, in which it starts as many servers as it needs.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use abide_server::Config;
use tempfile::TempDir;

use crate::{Finding, Victim, small_disk::SmallDisk, victim::Launch};

/// Whether the machine is shared with other load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// No other load: durations are checked against their bounds.
    Own,
    /// Other load, such as builds and tests: durations are reported and not checked.
    Shared,
}

/// The arena of one scenario. Dropping it removes the folder.
#[derive(Debug)]
pub struct Arena {
    folder: TempDir,
    started: AtomicU32,
    machine: Machine,
}

impl Arena {
    /// An arena with an empty temporary folder and no servers.
    pub fn new(machine: Machine) -> Result<Self, Finding> {
        let folder = TempDir::with_prefix("abide-hostile-")?;
        Ok(Self { folder, started: AtomicU32::new(0), machine })
    }

    /// Starts a server on an empty store, with the default configuration and free ports.
    pub async fn start(&self) -> Result<Victim, Finding> {
        self.start_with(|_| {}).await
    }

    /// The same with a changed configuration. A server that names the `data` of an earlier one
    /// continues with its store.
    pub async fn start_with(&self, change: impl FnOnce(&mut Config)) -> Result<Victim, Finding> {
        self.launch(None, change).await
    }

    /// The same where a small disk is.
    pub(crate) async fn start_on(&self, disk: &SmallDisk, data: &Path) -> Result<Victim, Finding> {
        self.launch(Some(disk), |config| data.clone_into(&mut config.data)).await
    }

    async fn launch(
        &self,
        disk: Option<&SmallDisk>,
        change: impl FnOnce(&mut Config),
    ) -> Result<Victim, Finding> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let free = (Ipv4Addr::LOCALHOST, 0).into();
        let data = self.path(&format!("data-{number}"));
        let mut config =
            Config { grpc_address: free, http_address: free, data, ..Config::default() };
        change(&mut config);
        let launch = Launch { machine: self.machine, disk };
        Victim::start(&self.path(&format!("server-{number}")), &config, launch).await
    }

    /// A path in the arena's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
