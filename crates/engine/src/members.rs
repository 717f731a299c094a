//! Which shards are served here: the driver of the lease machine. It carries requests to the registry
//! and starts and ends the drivers of shards.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use abide_core::ids::ShardId;
use abide_shard::{
    lease::{Lease, LeaseMessage, LeaseOutput, NODE_PREFIX},
    message::Message,
    node::NodeInput,
};
use abide_store::rows::RegistryRow;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    clock::since_boot,
    driver::Driver,
    figures::StoreFault,
    node::{Node, Post},
};

/// A lease of a node that is alone asks for nothing by itself, so it may sleep long.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// Serves the shards that the lease allows, until it has left.
pub(crate) struct Members {
    node: Arc<Node>,
    lease: Lease,
    /// What the engine says.
    said: mpsc::UnboundedReceiver<LeaseMessage>,
    drivers: JoinSet<ShardId>,
    /// Leases of other nodes that differ from this one's, as far as somebody was warned.
    warned_of: BTreeMap<String, Duration>,
    /// Somebody was told that the node's name is taken.
    told_of_name: bool,
}

/// What a message to the lease led to.
struct Step {
    /// What the registry is to be asked.
    request: Option<Request>,
    left: bool,
}

/// The registry's answer, some time later.
type Asked<'a> = Pin<Box<dyn Future<Output = LeaseMessage> + Send + 'a>>;

/// What the registry is asked for.
enum Request {
    Read,
    Put(RegistryRow),
}

impl Members {
    pub(crate) fn new(
        node: Arc<Node>,
        lease: Lease,
        said: mpsc::UnboundedReceiver<LeaseMessage>,
    ) -> Self {
        Self {
            node,
            lease,
            said,
            drivers: JoinSet::new(),
            warned_of: BTreeMap::new(),
            told_of_name: false,
        }
    }

    /// Begins at once, so that the shards of a node that is alone take calls from here on; then goes on
    /// until the lease has left.
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
        }
    }

    fn step(&mut self, message: LeaseMessage) -> Step {
        self.lease.handle(since_boot(), message);
        // Who is told to look, and whose shards close, is as the lease sees it now.
        self.node.standing(&self.lease);
        let step = self.carry_out();
        self.node.arrived(&self.lease);
        self.warn_of_other_leases();
        self.warn_of_name();
        self.fail_beside_stranger();
        step
    }

    /// There may be only one node, and it is another.
    fn fail_beside_stranger(&self) {
        if let Some(row) = self.lease.stranger() {
            let name = row.strip_prefix(NODE_PREFIX).unwrap_or(row);
            self.node.fail(format!(
                "another server, {name:?}, is alive on this database, and the two cannot speak with each \
                 other: all servers of a database need the same secret, which `abide nodes secret` makes \
                 and --secret-file names"
            ));
        }
    }

    /// Says once that the node waits for its name.
    fn warn_of_name(&mut self) {
        let taken = self.lease.name_taken();
        if taken && !self.told_of_name {
            tracing::warn!(
                node = self.node.name,
                "another process of this name has a lease: this one waits until it is over, and for ever \
                 if two are started under one name"
            );
        }
        self.told_of_name = taken;
    }

    /// Says once of each node that its lease differs, which delays takeovers and is rarely meant.
    fn warn_of_other_leases(&mut self) {
        for (node, lease) in self.lease.other_leases() {
            if self.warned_of.insert(node.clone(), *lease) != Some(*lease) {
                tracing::warn!(
                    node,
                    ?lease,
                    "the lease of another node differs: its shards, and this node's, are taken over \
                     after the longer of both"
                );
            }
        }
    }

    /// What happens next to the lease.
    async fn next(&mut self, asked: &mut Option<Asked<'_>>) -> LeaseMessage {
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
            Some(said) = self.said.recv() => said,
            Some(ended) = self.drivers.join_next() => match ended {
                Ok(shard) => {
                    self.node.release(shard);
                    LeaseMessage::ShardReleased(shard)
                }
                // The node knows that it has failed.
                Err(_) => LeaseMessage::Tick,
            },
            () = tokio::time::sleep(pause.min(LONGEST_SLEEP)) => LeaseMessage::Tick,
        }
    }

    /// Does what the lease asks for.
    fn carry_out(&mut self) -> Step {
        let mut step = Step { request: None, left: false };
        while let Some(output) = self.lease.poll() {
            match output {
                LeaseOutput::ReadRegistry => step.request = Some(Request::Read),
                LeaseOutput::PutRegistry(row) => step.request = Some(Request::Put(row)),
                LeaseOutput::Open(shard) => {
                    let posts = self.node.serve(shard);
                    self.drivers.spawn(Driver::new(shard, Arc::clone(&self.node), posts).run());
                }
                LeaseOutput::Close(shard) => {
                    drop(self.node.post(shard, Post::Message(Message::Close)));
                }
                LeaseOutput::Lost => {
                    // Whatever cut this node off need not cut its workers and callers off from others.
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

fn ask(node: &Node, request: Request) -> Asked<'_> {
    Box::pin(async move {
        match request {
            Request::Read => match node.store.registry(NODE_PREFIX.into()).await {
                Ok(rows) => LeaseMessage::Registry(rows),
                Err(error) => {
                    node.counters.fault(StoreFault::Registry);
                    node.watch.registry_failed(&error, "the nodes' rows cannot be read");
                    LeaseMessage::ReadFailed
                }
            },
            Request::Put(row) => match node.store.put_registry(row).await {
                Ok(written) => LeaseMessage::Written(written),
                Err(error) => {
                    node.counters.fault(StoreFault::Registry);
                    node.watch.registry_failed(&error, "a node's row cannot be written");
                    LeaseMessage::WriteFailed
                }
            },
        }
    })
}
