//! Where the engine and the worker of a measurement run: all in this process, on a remote engine,
//! or in their own processes.

use std::{path::Path, process::Stdio, sync::Arc};

use abide::{Client, WorkerError};
use abide_command::{Common, Failed, own_process};
use abide_embedded::Embedded;
use abide_server::Secret;
use abide_store_sqlite::{Counts, Options, SqliteStore};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
};

use crate::workflows;

/// A client of an engine that has a worker.
pub(crate) struct Deployment {
    pub(crate) client: Client,
    /// Description for the report.
    pub(crate) what: &'static str,
    /// Ids of the processes at work, this one included.
    pub(crate) processes: Vec<u32>,
    parts: Parts,
}

enum Parts {
    Here {
        engine: Embedded,
        store: Arc<SqliteStore>,
        worker: LocalWorker,
    },
    Elsewhere(LocalWorker),
    /// They are killed when dropped.
    Spawned {
        _processes: Box<[Child; 2]>,
    },
}

impl Deployment {
    /// All in this process, on a new file in the directory.
    pub(crate) async fn here(directory: &Path) -> Result<Self, Failed> {
        let options = Options::new(directory.join("engine.db"));
        let store = tokio::task::spawn_blocking(move || SqliteStore::open(&options))
            .await
            .map_err(Failed::refused)?
            .map_err(Failed::refused)?;
        let store = Arc::new(store);
        let engine = Embedded::builder().start(Arc::clone(&store) as _).await;
        let client = engine.client();
        let worker = LocalWorker::begin(&client);
        let parts = Parts::Here { engine, store, worker };
        let processes = vec![std::process::id()];
        Ok(Self { client, what: "in process", processes, parts })
    }

    /// The worker in this process, the engine at the given address.
    pub(crate) async fn elsewhere(common: &Common) -> Result<Self, Failed> {
        let client = common.client().await?;
        let parts = Parts::Elsewhere(LocalWorker::begin(&client));
        let processes = vec![std::process::id()];
        Ok(Self { client, what: "worker here, engine elsewhere", processes, parts })
    }

    /// In this process, unless an address was given.
    pub(crate) async fn given(common: &Common, directory: &Path) -> Result<Self, Failed> {
        if common.address.is_some() {
            Self::elsewhere(common).await
        } else {
            Self::here(directory).await
        }
    }

    /// Server and worker in their own processes.
    pub(crate) async fn spawned(directory: &Path) -> Result<Self, Failed> {
        let (server, url) = spawn_server(&directory.join("data")).await?;
        let worker = spawn_worker(&url).await?;
        let common = Common::at(url);
        let processes = [server.id(), worker.id(), Some(std::process::id())];
        Ok(Self {
            client: common.client().await?,
            what: "server, worker and client in processes of their own",
            processes: processes.into_iter().flatten().collect(),
            parts: Parts::Spawned { _processes: Box::new([server, worker]) },
        })
    }

    /// Counters of the store, if it is in this process.
    pub(crate) fn committed(&self) -> Option<Counts> {
        match &self.parts {
            Parts::Here { store, .. } => Some(store.counts()),
            Parts::Elsewhere(_) | Parts::Spawned { .. } => None,
        }
    }

    /// Stops what runs in this process gracefully, and kills other processes.
    pub(crate) async fn end(self) -> Result<(), Failed> {
        match self.parts {
            Parts::Here { engine, store, worker } => {
                worker.end().await?;
                drop(store);
                engine.shutdown().await;
            }
            Parts::Elsewhere(worker) => worker.end().await?,
            Parts::Spawned { .. } => {}
        }
        Ok(())
    }
}

/// A worker in this process.
pub(crate) struct LocalWorker {
    stop: oneshot::Sender<()>,
    worker: JoinHandle<Result<(), WorkerError>>,
}

impl LocalWorker {
    pub(crate) fn begin(client: &Client) -> Self {
        let (stop, stopped) = oneshot::channel();
        let worker = workflows::worker(client).run_until(async {
            // The sender lives until it is used.
            let _ = stopped.await;
        });
        Self { stop, worker: tokio::spawn(worker) }
    }

    pub(crate) async fn end(self) -> Result<(), Failed> {
        // If the worker has already ended, it reports the reason below.
        let _ = self.stop.send(());
        self.worker.await.map_err(Failed::refused)?.map_err(Failed::refused)
    }
}

/// Starts a server on this folder, waits until it is ready, and returns its address.
pub(crate) async fn spawn_server(data: &Path) -> Result<(Child, String), Failed> {
    let mut command = serve()?;
    command.arg("--data").arg(data);
    spawn_listening(command).await
}

/// The same for one of several servers on a database.
pub(crate) async fn spawn_node(
    store: &str,
    name: &str,
    secret: &Secret,
) -> Result<(Child, String), Failed> {
    let mut command = serve()?;
    // Secrets do not belong in arguments, which every user of the machine can see.
    command.env("ABIDE_STORE", store).env("ABIDE_NODE_SECRET", &secret.0).args(["--node", name]);
    spawn_listening(command).await
}

/// The command that starts a server on free ports.
fn serve() -> Result<Command, Failed> {
    let mut command = this_program()?;
    command.args(["serve", "--json", "--address", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    Ok(command)
}

async fn spawn_listening(command: Command) -> Result<(Child, String), Failed> {
    let (child, said) = spawn(command).await?;
    let url = said.get("address").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((child, url))
}

/// Starts a worker for the server at this address.
pub(crate) async fn spawn_worker(url: &str) -> Result<Child, Failed> {
    let mut command = this_program()?;
    command.args(["bench", "worker", "--json", "--address", url]);
    Ok(spawn(command).await?.0)
}

fn this_program() -> Result<Command, Failed> {
    let command = own_process()
        .map_err(|error| Failed::refused(format_args!("this program is not found: {error}")))?;
    Ok(Command::from(command))
}

/// Starts a process that ends with this one, and waits for its first line.
async fn spawn(mut command: Command) -> Result<(Child, Value), Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        Failed::refused(format_args!("a process of the benchmark did not start: {error}"))
    };
    let mut child = command
        // Do not log that a process ends because it is killed.
        .env("ABIDE_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(&error))?;
    let stdout = child.stdout.take().ok_or_else(|| failed(&"it has no output"))?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.map_err(|error| failed(&error))?;
    let said = serde_json::from_str(&line).map_err(|_| failed(&"it ended before it was ready"))?;
    Ok((child, said))
}
