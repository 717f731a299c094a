//! The options of the crash test, and the plan that follows from them.

use std::{path::PathBuf, time::Duration};

use abide_command::Failed;
use clap::Args;
use fastrand::Rng;

use crate::{database::Database, faults::FaultKind, site::Layout};

/// Kill servers and workers again and again, and look for anything lost
///
/// Starts a server on a fresh data folder and a worker, or several of both on a PostgreSQL database,
/// lets clients run workflows with activities, sleeps, signals, updates, children and deadlines that
/// are moved, and kills processes with SIGKILL at random moments, one or several at once, mostly at
/// work and sometimes while they start. With a database it also freezes nodes past their lease, cuts
/// them off from the database, loses the answers to commits, and restarts all nodes one after the
/// other. Every call that was not answered is repeated with its key. At the end each acknowledged
/// start, signal, update and result must have exactly one effect, every timer must have fired once and
/// not before the time that it was last moved to, no acknowledged extension may be lost, no activity
/// may run again after its result was recorded, and one that runs at most once may not run twice.
/// Meanwhile each node is asked directly, and must never answer with what is no longer true.
#[derive(Args)]
#[command(after_help = "Example:
  abide crash-test --kills 1000
  abide crash-test --nodes 3 --store postgres://abide@127.0.0.1/empty --faults kill,freeze,roll")]
pub struct CrashTest {
    /// How often servers are killed, and workers as well
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// How many clients work at the same time
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// How many servers there are, and as many workers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// The PostgreSQL database of the servers, which must be empty; without it there is one server, on
    /// a file
    #[arg(long, value_name = "postgres://USER:PASSWORD@HOST/DATABASE")]
    store: Option<String>,
    /// Seconds that a server may be silent before others take its runs
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    lease: u64,
    /// What is done, with commas between; by default all that can be
    #[arg(long, value_name = "FAULTS", value_delimiter = ',')]
    faults: Vec<FaultKind>,
    /// How often each fault other than kills is done
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Restarts the database, for the fault of that name; run by the shell
    #[arg(long, value_name = "COMMAND")]
    restart_database: Option<String>,
    /// Decides what happens when; by default another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Where everything is kept, which must be new; by default a temporary folder, which is left if
    /// something is found
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Be a worker that is killed
    #[arg(long, hide = true)]
    work: bool,
}

pub(crate) struct Plan {
    /// Seed of all random choices.
    pub(crate) seed: u64,
    /// How often each kind of process is killed.
    pub(crate) kills: u32,
    /// Number of clients, each with its own journeys.
    pub(crate) clients: usize,
    /// Nodes, database and lease.
    pub(crate) layout: Layout,
    /// Shell command that restarts the database.
    pub(crate) restart_database: Option<String>,
    faults: Vec<FaultKind>,
    rounds: usize,
}

impl Plan {
    /// Whether the plan includes this fault.
    pub(crate) fn has(&self, fault: FaultKind) -> bool {
        self.faults.contains(&fault)
    }

    /// All faults but kills, each as often as it is to happen.
    pub(crate) fn others(&self) -> Vec<FaultKind> {
        let others = self.faults.iter().copied().filter(|fault| *fault != FaultKind::Kill);
        others.flat_map(|fault| std::iter::repeat_n(fault, self.rounds)).collect()
    }
}

impl CrashTest {
    /// Whether this process is one of the workers.
    pub(crate) const fn works(&self) -> bool {
        self.work
    }

    /// The folder for stores, logs and the ledger.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| {
            std::env::temp_dir().join(format!("abide-crash-test-{}", std::process::id()))
        })
    }

    /// Whether the user has named no folder.
    pub(crate) const fn folder_is_temporary(&self) -> bool {
        self.folder.is_none()
    }

    /// The plan, if the options make sense.
    pub(crate) fn plan(&self) -> Result<Plan, Failed> {
        let database = self.store.as_deref().map(Database::parse).transpose()?;
        if self.nodes > 1 && database.is_none() {
            return Err(Failed::usage("several nodes need a database that they share")
                .hint("name an empty one with --store, or leave --nodes out"));
        }
        if self.lease == 0 {
            return Err(Failed::usage("a lease lasts a second at least").hint("try --lease 1"));
        }
        let mut faults = self.faults.clone();
        if faults.is_empty() {
            let all = [FaultKind::Kill, FaultKind::Failover, FaultKind::Freeze, FaultKind::Cut];
            let all = all.into_iter().chain([
                FaultKind::LoseAnswers,
                FaultKind::Database,
                FaultKind::Roll,
            ]);
            // Without a database, kills are the only faults that a process can survive.
            faults = all.filter(|fault| self.needs(*fault).is_none()).collect();
            faults.retain(|fault| database.is_some() || *fault == FaultKind::Kill);
        }
        faults.sort_unstable();
        faults.dedup();
        if let Some((fault, needed)) = faults.iter().find_map(|f| Some((f, self.needs(*f)?))) {
            return Err(Failed::usage(format_args!("the fault {fault} needs {needed}"))
                .hint(format!("say {needed}, or leave the fault out")));
        }
        Ok(Plan {
            seed: self.seed.unwrap_or_else(|| Rng::new().u64(..1_000_000)),
            kills: self.kills,
            clients: self.clients,
            layout: Layout {
                nodes: self.nodes.into(),
                database,
                lease: Duration::from_secs(self.lease),
            },
            restart_database: self.restart_database.clone(),
            faults,
            rounds: self.rounds,
        })
    }

    /// The missing option that this fault needs, if any.
    fn needs(&self, fault: FaultKind) -> Option<&'static str> {
        let (given, needed) = match fault {
            FaultKind::Kill | FaultKind::Freeze | FaultKind::Roll => return None,
            FaultKind::Failover => (self.nodes > 1, "--nodes"),
            FaultKind::Cut | FaultKind::LoseAnswers => (self.store.is_some(), "--store"),
            FaultKind::Database => (self.restart_database.is_some(), "--restart-database"),
        };
        (!given).then_some(needed)
    }
}
