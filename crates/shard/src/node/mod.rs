//! The node machine: what the shards of one process share. It brings work of shards and credit of
//! workers together, here and at other nodes, knows which worker is connected where, and says what
//! nodes tell each other.
//!
//! - `message`: everything that can happen to a node, and everything that it can ask for.
//! - `neighbours`: what it knows of the other nodes, and what is in flight between their queues.
//! - `streams`: workers that are connected here.
//! - `exchange`: offers, matches and work, at home and abroad.
//! - `routes`: calls whose shard is not served here.
//! - `links`: what is said again when a link begins, and given up when one ends.
//!
//! A driver feeds it one input at a time and carries out its outputs in order, before the next input:
//! then other nodes hear last what was true last, and streams begin and end in order.

mod exchange;
mod links;
mod message;
mod neighbours;
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
};

pub use self::message::{Given, NodeInput, NodeOutput, PeerMessage};
use self::{neighbours::Neighbours, routes::Routes, streams::Stream};
use crate::{
    message::{Mail, Message},
    queue::{QueueMessage, Queues},
};

/// One node. `S` is a worker's stream, as the driver knows it.
#[derive(Debug)]
pub struct Node<S> {
    queues: Queues,
    neighbours: Neighbours,
    /// The open streams of workers: a session has one.
    streams: BTreeMap<SessionId, Stream<S>>,
    /// Workers get nothing more here.
    withdrawn: bool,
    /// Shards that are served here.
    served: BTreeSet<ShardId>,
    /// Those of them that are in memory.
    open: BTreeSet<ShardId>,
    routes: Routes,
    outputs: VecDeque<NodeOutput<S>>,
}

impl<S: Clone> Node<S> {
    /// A node that serves nothing yet and knows of no other. Each of its queues will hold at most
    /// `offers_max` offers, and calls wait for a shard that nobody serves as long as `patience`.
    pub fn new(own: String, offers_max: usize, patience: Duration) -> Self {
        Self {
            queues: Queues::new(offers_max),
            neighbours: Neighbours::new(own),
            streams: BTreeMap::new(),
            withdrawn: false,
            served: BTreeSet::new(),
            open: BTreeSet::new(),
            routes: Routes::new(patience),
            outputs: VecDeque::new(),
        }
    }

    /// Takes one input. Drain [`Self::poll`] afterwards. `now` is the clock of leases.
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
            NodeInput::WithdrawAll => self.withdraw_all(),
            NodeInput::EndStreams => self.end_streams(),
            NodeInput::Linked(node) => self.linked(&node),
            NodeInput::Unlinked(node) => self.unlinked(&node),
            NodeInput::Called(node) => self.called(&node),
            NodeInput::HungUp(node) => self.lost(&node),
            NodeInput::Heard(node, message) => self.heard(now, &node, message),
            NodeInput::Route { ticket, shard, repeatable, error } => {
                self.route(now, (ticket, shard), repeatable, error);
            }
            NodeInput::Failed { ticket, error } => self.failed(now, ticket, error),
            NodeInput::Abandon(ticket) => self.abandon(ticket),
            NodeInput::Tick => self.tick(now),
        }
    }

    /// What the node asks for, in order.
    pub fn poll(&mut self) -> Option<NodeOutput<S>> {
        self.outputs.pop_front()
    }

    /// When to say [`NodeInput::Tick`], should nothing else happen before.
    pub fn wake_at(&self) -> Option<Duration> {
        self.routes.wake_at()
    }

    /// Workers get nothing more here.
    pub const fn withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// How many workers are connected here.
    pub fn workers(&self) -> usize {
        self.streams.len()
    }

    /// How many offers of this kind of work wait for a worker.
    pub fn waiting(&self, kind: WorkKind) -> usize {
        self.queues.waiting(kind)
    }

    /// All other nodes.
    pub fn nodes(&self) -> &BTreeSet<String> {
        self.neighbours.nodes()
    }

    /// To how many nodes there is a link.
    pub fn links(&self) -> usize {
        self.neighbours.links().len()
    }

    /// The credit that a worker which is connected here has in a queue. For checks.
    pub fn credits_of(&self, queue: &QueueKey, session: &SessionId) -> usize {
        self.queues.credits_of(queue, session)
    }

    /// The sessions of workers that are connected here, with their streams. For checks.
    pub fn sessions(&self) -> impl Iterator<Item = (&SessionId, &S)> {
        self.streams.iter().map(|(session, stream)| (session, &stream.handle))
    }

    /// The rows were read: where shards are, and which nodes there are.
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

    /// Tells a shard something, here or at the node that serves it. What is lost is said again when the
    /// shard, or the way to it, begins anew.
    fn mail(&mut self, shard: ShardId, mail: Mail) {
        if self.served.contains(&shard) {
            self.tell_shard(shard, mail.into());
        } else if let Some(owner) = self.neighbours.owner(shard).cloned() {
            self.tell_peer(&owner, PeerMessage::Mail(shard, mail));
        }
    }

    /// The shard has moved: its offers are void, and everything else is said again to its next owner.
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

    /// Tells another node; `false` if there is no link to it.
    fn tell_peer(&mut self, node: &str, message: PeerMessage) -> bool {
        let linked = self.neighbours.links().contains(node);
        if linked {
            self.emit(NodeOutput::ToPeer(node.to_owned(), message));
        }
        linked
    }

    /// Tells all nodes to which there is a link; the others will hear of it when there is one.
    fn broadcast(&mut self, message: &PeerMessage) {
        let links = self.neighbours.links().iter();
        let told = links.map(|node| NodeOutput::ToPeer(node.clone(), message.clone()));
        self.outputs.extend(told);
    }

    fn emit(&mut self, output: NodeOutput<S>) {
        self.outputs.push_back(output);
    }
}
