//! The other nodes of a cluster, as an engine sees them. A node is known by the address at which others
//! reach it. Messages may be lost with the link that carries them: whatever they are about is a row
//! somewhere, and is said again.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use abide_core::{
    call::{Call, CallError, CallReply, Dispatch, QueueKey, RunTarget, Worker},
    effect::Answer,
    ids::{BuildId, SessionId, ShardId},
    run::Description,
};
use abide_shard::message::{EffectKey, Envelope, Offer};

/// What another node answers.
pub type PeerAnswer<T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send>>;

/// The way to other nodes.
pub trait Peers: Send + Sync + 'static {
    /// These are the other nodes from now on. Links to them are kept, others are given up; the engine
    /// is told of each link that begins or ends.
    fn keep(&self, nodes: BTreeSet<String>);

    /// Makes a call at a node, which passes it on to nobody. [`CallError::NotServed`] if it did not
    /// get there.
    fn call(&self, node: &str, call: Call) -> PeerAnswer<CallReply>;

    /// Shows a run that a node serves.
    fn describe(&self, node: &str, target: RunTarget) -> PeerAnswer<Description>;

    /// Tells a node something, in order. `false` if it cannot be reached; what is on its way when the
    /// link ends is lost too, and the engine is told of the end.
    fn send(&self, node: &str, message: PeerMessage) -> bool;
}

/// What nodes tell each other.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    /// An effect for a shard of yours.
    Deliver(ShardId, Box<Envelope>),
    /// The answer to an effect of a shard of yours.
    Answered(ShardId, EffectKey, Answer),
    /// The answer to an effect is recorded.
    Confirmed(ShardId, EffectKey),
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
