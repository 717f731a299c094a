//! The inputs and outputs of a node, and the messages between nodes. A node is identified by the
//! address at which others reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{
    dispatch::{Dispatch, Given, QueueKey, Worker},
    ids::{BuildId, SessionId, ShardId},
    operation::{CallError, Ticket},
};

use crate::message::{Mail, Message, Offer};

/// An input of a node. `S` is the driver's handle of a worker's stream.
#[derive(Clone, Debug)]
pub enum NodeInput<S> {
    /// The registry rows of all nodes were read.
    Rows {
        /// Address of the owner of each shard.
        owners: BTreeMap<ShardId, String>,
        /// Addresses of all nodes, this one included.
        nodes: BTreeSet<String>,
        /// When the read began: the rows show everything that happened before.
        read_at: Duration,
    },
    /// This node has changed the registry rows: the other nodes must read them.
    RowsChanged,
    /// This node serves the shard from now on.
    Serve(ShardId),
    /// This node no longer serves the shard.
    Released(ShardId),
    /// The shard is in memory. It does not know which worker has which attempt, nor what was sent
    /// to it before.
    Opened(ShardId),
    /// The shard is no longer in memory: its offers are void.
    Closed(ShardId),
    /// A shard of this node offers work.
    Offer(Offer),
    /// A match with work of a shard of this node failed: the worker gets its credit back.
    Unmatched(Offer, Worker),
    /// A shard of this node sends work to a worker.
    Dispatch(Worker, Box<Dispatch>),
    /// A shard of this node sends mail to another shard, on whichever node it is.
    Mail(ShardId, Mail),
    /// A message could not be delivered, because its shard has ended on this node.
    Undelivered(ShardId, Message),
    /// A worker connected. This replaces any earlier stream of its session.
    StreamOpened {
        /// The session that opened the stream.
        session: SessionId,
        /// Unique number of the stream: the end of an old stream may be noticed after a new one was
        /// opened.
        stream: u64,
        /// Handle for sending to the worker.
        handle: S,
    },
    /// A stream has ended.
    StreamEnded {
        session: SessionId,
        /// Number that [`Self::StreamOpened`] gave.
        stream: u64,
    },
    /// A worker gives credit for more work.
    Credit {
        /// Number of the stream that carried it.
        stream: u64,
        queue: QueueKey,
        worker: Worker,
        /// How many more tasks this worker can take.
        credits: usize,
    },
    /// A worker withdraws all of its credit.
    Withdraw {
        session: SessionId,
        /// Number of the stream that carried it.
        stream: u64,
    },
    /// A worker does not read what it is given: it gets no more for now, and keeps its credit.
    Hold {
        session: SessionId,
        /// Number of its stream.
        stream: u64,
    },
    /// A worker has read enough to be given more.
    Resume {
        session: SessionId,
        /// Number of its stream.
        stream: u64,
    },
    /// The node leaves: workers get no more work, but may still report on what they have.
    WithdrawAll,
    /// End the streams of all workers: the lease is lost, or the node has left.
    EndStreams,
    /// A link to another node is open.
    Linked(String),
    /// The link to another node is closed.
    Unlinked(String),
    /// Another node opened a link to this one: messages on an older link may be lost.
    Called(String),
    /// The link from another node is closed.
    LinkClosed(String),
    /// A message from another node.
    Received(String, PeerMessage),
    /// A call failed on this node, because the shard is not served here or moved away: find the
    /// owner.
    Route {
        /// Identifies the call until [`Self::Abandon`].
        ticket: Ticket,
        /// The shard that must serve the call.
        shard: ShardId,
        /// The call changes nothing, so it can be retried after any failure.
        repeatable: bool,
        /// How the call failed on this node.
        error: CallError,
    },
    /// A call failed at the place that the node chose.
    Failed {
        ticket: Ticket,
        /// How the call failed at that place.
        error: CallError,
    },
    /// A call is over: it was answered, or its caller has disconnected.
    Abandon(Ticket),
    /// The time of [`Node::wake_at`](super::Node::wake_at) has come.
    Tick,
}

/// An output of a node. Carrying it out must not block.
#[derive(Clone, Debug)]
pub enum NodeOutput<S> {
    /// Deliver a message to a shard of this node; if the shard has ended, return it as
    /// [`NodeInput::Undelivered`].
    ToShard(ShardId, Message),
    /// Deliver a message to all shards of this node.
    ToShards(Message),
    /// Send a message to another node, in order. Messages lost with a link are recovered when the
    /// link closes.
    ToPeer(String, PeerMessage),
    /// Deliver something on a worker's stream.
    ToWorker(S, Given),
    /// End a worker's stream.
    EndStream(S),
    /// The set of other nodes: keep links to these and close all others.
    KeepLinks(BTreeSet<String>),
    /// Try the call on this node.
    TryHere(Ticket),
    /// Forward the call to another node.
    Forward(Ticket, String),
    /// Fail the call with this error.
    Refuse(Ticket, CallError),
    /// Read the registry rows: another node has changed them.
    Look,
}

/// A message between nodes. It may be lost with its link: what it is about is stored as a row or
/// tracked by both nodes, so it can be sent again.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    /// Mail for a shard of the receiver.
    Mail(ShardId, Mail),
    /// Workers of the sender have credit to lend.
    Spare {
        queue: QueueKey,
        /// Build of the workers that gave the credit.
        build: Option<BuildId>,
        /// How many more tasks the workers can take.
        credits: usize,
    },
    /// Work for credit that the receiver has lent.
    Offer(Offer),
    /// The sender has no credit left for this offer.
    Declined(Offer),
    /// A worker of the sender takes work of the receiver's shard.
    Matched(Offer, Worker),
    /// The work is gone: the receiver's worker gets its credit back.
    Unmatched(Offer, Worker),
    /// Work for a worker of the receiver.
    Dispatch(Worker, Box<Dispatch>),
    /// A worker connected to the sender: its earlier stream, if any, has ended.
    SessionCame(SessionId),
    /// The stream of a worker of the sender has ended.
    SessionLost(SessionId),
    /// The sender has opened these shards and does not know which worker has which attempt: the
    /// receiver sends its effects on them again, and its workers present their attempts.
    Opened(BTreeSet<ShardId>),
    /// Workers of a new build serve a queue.
    NewBuild(QueueKey, BuildId),
    /// The registry rows of the nodes have changed.
    Look,
}
