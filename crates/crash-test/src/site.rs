//! All processes of the crash test: nodes, each with its own proxy to the database, and workers.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use abide::Client;
use abide_command::Failed;
use abide_server::Secret;

use crate::{
    check::{Finding, unable},
    database::Database,
    processes::{Launch, Process, ReservedPort},
    proxy::Proxy,
};

const CONFIG: &str = "abide.toml";
const DATA: &str = "data";

/// Hands the attempts of a killed worker to the next one soon. With the default the server would be
/// killed again before the grace period is over, so that many journeys would only wait.
const WORKER_GRACE: &str = "worker_grace_ms = 300\n";

/// Numbers and settings of the processes.
pub(crate) struct Layout {
    /// Number of nodes, and of workers.
    pub(crate) nodes: usize,
    /// The database of all nodes; without one, a single node uses a file.
    pub(crate) database: Option<Database>,
    /// How long a node may be silent before others take over its runs.
    pub(crate) lease: Duration,
}

/// The processes of the crash test, alive until dropped.
pub(crate) struct Site {
    pub(crate) nodes: Vec<Node>,
    pub(crate) workers: Vec<Process>,
    /// How long a node may be silent before others take over its runs.
    pub(crate) lease: Duration,
}

pub(crate) struct Node {
    pub(crate) process: Process,
    /// Its address, as clients write it.
    pub(crate) url: String,
    /// Its proxy to the database, if that is shared.
    pub(crate) proxy: Option<Proxy>,
    /// Kept for the restarts of the process.
    _ports: [ReservedPort; 2],
}

impl Site {
    /// Starts everything on free ports and waits until all nodes are ready.
    pub(crate) async fn start(folder: &Path, layout: &Layout) -> Result<Self, Finding> {
        let mut site = Self::try_start(folder, layout).await.map_err(unable("start"))?;
        site.ready().await?;
        Ok(site)
    }

    /// Waits until all nodes are ready.
    pub(crate) async fn ready(&mut self) -> Result<(), Finding> {
        for node in &mut self.nodes {
            node.process.ready().await.map_err(unable("start"))?;
        }
        Ok(())
    }

    async fn try_start(folder: &Path, layout: &Layout) -> io::Result<Self> {
        std::fs::write(folder.join(CONFIG), WORKER_GRACE)?;
        let mut nodes = Vec::new();
        let secret = Secret::draw();
        for number in 1..=layout.nodes {
            nodes.push(Node::start(folder, number, layout, &secret).await?);
        }
        let mut site = Self { nodes, workers: Vec::new(), lease: layout.lease };
        let urls = site.urls();
        for number in 1..=layout.nodes {
            site.workers.push(Process::start(folder, work(folder, number, &urls))?);
        }
        Ok(site)
    }

    /// The addresses of all nodes, separated by commas.
    pub(crate) fn urls(&self) -> String {
        let urls: Vec<_> = self.nodes.iter().map(|node| node.url.as_str()).collect();
        urls.join(",")
    }

    /// Whether several nodes share the runs.
    pub(crate) fn shared(&self) -> bool {
        self.nodes.len() > 1
    }

    /// A finding if a process has ended by itself.
    pub(crate) fn check_alive(&mut self) -> Result<(), Finding> {
        let nodes = self.nodes.iter_mut().map(|node| &mut node.process);
        for process in nodes.chain(&mut self.workers) {
            if let Some(status) = process.ended().map_err(unable("look after"))? {
                let what = format!("ended by itself with {status}; see its log");
                return Err(Finding::new(process.name(), what));
            }
        }
        Ok(())
    }
}

impl Node {
    async fn start(
        folder: &Path,
        number: usize,
        layout: &Layout,
        secret: &Secret,
    ) -> io::Result<Self> {
        let ports = [ReservedPort::reserve()?, ReservedPort::reserve()?];
        let [address, http] = [ports[0].address()?, ports[1].address()?];
        let mut arguments = words(["serve", "--json", "--address", &address, "--http", &http]);
        arguments.push("--config".into());
        arguments.push(folder.join(CONFIG).into());
        let mut environment = Vec::new();
        let mut proxy = None;
        if let Some(database) = &layout.database {
            let way = Proxy::start(database.place.clone()).await?;
            // In the environment, because the address may hold a password.
            environment.push(("ABIDE_STORE", database.at(way.address())));
            environment.push(("ABIDE_NODE_SECRET", secret.0.clone()));
            arguments.extend(words(["--lease", &layout.lease.as_secs().to_string()]));
            proxy = Some(way);
        } else {
            arguments.extend(["--data".into(), folder.join(DATA).into()]);
        }
        let launch = Launch { name: format!("node-{number}"), arguments, environment };
        let process = Process::start(folder, launch)?;
        Ok(Self { process, url: format!("http://{address}"), proxy, _ports: ports })
    }
}

fn work(folder: &Path, number: usize, urls: &str) -> Launch {
    let mut arguments = words(["crash-test", "--work", "--address", urls, "--folder"]);
    arguments.push(folder.into());
    Launch { name: format!("worker-{number}"), arguments, environment: Vec::new() }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<std::ffi::OsString> {
    words.into_iter().map(Into::into).collect()
}

/// A client of the nodes with these addresses, which retries its calls for so long.
pub(crate) fn connect(urls: &str, patience: Duration) -> Result<Client, Finding> {
    let client = Client::connect_lazy(urls);
    let client = client.map_err(|error| Finding::new(urls, error.to_string()))?;
    Ok(client.with_call_timeout(patience))
}

/// Creates the folder. A used one is refused: its runs and its ledger would be mistaken for those
/// of this test.
pub(crate) fn prepare(folder: &Path) -> Result<(), Failed> {
    let place = folder.display();
    if folder.join(DATA).exists() || ledger_of(folder).exists() {
        return Err(Failed::usage(format_args!("{place} is the folder of an earlier crash test"))
            .hint("name a new folder, or leave --folder out"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Failed::usage(format_args!("the folder {place} cannot be made: {error}")))
}

/// Path of the file in which the workers record their attempts.
pub(crate) fn ledger_of(folder: &Path) -> PathBuf {
    folder.join("ledger.jsonl")
}
