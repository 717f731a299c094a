//! Everything that can happen to a node, and everything that it can ask for; and what nodes tell each
//! other. A node is known by the address at which others reach it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{
    dispatch::{Dispatch, QueueKey, Worker},
    ids::{BuildId, SessionId, ShardId},
    operation::{CallError, Ticket},
};

use crate::message::{Mail, Message, Offer};

/// One thing that happens to a node. `S` is a worker's stream, as the driver knows it.
#[derive(Clone, Debug)]
pub enum NodeInput<S> {
    /// The rows of all nodes were read, which were asked for at `read_at`.
    Rows {
        /// Where each shard is.
        owners: BTreeMap<ShardId, String>,
        /// All nodes, this one included.
        nodes: BTreeSet<String>,
        /// What happened before is in the rows.
        read_at: Duration,
    },
    /// There is something new in the rows.
    RowsChanged,
    /// The shard is served here from now on.
    Serve(ShardId),
    /// The shard is served here no more.
    Released(ShardId),
    /// The shard is in memory, and knows neither who has which attempt nor what was sent to it.
    Opened(ShardId),
    /// The shard is not in memory any more: its offers are void.
    Closed(ShardId),
    /// A shard here has work.
    Offer(Offer),
    /// A match with work of a shard here came to nothing: the worker has its credit back.
    Unmatched(Offer, Worker),
    /// A shard here sends work to a worker.
    Dispatch(Worker, Box<Dispatch>),
    /// A shard here tells another one something, wherever that is.
    Mail(ShardId, Mail),
    /// A shard that was thought to be served here has taken nothing.
    Undelivered(ShardId, Message),
    /// A worker is connected. Whatever stream its session had before has ended.
    StreamOpened {
        /// Whose it is.
        session: SessionId,
        /// Its number: the end of an old stream may be noticed after a new one was opened.
        stream: u64,
        /// The way to the worker.
        handle: S,
    },
    /// A stream has ended.
    StreamEnded {
        /// Whose it was.
        session: SessionId,
        /// Its number.
        stream: u64,
    },
    /// A worker takes more work.
    Credit {
        /// On which stream it says so.
        stream: u64,
        /// Of which queue.
        queue: QueueKey,
        /// The worker.
        worker: Worker,
        /// How many tasks.
        credits: usize,
    },
    /// A worker takes back all credit that it gave.
    Withdraw {
        /// Who.
        session: SessionId,
        /// On which stream it says so.
        stream: u64,
    },
    /// The node leaves: workers get nothing more, but may answer for what they have.
    WithdrawAll,
    /// The streams of all workers end: the lease is lost, or the node has left.
    EndStreams,
    /// There is a link to another node.
    Linked(String),
    /// The link to another node is gone.
    Unlinked(String),
    /// There is a link from another node: what it said on an older one may have been lost.
    Called(String),
    /// The link from another node is gone.
    HungUp(String),
    /// Another node says something.
    Heard(String, PeerMessage),
    /// A call was not served here, or not to its end. It is to be made where the shard is.
    Route {
        /// Names the call.
        ticket: Ticket,
        /// Whose shard it is for.
        shard: ShardId,
        /// It changes nothing, so it may be made any number of times.
        repeatable: bool,
        /// How it failed here.
        error: CallError,
    },
    /// A call failed where the node said that it should be tried.
    Failed {
        /// The call.
        ticket: Ticket,
        /// How.
        error: CallError,
    },
    /// A call is over: it has its answer, or nobody waits for one.
    Abandon(Ticket),
    /// Time passed.
    Tick,
}

/// One thing that a node asks for. Nothing of it may block.
#[derive(Clone, Debug)]
pub enum NodeOutput<S> {
    /// Tell a shard that is served here. If it takes nothing, say [`NodeInput::Undelivered`].
    ToShard(ShardId, Message),
    /// Tell all shards that are served here.
    ToShards(Message),
    /// Tell another node, in order. What is lost with the link is made good at its end.
    ToPeer(String, PeerMessage),
    /// Give something to a worker.
    ToWorker(S, Given),
    /// End a worker's stream.
    EndStream(S),
    /// These are the other nodes from now on: keep links to them and give others up.
    KeepLinks(BTreeSet<String>),
    /// Try the call at a shard here.
    TryHere(Ticket),
    /// Try the call at another node.
    Forward(Ticket, String),
    /// The call cannot be served: its caller is told why.
    Refuse(Ticket, CallError),
    /// Look at the rows: another node says that there is something new in them.
    Look,
}

/// What a worker is given.
#[derive(Clone, Debug)]
pub enum Given {
    /// Work.
    Work(Dispatch),
    /// The shard was taken into memory anew: the worker presents the attempts of its runs that it
    /// still has, by [`Report::PresentAttempt`](abide_core::report::Report::PresentAttempt), within the
    /// session's grace.
    PresentAttempts(ShardId),
}

/// What nodes tell each other. It may be lost with the link that carries it: whatever it is about is a
/// row somewhere, or in the books of both, and is said again.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    /// For a shard of yours, from one of mine.
    Mail(ShardId, Mail),
    /// My workers have credit to lend.
    Spare {
        /// In which queue.
        queue: QueueKey,
        /// For code of this build.
        build: Option<BuildId>,
        /// How many tasks.
        credits: usize,
    },
    /// Work for the credit that you lent.
    Offer(Offer),
    /// There is no credit left for it.
    Declined(Offer),
    /// A worker of mine takes the work of your shard.
    Matched(Offer, Worker),
    /// The work has gone: your worker has its credit back.
    Unmatched(Offer, Worker),
    /// Work for a worker of yours.
    Dispatch(Worker, Box<Dispatch>),
    /// A worker is connected to me: whatever stream it had before has ended.
    SessionCame(SessionId),
    /// The stream of a worker that was mine has ended.
    SessionLost(SessionId),
    /// I have these shards in memory, and know nothing of who has which attempt: what was sent to them
    /// is sent again, and your workers present their attempts.
    Opened(BTreeSet<ShardId>),
    /// Workers of a build that was not seen before serve a queue.
    NewBuild(QueueKey, BuildId),
    /// There is something new in the rows of the nodes.
    Look,
}
