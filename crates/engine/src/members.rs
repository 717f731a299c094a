//! The driver of the lease machine, which decides the shards that this node serves. It carries
//! requests to the registry, and assigns shards to drivers.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use abide_core::ids::ShardId;
use abide_shard::{
    lease::{Lease, LeaseMessage, LeaseOutput, NODE_PREFIX},
    message::Message,
    node::NodeInput,
};
use abide_store::rows::RegistryRow;
use tokio::{runtime::Handle, sync::mpsc, task::JoinSet};

use crate::{
    clock::since_boot,
    driver::{Driver, Posted},
    figures::StoreFault,
    node::{Node, Post},
};

/// The longest sleep. The lease of a node that is alone needs no ticks, so it may be long.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Serves the shards that the lease allows, until the node has left.
pub(crate) struct Members {
    node: Arc<Node>,
    lease: Lease,
    /// Messages of the engine and of other nodes to the lease.
    messages: mpsc::UnboundedReceiver<LeaseMessage>,
    /// The drivers of shards. They end when this is dropped; after a panic the node has recorded the
    /// failure.
    drivers: JoinSet<()>,
    /// The drivers' channels; each drives the shards whose number has the same remainder.
    posts: Vec<mpsc::UnboundedSender<Posted>>,
    /// Shards that a driver has ended.
    ended: mpsc::UnboundedReceiver<ShardId>,
    /// Differing leases of other nodes that were already logged.
    warned_of: BTreeMap<String, Duration>,
    /// It was already logged that the node's name is taken.
    name_conflict_logged: bool,
}

/// The result of a message to the lease.
struct LeaseStep {
    /// The request to send to the registry.
    request: Option<RegistryRequest>,
    left: bool,
}

/// The registry request in flight; yields the message that carries its answer.
type Asked<'a> = Pin<Box<dyn Future<Output = LeaseMessage> + Send + 'a>>;

/// A request to the registry.
enum RegistryRequest {
    Read,
    Put(RegistryRow),
}

impl Members {
    pub(crate) fn new(
        node: Arc<Node>,
        lease: Lease,
        messages: mpsc::UnboundedReceiver<LeaseMessage>,
    ) -> Self {
        let mut drivers = JoinSet::new();
        let (sender, ended) = mpsc::unbounded_channel();
        let threads = Handle::current().metrics().num_workers();
        let posts = (0..threads.clamp(1, usize::from(ShardId::COUNT))).map(|_| {
            let (driver, posts) = Driver::new(Arc::clone(&node), sender.clone());
            drivers.spawn(driver.run());
            posts
        });
        let posts = posts.collect();
        Self {
            node,
            lease,
            messages,
            drivers,
            posts,
            ended,
            warned_of: BTreeMap::new(),
            name_conflict_logged: false,
        }
    }

    /// Takes the first step at once, so that the shards of a node that is alone accept calls from
    /// here on; the returned future runs until the node has left.
    pub(crate) fn run(mut self) -> impl Future<Output = ()> + Send {
        let begun = self.step(LeaseMessage::Tick);
        async move {
            let node = Arc::clone(&self.node);
            let mut asked: Option<Asked<'_>> = None;
            let mut step = begun;
            while !step.left {
                if let Some(request) = step.request {
                    asked = Some(ask(&node, request));
                }
                let message = self.next(&mut asked).await;
                step = self.step(message);
            }
            // No shard is left. The drivers hold the store, which may be opened again after this.
            self.drivers.shutdown().await;
        }
    }

    fn step(&mut self, message: LeaseMessage) -> LeaseStep {
        self.lease.handle(since_boot(), message);
        // The node must see the lease's new state before the outputs, which notify nodes and close
        // shards.
        self.node.standing(&self.lease);
        let step = self.carry_out();
        self.node.arrived(&self.lease);
        self.warn_of_other_leases();
        self.warn_of_name();
        self.fail_beside_stranger();
        step
    }

