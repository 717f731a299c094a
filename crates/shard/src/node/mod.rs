//! The node machine: what the shards of one process share. It matches work of shards with credit of
//! workers, on this node and on others, tracks which worker is connected where, and produces the
//! messages between nodes.
//!
//! - `message`: the node's inputs and outputs.
//! - `neighbours`: what this node knows about the others, and what is in flight between their
//!   queues.
//! - `streams`: workers connected to this node.
//! - `exchange`: offers, matches and dispatches, local and between nodes.
//! - `routes`: calls whose shard this node does not serve.
//! - `links`: what is resent when a link opens, and dropped when one closes; `newest`: which link of a
//!   node counts.
//!
//! A driver feeds it one input at a time and carries out its outputs in order, before the next
//! input. So the last message that another node receives is the latest, and streams open and close
//! in order.

mod exchange;
mod links;
mod message;
mod neighbours;
mod newest;
mod routes;
mod streams;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use abide_core::{
    dispatch::{QueueKey, WorkKind},
    ids::{SessionId, ShardId},
    limits::Limits,
};

pub use self::{
    message::{NodeInput, NodeOutput, PeerMessage},
    newest::NewestLinks,
};
use self::{neighbours::Neighbours, routes::Routes, streams::Stream};
use crate::{
    message::{Mail, Message},
    queue::{QueueMessage, Queues},
};

/// The state of one node. `S` is the driver's handle of a worker's stream.
#[derive(Debug)]
pub struct Node<S> {
    queues: Queues,
    neighbours: Neighbours,
    /// The open streams of workers, one per session.
    streams: BTreeMap<SessionId, Stream<S>>,
    /// Workers of this node get no more work.
    withdrawn: bool,
    /// Shards that this node serves.
    served: BTreeSet<ShardId>,
    /// Served shards that are in memory.
    open: BTreeSet<ShardId>,
    routes: Routes,
    outputs: VecDeque<NodeOutput<S>>,
}

impl<S: Clone> Node<S> {
    /// A node that serves no shard yet and knows no other node. Each of its queues holds at most
    /// `queued_offers` offers, each worker has at most `matches_in_flight`; a call waits up to `patience`
    /// for a shard without an owner.
    pub fn new(own: String, limits: &Limits, patience: Duration) -> Self {
        Self {
            queues: Queues::new(limits.queued_offers, limits.matches_in_flight),
            neighbours: Neighbours::new(own),
            streams: BTreeMap::new(),
            withdrawn: false,
            served: BTreeSet::new(),
            open: BTreeSet::new(),
            routes: Routes::new(patience),
            outputs: VecDeque::new(),
        }
    }

    /// Handles one input. Drain [`Self::poll`] afterwards. `now` is the monotonic clock of leases.
    pub fn handle(&mut self, now: Duration, input: NodeInput<S>) {
        match input {
            NodeInput::Rows { owners, nodes, read_at } => {
                self.read_rows(now, &owners, &nodes, read_at);
            }
            NodeInput::RowsChanged => self.broadcast(&PeerMessage::Look),
            NodeInput::Serve(shard) => {
                self.served.insert(shard);
                self.moved(now, shard);
            }
            NodeInput::Released(shard) => {
                self.served.remove(&shard);
                self.shard_closed(shard);
            }
            NodeInput::Opened(shard) => self.shard_opened(shard),
            NodeInput::Closed(shard) => self.shard_closed(shard),
            NodeInput::Offer(offer) => self.tell_queues(QueueMessage::Offer(offer)),
            NodeInput::Unmatched(offer, worker) => self.unmatched(offer, worker),
            NodeInput::Dispatch(worker, dispatch) => self.dispatch(worker, dispatch),
            NodeInput::Mail(shard, mail) => self.mail(shard, mail),
            NodeInput::Undelivered(_, message) => self.undelivered(message),
            NodeInput::StreamOpened { session, stream, handle } => {
                self.stream_opened(session, Stream { number: stream, handle });
            }
            NodeInput::StreamEnded { session, stream } => self.stream_ended(&session, stream),
            NodeInput::Credit { stream, queue, worker, credits } => {
                let credit = QueueMessage::Credit { queue, worker: worker.clone(), credits };
                self.tell_credit(&worker.session, stream, credit);
            }
            NodeInput::Withdraw { session, stream } => {
                let gone = QueueMessage::Gone(session.clone());
                self.tell_credit(&session, stream, gone);
            }
            NodeInput::Hold { session, stream } => {
                let hold = QueueMessage::Hold(session.clone());
                self.tell_credit(&session, stream, hold);
            }
            NodeInput::Resume { session, stream } => {
                let resume = QueueMessage::Resume(session.clone());
                self.tell_credit(&session, stream, resume);
            }
            NodeInput::WithdrawAll => self.withdraw_all(),
            NodeInput::EndStreams => self.end_streams(),
            NodeInput::Linked(node) => self.linked(&node),
            NodeInput::Unlinked(node) => self.unlinked(&node),
            NodeInput::Called(node) => self.called(&node),
            NodeInput::LinkClosed(node) => self.lost(&node),
            NodeInput::Received(node, message) => self.received(now, &node, message),
            NodeInput::Route { ticket, shard, repeatable, error } => {
                self.route(now, (ticket, shard), repeatable, error);
            }
            NodeInput::Failed { ticket, error } => self.failed(now, ticket, error),
            NodeInput::Abandon(ticket) => self.abandon(ticket),
            NodeInput::Tick => self.tick(now),
        }
    }

