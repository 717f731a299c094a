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
//! | `Delivered` | not touched | one match less in flight |
//! | `Hold` | not touched | its credit, which counts again after `Resume` |
//! | `Gone` | not touched | no credit: it is forgotten |
//! | `ShardClosed` | dropped, if it is of that shard | |
//! | `Lent` | passed on, in order, if no local worker takes it | that many credits on the other node |
//!
//! Each node of a cluster has its own queues. A node whose workers have unused credit announces it
//! once (`Spare`). Other nodes record it (`Lent`) and pass on offers that no local worker takes.
//! The lender matches them ([`Queues::lend`]), or declines because its credit is spent, and announces what
//! is left.
//!
//! A worker has at most `in_flight_max` matches in flight, whatever its credit: the work of a match may
//! be large, and waits in memory until the worker reads it. It is paused, on all its queues, from then
//! until half of them are delivered, and while it is held.
//!
//! Invariant: after each message, no kept offer could be matched with any worker that has credit and is
//! not paused.
//!
//! Everything held is bounded: offers by `offers_max` per queue and as many as `FULL_QUEUES` hold over
//! all, workers and the queues that they name by the open streams, queues with neither by `IDLE_QUEUES_MAX`, known builds by `BUILDS_MAX` per queue, and outputs by
//! one match per credit, because the driver drains them after each message.

mod builds;
mod matcher;
mod offers;
mod sessions;
mod workers;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use abide_core::{
    dispatch::{QueueKey, WorkKind, Worker},
    ids::{BuildId, SessionId, ShardId},
};

use self::{matcher::Matcher, sessions::Session, workers::Holder};
use crate::message::Offer;

/// Number of queues without offers and workers that are kept, only to remember which builds they
/// have announced. Users name queues freely, per host for example, so names must not pile up. An
/// evicted queue that comes back announces its builds again, and all shards then search for blocked
/// runs.
const IDLE_QUEUES_MAX: usize = 1_000;

/// All queues together keep as many offers as so many full ones. Users name queues freely, so a queue
/// may have one offer only.
const FULL_QUEUES: usize = 50;

/// All queues of one node.
#[derive(Debug)]
pub struct Queues {
    offers_max: usize,
    in_flight_max: usize,
    queues: BTreeMap<QueueKey, Matcher>,
    sessions: BTreeMap<SessionId, Session>,
    /// The queues for which each node lends credit, by build.
    lenders: BTreeMap<String, BTreeSet<(QueueKey, Option<BuildId>)>>,
    /// There are other nodes, so spare credit is announced.
    lends: bool,
    idle: BTreeMap<u64, QueueKey>,
    idled: u64,
    /// Number of offers that all queues keep.
    kept: usize,
    /// An offer was turned away because the queues together were full. Its queue may be forgotten, so
    /// each new queue asks for a refill when it gets workers.
    overflowed: bool,
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
    /// The work of a match is on the worker's stream.
    Delivered(SessionId),
    /// The worker does not read what it is given: it takes nothing more for now.
    Hold(SessionId),
    /// The worker has read enough to take more.
    Resume(SessionId),
    /// A worker's stream ended: its credits are void.
    Gone(SessionId),
    /// A shard was reset or lost: its offers are void.
    ShardClosed(ShardId),
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
    /// No queues yet; each will hold at most `offers_max` offers (at least one), and each worker will have
    /// at most `in_flight_max` matches in flight (at least one).
    pub fn new(offers_max: usize, in_flight_max: usize) -> Self {
        Self {
            offers_max: offers_max.max(1),
            in_flight_max: in_flight_max.max(1),
            queues: BTreeMap::new(),
            sessions: BTreeMap::new(),
            lenders: BTreeMap::new(),
            lends: false,
            idle: BTreeMap::new(),
            idled: 0,
            kept: 0,
            overflowed: false,
            outputs: VecDeque::new(),
        }
    }

