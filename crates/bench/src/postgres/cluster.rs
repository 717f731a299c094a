//! Servers on one database in their own processes, with the shards spread over all of them.

use std::time::{Duration, Instant};

use abide::Client;
use abide_command::{Common, Failed};
use abide_core::ids::ShardId;
use abide_server::Secret;
use tokio::{process::Child, time::sleep};

use super::database::Database;
use crate::{
    machine::Usage,
    place::{spawn_node, spawn_worker},
};

/// How long nodes may take to share the shards, and the interval between checks.
const SHARED_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The servers of one database. They are killed when dropped.
pub(super) struct Cluster<'a> {
    database: &'a Database,
    /// The secret that the servers authenticate each other with.
    secret: Secret,
    nodes: Vec<Node>,
    workers: Vec<Child>,
}

struct Node {
    name: String,
    process: Child,
    url: String,
}

impl<'a> Cluster<'a> {
    /// Starts so many servers, and waits until each has its share of the shards.
    pub(super) async fn start(database: &'a Database, count: usize) -> Result<Self, Failed> {
        let mut cluster =
            Self { database, secret: Secret::draw(), nodes: Vec::new(), workers: Vec::new() };
        for number in 1..=count {
            cluster.join(format!("node-{number}")).await?;
        }
        cluster.shared().await?;
        Ok(cluster)
    }

    async fn join(&mut self, name: String) -> Result<(), Failed> {
        let (process, url) = spawn_node(&self.database.address, &name, &self.secret).await?;
        self.nodes.push(Node { name, process, url });
        Ok(())
    }

    /// Waits until each node has its share of the shards.
    async fn shared(&self) -> Result<(), Failed> {
        let begun = Instant::now();
        let share = usize::from(ShardId::COUNT) / self.nodes.len();
        while begun.elapsed() < SHARED_WITHIN {
            let owners = self.database.owners().await?;
            let has_share =
                |node: &Node| owners.get(&node.name).is_some_and(|shards| shards.len() >= share);
            if self.nodes.iter().all(has_share) {
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
        Err(Failed::refused("the nodes did not share the shards"))
    }

    /// Starts a worker for each node, in its own process.
    pub(super) async fn start_workers(&mut self) -> Result<(), Failed> {
        for node in &self.nodes {
            self.workers.push(spawn_worker(&node.url).await?);
        }
        Ok(())
    }

    /// A client for each node.
    pub(super) async fn clients(&self) -> Result<Vec<Client>, Failed> {
        let mut clients = Vec::new();
        for node in &self.nodes {
            clients.push(Common::at(node.url.clone()).client().await?);
        }
        Ok(clients)
    }

    /// Resources that servers, workers and this process have used.
    pub(super) fn usage(&self) -> Option<Usage> {
        let servers = self.nodes.iter().map(|node| node.process.id());
        let workers = self.workers.iter().map(Child::id);
        let all: Option<Vec<u32>> = servers.chain(workers).collect();
        let mut all = all?;
        all.push(std::process::id());
        Usage::of(&all)
    }

    /// The shards that the last node serves.
    pub(super) async fn shards_of_last(&self) -> Result<Vec<ShardId>, Failed> {
        let mut owners = self.database.owners().await?;
        let served = self.nodes.last().and_then(|node| owners.remove(&node.name));
        Ok(served.unwrap_or_default())
    }

    /// Kills the last node without warning.
    pub(super) async fn kill_last(&mut self) -> Result<(), Failed> {
        let Some(mut node) = self.nodes.pop() else { return Ok(()) };
        node.process.kill().await.map_err(|error| {
            Failed::refused(format_args!("a process of the benchmark cannot be ended: {error}"))
        })
    }

    /// Starts a node in place of a killed one, and waits until it has its share.
    pub(super) async fn restore(&mut self) -> Result<(), Failed> {
        self.join(format!("node-{}", self.nodes.len() + 1)).await?;
        self.shared().await
    }
}