    /// Takes the next output, in order.
    pub fn poll(&mut self) -> Option<NodeOutput<S>> {
        self.outputs.pop_front()
    }

    /// When to send [`NodeInput::Tick`], unless another input comes first.
    pub fn wake_at(&self) -> Option<Duration> {
        self.routes.wake_at()
    }

    /// Workers of this node get no more work.
    pub const fn withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Number of workers connected to this node.
    pub fn workers(&self) -> usize {
        self.streams.len()
    }

    /// Number of offers of this kind of work that wait for a worker.
    pub fn waiting(&self, kind: WorkKind) -> usize {
        self.queues.waiting(kind)
    }

    /// Addresses of all other nodes.
    pub fn nodes(&self) -> &BTreeSet<String> {
        self.neighbours.nodes()
    }

    /// Number of nodes to which there is a link.
    pub fn links(&self) -> usize {
        self.neighbours.links().len()
    }

    /// The credit of a connected worker in a queue. For checks.
    pub fn credits_of(&self, queue: &QueueKey, session: &SessionId) -> usize {
        self.queues.credits_of(queue, session)
    }

    /// The sessions of connected workers, with their streams. For checks.
    pub fn sessions(&self) -> impl Iterator<Item = (&SessionId, &S)> {
        self.streams.iter().map(|(session, stream)| (session, &stream.handle))
    }

    /// The registry rows were read: takes over the owners of shards and the set of nodes.
    fn read_rows(
        &mut self,
        now: Duration,
        owners: &BTreeMap<ShardId, String>,
        nodes: &BTreeSet<String>,
        read_at: Duration,
    ) {
        let changes = self.neighbours.read(owners, nodes, read_at);
        if let Some(nodes) = changes.nodes {
            self.emit(NodeOutput::KeepLinks(nodes));
        }
        for shard in changes.moved {
            self.moved(now, shard);
        }
    }

    fn shard_opened(&mut self, shard: ShardId) {
        self.open.insert(shard);
        let shards = BTreeSet::from([shard]);
        self.ask_for_attempts(&shards);
        self.broadcast(&PeerMessage::Opened(shards.clone()));
        self.tell_shards(Message::SendAgain(shards));
    }

    fn shard_closed(&mut self, shard: ShardId) {
        self.open.remove(&shard);
        self.tell_queues(QueueMessage::ShardClosed(shard));
    }

    /// Delivers mail to a shard on this node, or to the node that serves it. Lost mail is sent
    /// again when the shard reopens or the link to its node is replaced.
    fn mail(&mut self, shard: ShardId, mail: Mail) {
        if self.served.contains(&shard) {
            self.tell_shard(shard, mail.into());
        } else if let Some(owner) = self.neighbours.owner(shard).cloned() {
            self.tell_peer(&owner, PeerMessage::Mail(shard, mail));
        }
    }

    /// The shard has moved: its offers are void, and everything else is sent again to its next
    /// owner.
    fn undelivered(&mut self, message: Message) {
        if let Message::Matched(offer, worker) = message {
            self.unmatched(offer, worker);
        }
    }

    fn tell_shard(&mut self, shard: ShardId, message: Message) {
        self.emit(NodeOutput::ToShard(shard, message));
    }

    fn tell_shards(&mut self, message: Message) {
        self.emit(NodeOutput::ToShards(message));
    }

    /// Sends a message to another node; returns `false` if there is no link to it.
    fn tell_peer(&mut self, node: &str, message: PeerMessage) -> bool {
        let linked = self.neighbours.links().contains(node);
        if linked {
            self.emit(NodeOutput::ToPeer(node.to_owned(), message));
        }
        linked
    }

    /// Sends a message to all linked nodes; the others are brought up to date when they are linked.
    fn broadcast(&mut self, message: &PeerMessage) {
        let links = self.neighbours.links().iter();
        let told = links.map(|node| NodeOutput::ToPeer(node.clone(), message.clone()));
        self.outputs.extend(told);
    }

    fn emit(&mut self, output: NodeOutput<S>) {
        self.outputs.push_back(output);
    }
}