    /// Handles one message. Drain [`Self::poll`] afterwards.
    pub fn handle(&mut self, message: QueueMessage) {
        match message {
            QueueMessage::Offer(offer) => {
                let room = self.kept < self.offers_max.saturating_mul(FULL_QUEUES);
                self.overflowed |= !room;
                self.step(offer.queue.clone(), |queue| queue.offer(offer, room));
            }
            QueueMessage::Credit { queue, worker, credits } => {
                let session = self.sessions.entry(worker.session.clone()).or_default();
                session.queues.insert(queue.clone());
                let room = session.room(self.in_flight_max);
                self.step(queue, |matcher| matcher.credit(worker, credits, room));
            }
            QueueMessage::Unmatched(offer, worker) => {
                self.change(&worker.session, Session::arrived);
                let room = self.room(&worker.session);
                self.step(offer.queue, |queue| queue.give_back(worker.session, room));
            }
            QueueMessage::Delivered(session) => self.change(&session, Session::arrived),
            QueueMessage::Hold(session) => self.change(&session, |it| it.held = true),
            QueueMessage::Resume(session) => self.change(&session, |it| it.held = false),
            QueueMessage::Gone(session) => {
                let queues = self.sessions.remove(&session).unwrap_or_default().queues;
                let holder = Holder::Session(session);
                for key in queues {
                    self.step(key, |queue| queue.gone(&holder));
                }
            }
            QueueMessage::ShardClosed(shard) => {
                let keys: Vec<_> = self.queues.keys().cloned().collect();
                for key in keys {
                    self.step(key, |queue| queue.shard_closed(shard));
                }
            }
            QueueMessage::Declined { node, offer } => {
                let room = self.kept < self.offers_max.saturating_mul(FULL_QUEUES);
                self.overflowed |= !room;
                self.step(offer.queue.clone(), |queue| queue.declined(&node, offer, room));
            }
            QueueMessage::Lent { node, queue, build, credits } => {
                let lends = self.lenders.entry(node.clone()).or_default();
                lends.insert((queue.clone(), build.clone()));
                self.step(queue, |matcher| matcher.lent(node, build, credits));
            }
            QueueMessage::NodeGone(node) => {
                for (key, build) in self.lenders.remove(&node).unwrap_or_default() {
                    let holder = Holder::Lender { node: node.clone(), build };
                    self.step(key, |queue| queue.gone(&holder));
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

    /// Another node passes an offer on: returns the local worker that takes it, if one does. Drain
    /// [`Self::poll`] afterwards.
    pub fn lend(&mut self, offer: &Offer) -> Option<Worker> {
        let worker = self.step(offer.queue.clone(), |queue| queue.lend(offer))?;
        self.change(&worker.session, Session::matched);
        Some(worker)
    }

    /// Changes how much a worker may take, and pauses or resumes it accordingly.
    fn change(&mut self, session: &SessionId, change: impl FnOnce(&mut Session)) {
        let Some(known) = self.sessions.get_mut(session) else { return };
        change(known);
        self.pause_or_resume(session);
    }

    fn pause_or_resume(&mut self, session: &SessionId) {
        let Some(known) = self.sessions.get_mut(session) else { return };
        if !known.turn(self.in_flight_max) {
            return;
        }
        for key in known.queues.clone() {
            // The queues before this one may have used the room up.
            match self.room(session) {
                0 => self.step(key, |queue| queue.pause(session)),
                room => self.step(key, |queue| queue.resume(session, room)),
            }
        }
    }

    /// Number of matches that the session may have now.
    fn room(&self, session: &SessionId) -> usize {
        self.sessions.get(session).map_or(0, |known| known.room(self.in_flight_max))
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

    fn step<T>(&mut self, key: QueueKey, step: impl FnOnce(&mut Matcher) -> T) -> T {
        let queue = self
            .queues
            .entry(key.clone())
            .or_insert_with(|| Matcher::new(key.clone(), self.offers_max, self.overflowed));
        let before = queue.waiting();
        let result = step(queue);
        self.kept = (self.kept + queue.waiting()).saturating_sub(before);
        if self.lends {
            queue.announce();
        }
        let outputs = self.outputs.len();
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
        self.count_matches(outputs);
        result
    }

    /// Counts the matches among the outputs from this one on.
    fn count_matches(&mut self, from: usize) {
        let mut matched = BTreeSet::new();
        for output in self.outputs.range(from..) {
            if let QueueOutput::Match(_, worker) = output
                && let Some(session) = self.sessions.get_mut(&worker.session)
            {
                session.matched();
                matched.insert(worker.session.clone());
            }
        }
        for session in matched {
            self.pause_or_resume(&session);
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
