//! Queues match work with workers. Shards offer work, workers give credits for what they can take,
//! and a match goes back to the offering shard, which starts the work or drops the match. Queues
//! own no state that matters: a lost offer is still a row of its shard (or a waiting caller), and
//! offers are idempotent.
//!
//! | message | an offer is | a worker has |
//! |---|---|---|
//! | `Offer`, new | matched, kept or turned away | |
//! | `Offer`, kept already | kept in its old place, with the new preference and exceptions | |
//! | `Credit` | matched, in order | that many more credits |
//! | `Unmatched` | not touched | one more credit, if it is connected |
//! | `Gone` | not touched | no credit: it is forgotten |
//! | `ShardClosed` | dropped, if it is of that shard | |
//! | `Borrow` | matched with a local worker, or declined | |
//! | `Lent` | passed on, in order, if no local worker takes it | that many credits on the other node |
//!
//! Each node of a cluster has its own queues. A node whose workers have unused credit announces it
//! once (`Spare`). Other nodes record it (`Lent`) and pass on offers that no local worker takes.
//! The lender matches them (`Borrow`), or declines because its credit is spent, and announces what
//! is left.
//!
//! Invariant: after each message, no kept offer could be matched with any worker that has credit.
//!
//! Everything held is bounded: offers by `offers_max` per queue, workers by the open streams,
//! queues with neither by `IDLE_QUEUES_MAX`, known builds by `BUILDS_MAX` per queue, and outputs by
//! one match per credit, because the driver drains them after each message.

mod builds;
mod matcher;
mod offers;
mod workers;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use abide_core::{
    dispatch::{QueueKey, WorkKind, Worker},
    ids::{BuildId, SessionId, ShardId},
};

use self::matcher::Matcher;
use crate::message::Offer;

/// Number of queues without offers and workers that are kept, only to remember which builds they
/// have announced. Users name queues freely, per host for example, so names must not pile up. An
/// evicted queue that comes back announces its builds again, and all shards then search for blocked
/// runs.
const IDLE_QUEUES_MAX: usize = 1_000;

/// All queues of one node.
#[derive(Debug)]
pub struct Queues {
    offers_max: usize,
    queues: BTreeMap<QueueKey, Matcher>,
    sessions: BTreeMap<SessionId, BTreeSet<QueueKey>>,
    /// The pseudo sessions that hold the credit lent by each node.
    lenders: BTreeMap<String, BTreeSet<SessionId>>,
    /// There are other nodes, so spare credit is announced.
    lends: bool,
    idle: BTreeMap<u64, QueueKey>,
    idled: u64,
    outputs: VecDeque<QueueOutput>,
}

/// An input of the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueMessage {
    /// A shard has work.
    Offer(Offer),
    /// A worker can take more work. Its first credit, even of zero, registers it as connected.
    Credit {
        queue: QueueKey,
        worker: Worker,
        /// How many more tasks the worker can take.
        credits: usize,
    },
    /// A match failed: the worker gets its credit back, if it is still connected.
    Unmatched(Offer, Worker),
    /// A worker's stream ended: its credits are void.
    Gone(SessionId),
    /// A shard was reset or lost: its offers are void.
    ShardClosed(ShardId),
    /// Another node passes an offer on, for local workers.
    Borrow(Offer),
    /// A node declined an offer: the credit that it lent is spent.
    Declined {
        /// Address of the node.
        node: String,
        offer: Offer,
    },
    /// Another node has credit to lend. This replaces its earlier announcement.
    Lent {
        /// Address of the node.
        node: String,
        queue: QueueKey,
        /// Build of the workers that gave the credit.
        build: Option<BuildId>,
        /// How many more tasks the workers can take.
        credits: usize,
    },
    /// A node cannot be reached: the credit that it lent is void.
    NodeGone(String),
    /// A node was linked: all spare credit is announced again.
    NodeCame,
}

/// An output of the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOutput {
    /// Notify the offer's shard that a worker takes it.
    Match(Offer, Worker),
    /// Pass the offer on to this node, which has lent credit.
    Pass(Offer, String),
    /// Decline the offer to the node that passed it on: no local worker takes it.
    Declined(Offer),
    /// Announce to all nodes that local workers have credit to lend.
    Spare {
        queue: QueueKey,
        /// Build of the workers that gave the credit.
        build: Option<BuildId>,
        /// How many more tasks the workers can take.
        credits: usize,
    },
    /// Notify all shards that there is room for offers that were turned away.
    Refill(QueueKey),
    /// Notify all shards that workers of a new build serve the queue.
    NewBuild(QueueKey, BuildId),
}

