//! Queues bring work and workers together. Shards offer what they have, workers give credits for
//! what they can take, and a match goes back to the offering shard, which starts the work or lets
//! the match come to nothing. Queues hold no authority: an offer that vanishes is still a row of its
//! shard (or a caller who waits), and a repeated offer is one offer.
//!
//! | message | an offer is | a worker has |
//! |---|---|---|
//! | `Offer`, new | matched, kept or turned away | |
//! | `Offer`, kept already | in its old place, with the new preference and exceptions | |
//! | `Credit` | matched, first ones first | that many credits more |
//! | `Unmatched` | not touched | one credit more, if it is connected |
//! | `Gone` | not touched | nothing: it is forgotten |
//! | `ShardClosed` | dropped, if it is of that shard | |
//! | `Borrow` | matched with a worker that is here, or declined | |
//! | `Lent` | passed on, first ones first, if nobody here takes it | on that node: so many credits |
//!
//! With several nodes each has queues of its own. A node whose workers have credit that nothing here
//! needs says so once (`Spare`), others note it (`Lent`) and pass offers on that nobody takes at home;
//! the lender matches (`Borrow`), or declines because its credit is spent, and says what is left.
//!
//! After each message no kept offer could be matched with any worker that has credit.
//!
//! What is held is bounded: offers by `offers_max` per queue, workers by the open streams, queues
//! with neither by `IDLE_QUEUES_MAX`, builds seen by `BUILDS_MAX` per queue, and outputs
//! by one match per credit, because the driver drains them after each message.

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

/// Queues without offers and workers that are remembered, only to know which builds they had seen.
/// Users name queues freely, per host for example: names must not pile up. A forgotten queue that
/// comes back announces its builds again, which costs its shards a look at their blocked runs.
const IDLE_QUEUES_MAX: usize = 1_000;

/// All queues of one node.
#[derive(Debug)]
pub struct Queues {
    offers_max: usize,
    queues: BTreeMap<QueueKey, Matcher>,
    sessions: BTreeMap<SessionId, BTreeSet<QueueKey>>,
    /// The sessions that stand for what nodes have lent.
    lenders: BTreeMap<String, BTreeSet<SessionId>>,
    /// There are other nodes, which want to know what can be lent.
    lends: bool,
    idle: BTreeMap<u64, QueueKey>,
    idled: u64,
    outputs: VecDeque<QueueOutput>,
}

/// One thing that happens to the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueMessage {
    /// A shard has work.
    Offer(Offer),
    /// A worker can take more. The first one, even of no credits, says that it is connected.
    Credit {
        /// In which queue.
        queue: QueueKey,
        /// The worker.
        worker: Worker,
        /// How many tasks more.
        credits: usize,
    },
    /// A match came to nothing: the worker has its credit back, if it is still connected.
    Unmatched(Offer, Worker),
    /// A worker's stream ended: its credits vanish.
    Gone(SessionId),
    /// A shard was reset or lost: its offers vanish.
    ShardClosed(ShardId),
    /// Another node passes an offer on, for workers that are here.
    Borrow(Offer),
    /// A node declined an offer that was passed on to it.
    Declined {
        /// The node.
        node: String,
        /// The offer.
        offer: Offer,
    },
    /// Another node has credit to lend, so much and no more.
    Lent {
        /// The node.
        node: String,
        /// In which queue.
        queue: QueueKey,
        /// For code of this build.
        build: Option<BuildId>,
        /// How many tasks.
        credits: usize,
    },
    /// A node cannot be reached: what it lent vanishes.
    NodeGone(String),
    /// A node is there: it is told what can be lent.
    NodeCame,
}

/// One thing that the queues ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOutput {
    /// Tell the offer's shard that a worker takes it.
    Match(Offer, Worker),
    /// Pass the offer on to this node, which has lent credit.
    Pass(Offer, String),
    /// Tell the node that passed an offer on that nobody takes it.
    Declined(Offer),
    /// Tell all nodes that workers here have credit to lend.
    Spare {
        /// In which queue.
        queue: QueueKey,
        /// For code of this build.
        build: Option<BuildId>,
        /// How many tasks.
        credits: usize,
    },
    /// Tell all shards that there is room for offers that were turned away.
    Refill(QueueKey),
    /// Tell all shards that workers of a build not seen before serve the queue.
    NewBuild(QueueKey, BuildId),
}

impl Queues {
    /// No queues yet; each will hold at most `offers_max` offers, and at least one.
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

    /// Takes one message. Drain [`Self::poll`] afterwards.
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

    /// How many offers of this kind of work wait for a worker.
    pub fn waiting(&self, kind: WorkKind) -> usize {
        let of_kind = self.queues.iter().filter(|(key, _)| key.kind == kind);
        of_kind.map(|(_, queue)| queue.waiting()).sum()
    }

    /// The next thing that the queues ask for.
    pub fn poll(&mut self) -> Option<QueueOutput> {
        self.outputs.pop_front()
    }

    /// The credit that a worker which is connected here has in a queue. For checks.
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

/// The session that stands for what a node has lent for one build.
fn lender(node: &str, build: Option<&BuildId>) -> SessionId {
    format!("node {node} {}", build.map_or("", BuildId::as_str)).into()
}