    /// Fails the engine if a live node with which it cannot communicate uses the same store.
    fn fail_beside_stranger(&self) {
        if let Some(row) = self.lease.stranger() {
            let name = row.strip_prefix(NODE_PREFIX).unwrap_or(row);
            self.node.fail(format!(
                "another node, {name:?}, is alive on this database, and the two cannot communicate: all \
                 nodes of a database need the same secret; generate it with `abide nodes secret` and \
                 set --secret-file"
            ));
        }
    }

    /// Logs once that the node waits for its name.
    fn warn_of_name(&mut self) {
        let taken = self.lease.name_taken();
        if taken && !self.name_conflict_logged {
            tracing::warn!(
                node = self.node.name,
                "another process holds a lease with this node name: waiting until the lease expires; if \
                 two nodes of a cluster have the same name, the wait never ends"
            );
        }
        self.name_conflict_logged = taken;
    }

    /// Logs once per node that its lease differs, which delays takeovers and is rarely intended.
    fn warn_of_other_leases(&mut self) {
        for (node, lease) in self.lease.other_leases() {
            if self.warned_of.insert(node.clone(), *lease) != Some(*lease) {
                tracing::warn!(
                    node,
                    ?lease,
                    "the lease of another node differs: takeovers of its shards, and of this node's, \
                     wait for the longer of both"
                );
            }
        }
    }

    /// Waits for the next message to the lease.
    async fn next(&mut self, asked: &mut Option<Asked<'_>>) -> LeaseMessage {
        if let Some(shard) = self.node.without_driver() {
            self.node.release(shard);
            return LeaseMessage::ShardReleased(shard);
        }
        let wake_at = self.lease.wake_at();
        let pause = wake_at.map_or(LONGEST_SLEEP, |at| at.saturating_sub(since_boot()));
        let answer = async {
            match asked {
                Some(answer) => answer.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            answered = answer => {
                *asked = None;
                answered
            }
            Some(message) = self.messages.recv() => message,
            Some(shard) = self.ended.recv() => {
                self.node.release(shard);
                LeaseMessage::ShardReleased(shard)
            }
            // A driver ends before this does only by a panic.
            Some(_) = self.drivers.join_next() => {
                tracing::error!("a driver of shards has panicked: its shards are no longer served");
                LeaseMessage::Tick
            }
            () = tokio::time::sleep(pause.min(LONGEST_SLEEP)) => LeaseMessage::Tick,
        }
    }

    /// Carries out the lease's outputs.
    fn carry_out(&mut self) -> LeaseStep {
        let mut step = LeaseStep { request: None, left: false };
        while let Some(output) = self.lease.poll() {
            match output {
                LeaseOutput::ReadRegistry => step.request = Some(RegistryRequest::Read),
                LeaseOutput::PutRegistry(row) => step.request = Some(RegistryRequest::Put(row)),
                LeaseOutput::Open(shard) => {
                    let driver = usize::from(shard.number()) % self.posts.len();
                    self.node.serve(shard, self.posts[driver].clone());
                }
                LeaseOutput::Close(shard) => {
                    drop(self.node.post(shard, Post::Message(Message::Close)));
                }
                LeaseOutput::Lost => {
                    // Workers and callers of a node that is cut off may still reach other nodes.
                    self.node.tell(NodeInput::EndStreams);
                    self.node.post_all(&Message::Lapse);
                }
                LeaseOutput::Tell => self.node.tell(NodeInput::RowsChanged),
                LeaseOutput::Left => step.left = true,
            }
        }
        step
    }
}

fn ask(node: &Node, request: RegistryRequest) -> Asked<'_> {
    Box::pin(async move {
        match request {
            RegistryRequest::Read => match node.store.registry(NODE_PREFIX.into()).await {
                Ok(rows) => LeaseMessage::Registry(rows),
                Err(error) => {
                    node.counters.fault(StoreFault::Registry);
                    node.watch.registry_failed(&error, "cannot read the rows of nodes");
                    LeaseMessage::ReadFailed
                }
            },
            RegistryRequest::Put(row) => match node.store.put_registry(row).await {
                Ok(written) => LeaseMessage::Written(written),
                Err(error) => {
                    node.counters.fault(StoreFault::Registry);
                    node.watch.registry_failed(&error, "cannot write the row of a node");
                    LeaseMessage::WriteFailed
                }
            },
        }
    })
}