impl Queues {
    /// No queues yet; each will hold at most `offers_max` offers (at least one).
    pub fn new(offers_max: usize) -> Self {
        Self {
            offers_max: offers_max.max(1),
            queues: BTreeMap::new(),
            sessions: BTreeMap::new(),
            lenders: BTreeMap::new(),
            lends: false,
            idle: BTreeMap::new(),
            idled: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Handles one message. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, message: QueueMessage) {
        match message {
            QueueMessage::Offer(offer) => {
                self.step(offer.queue.clone(), |queue| queue.offer(offer));
            }
            QueueMessage::Credit { queue, worker, credits } => {
                self.sessions.entry(worker.session.clone()).or_default().insert(queue.clone());
                self.step(queue, |matcher| matcher.credit(worker, credits));
            }
            QueueMessage::Unmatched(offer, worker) => {
                self.step(offer.queue, |queue| queue.give_back(&worker.session));
            }
            QueueMessage::Gone(session) => {
                self.gone(&session);
            }
            QueueMessage::ShardClosed(shard) => {
                let keys: Vec<_> = self.queues.keys().cloned().collect();
                for key in keys {
                    self.step(key, |queue| queue.shard_closed(shard));
                }
            }
            QueueMessage::Borrow(offer) => {
                self.step(offer.queue.clone(), |queue| queue.borrow(offer));
            }
            QueueMessage::Declined { node, offer } => {
                let lenders = self.lenders.get(&node).cloned().unwrap_or_default();
                self.step(offer.queue.clone(), |queue| queue.declined(&lenders, offer));
            }
            QueueMessage::Lent { node, queue, build, credits } => {
                let session = lender(&node, build.as_ref());
                self.lenders.entry(node.clone()).or_default().insert(session.clone());
                self.sessions.entry(session.clone()).or_default().insert(queue.clone());
                let worker = Worker { session, identity: node, build };
                self.step(queue, |matcher| matcher.lent(worker, credits));
            }
            QueueMessage::NodeGone(node) => {
                for session in self.lenders.remove(&node).unwrap_or_default() {
                    self.gone(&session);
                }
            }
            QueueMessage::NodeCame => {
                self.lends = true;
                let keys: Vec<_> = self.queues.keys().cloned().collect();
                for key in keys {
                    self.step(key, Matcher::announce_again);
                }
            }
        }
    }

    fn gone(&mut self, session: &SessionId) {
        for key in self.sessions.remove(session).unwrap_or_default() {
            self.step(key, |queue| queue.gone(session));
        }
    }

    /// Number of offers of this kind of work that wait for a worker.
    pub fn waiting(&self, kind: WorkKind) -> usize {
        let of_kind = self.queues.iter().filter(|(key, _)| key.kind == kind);
        of_kind.map(|(_, queue)| queue.waiting()).sum()
    }

    /// Takes the next output, in order.
    pub fn poll(&mut self) -> Option<QueueOutput> {
        self.outputs.pop_front()
    }

    /// The credit of a connected worker in a queue. For checks.
    pub fn credits_of(&self, queue: &QueueKey, session: &SessionId) -> usize {
        self.queues.get(queue).map_or(0, |queue| queue.credits_of(session))
    }

    fn step(&mut self, key: QueueKey, step: impl FnOnce(&mut Matcher)) {
        let queue = self
            .queues
            .entry(key.clone())
            .or_insert_with(|| Matcher::new(key.clone(), self.offers_max));
        step(queue);
        if self.lends {
            queue.announce();
        }
        self.outputs.extend(queue.outputs());
        match (queue.idle(), queue.idle_since) {
            (true, None) => {
                self.idled += 1;
                queue.idle_since = Some(self.idled);
                self.idle.insert(self.idled, key);
                self.forget_idle();
            }
            (false, Some(since)) => {
                queue.idle_since = None;
                self.idle.remove(&since);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn forget_idle(&mut self) {
        if self.idle.len() <= IDLE_QUEUES_MAX {
            return;
        }
        if let Some((_, key)) = self.idle.pop_first() {
            self.queues.remove(&key);
        }
    }
}

/// The pseudo session that holds the credit lent by a node for one build.
fn lender(node: &str, build: Option<&BuildId>) -> SessionId {
    format!("node {node} {}", build.map_or("", BuildId::as_str)).into()
}
