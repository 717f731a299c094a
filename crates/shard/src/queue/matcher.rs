//! One queue: which offer goes to which worker, and what happens when there are too many offers.
//!
//! A match takes logarithmic time in the number of offers and workers, times the few lanes or
//! builds. A full queue turns offers away and asks for a refill when it has drained to half:
//!
//! | turned away | asks for a refill when | because |
//! |---|---|---|
//! | an offer that a connected worker may take | such offers have drained to half | workers must not idle behind stuck offers |
//! | an offer that no connected worker may take (stuck) | all offers have drained to half | an earlier refill would only turn it away again |
//!
//! The second kind becomes the first when workers of another build connect. A full queue keeps the
//! most valuable offers: an offer that a worker may take displaces a stuck one; otherwise a query
//! displaces a task, because a task has a row from which it can be offered again.

use std::collections::BTreeMap;

use abide_core::{
    dispatch::{QueueKey, Worker},
    ids::{BuildId, SessionId, ShardId},
};

use super::{
    QueueOutput,
    builds::Builds,
    offers::{OfferName, Offers, Urgency, allowed},
    workers::{Holder, Taker, Workers},
};
use crate::message::Offer;

/// The most valuable kind of offer turned away since the last refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TurnedAway {
    Nothing,
    Stuck,
    Takeable,
}

/// The offers and workers of one queue.
#[derive(Debug)]
pub(super) struct Matcher {
    /// Position in the order in which the node's queues became idle; none if it is not idle.
    pub(super) idle_since: Option<u64>,
    key: QueueKey,
    offers_max: usize,
    offers: Offers,
    workers: Workers,
    builds: Builds,
    turned_away: TurnedAway,
    /// Offers may have been turned away while the queue was forgotten.
    missed: bool,
    /// How much spare credit the other nodes know of, by build: what was announced less what they
    /// have borrowed.
    told: BTreeMap<Option<BuildId>, usize>,
    outputs: Vec<QueueOutput>,
}

impl Matcher {
    /// A new queue. If offers of it may have been turned away while it was forgotten, it asks for a
    /// refill when it gets workers.
    pub(super) fn new(key: QueueKey, offers_max: usize, missed: bool) -> Self {
        Self {
            idle_since: None,
            key,
            offers_max,
            offers: Offers::default(),
            workers: Workers::default(),
            builds: Builds::default(),
            turned_away: TurnedAway::Nothing,
            missed,
            told: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// Number of offers that wait for a worker.
    pub(super) fn waiting(&self) -> usize {
        self.offers.len()
    }

    /// Takes an offer. Without room in all queues together, one that no worker takes at once is turned
    /// away, until this queue's workers give more credit.
    pub(super) fn offer(&mut self, offer: Offer, room: bool) {
        let name = OfferName::of(&offer);
        if let Some(holder) = self.workers.choose(&offer) {
            self.offers.remove(&name);
            self.hand_out(offer, &holder);
        } else if self.offers.contains(&name) || (room && self.make_room(&offer)) {
            self.offers.put(offer);
        } else {
            self.turn_away(&offer);
        }
        // A refill would be turned away too.
        if room {
            self.refill();
        }
    }

    /// Matches an offer of another node with a local worker; without one the offer is declined.
    pub(super) fn lend(&mut self, offer: &Offer) -> Option<Worker> {
        let Some(worker) = self.workers.take_near(offer) else {
            // A node whose offer is declined assumes that no credit of any build is left.
            self.told.clear();
            return None;
        };
        // The borrower may have counted on any build that the work allows.
        for (build, told) in &mut self.told {
            if allowed(build.as_ref(), &offer.except) {
                *told = told.saturating_sub(1);
            }
        }
        Some(worker)
    }

    /// This node declined the offer, because its credit was spent.
    pub(super) fn declined(&mut self, node: &str, offer: Offer, room: bool) {
        self.workers.spent(node);
        self.offer(offer, room);
    }

    /// Another node has announced its spare credit.
    pub(super) fn lent(&mut self, node: String, build: Option<BuildId>, credits: usize) {
        let holder = Holder::Lender { node: node.clone(), build: build.clone() };
        let other_code = self.workers.lent(node, build, credits);
        self.seek_missed(other_code);
        self.serve(&holder, usize::MAX);
    }

    /// Announces spare credit when the other nodes know of less than half of it. More often would
    /// cost a message per task.
    pub(super) fn announce(&mut self) {
        let spare = self.workers.spare();
        self.told.retain(|build, _| spare.contains_key(build));
        for (build, credits) in spare {
            let told = self.told.get(build).copied().unwrap_or(0);
            if told == 0 || told < credits / 2 {
                self.told.insert(build.clone(), *credits);
                let (queue, build) = (self.key.clone(), build.clone());
                self.outputs.push(QueueOutput::Spare { queue, build, credits: *credits });
            }
        }
    }

    /// Makes the next [`Self::announce`] repeat everything, for a node that was just linked.
    pub(super) fn announce_again(&mut self) {
        self.told.clear();
    }

    /// A worker gives credit, and takes at most so much now; nothing if there is no room.
    pub(super) fn credit(&mut self, worker: Worker, credits: usize, room: usize) {
        if let Some(build) = &worker.build
            && self.builds.record(build)
        {
            self.outputs.push(QueueOutput::NewBuild(self.key.clone(), build.clone()));
        }
        let holder = Holder::Session(worker.session.clone());
        let other_code = self.workers.credit(worker, credits, room == 0);
        self.seek_missed(other_code);
        self.serve(&holder, room);
    }

    pub(super) fn give_back(&mut self, session: SessionId, room: usize) {
        let holder = Holder::Session(session);
        self.workers.give_back(&holder);
        self.serve(&holder, room);
    }

    /// The worker takes nothing until [`Self::resume`].
    pub(super) fn pause(&mut self, session: &SessionId) {
        self.workers.pause(&Holder::Session(session.clone()), true);
    }

    /// The worker takes at most so much, once it was paused.
    pub(super) fn resume(&mut self, session: &SessionId, room: usize) {
        let holder = Holder::Session(session.clone());
        self.workers.pause(&holder, false);
        self.serve(&holder, room);
    }

    pub(super) fn gone(&mut self, holder: &Holder) {
        self.workers.gone(holder);
        self.refill();
    }

    pub(super) fn shard_closed(&mut self, shard: ShardId) {
        self.offers.remove_shard(shard);
        self.refill();
    }

    pub(super) fn credits_of(&self, session: &SessionId) -> usize {
        self.workers.credits_of(&Holder::Session(session.clone()))
    }

    pub(super) fn outputs(&mut self) -> impl Iterator<Item = QueueOutput> {
        self.outputs.drain(..)
    }

    /// Whether the queue holds nothing but known builds. No offer is turned away then: an empty
    /// queue has already asked for its refill.
    pub(super) fn idle(&self) -> bool {
        self.offers.len() == 0 && self.workers.is_empty()
    }

    /// Workers have come: what only they can take, or what the queue has never seen, is worth a refill.
    fn seek_missed(&mut self, other_code: bool) {
        let stuck = other_code && self.turned_away == TurnedAway::Stuck;
        if std::mem::take(&mut self.missed) || stuck {
            self.turned_away = TurnedAway::Takeable;
        }
    }

    fn serve(&mut self, holder: &Holder, room: usize) {
        for _ in 0..room {
            let Some(build) = self.workers.ready(holder) else { break };
            let Some(name) = self.offers.first_for(build) else { break };
            let Some(offer) = self.offers.remove(&name) else { break };
            self.hand_out(offer, holder);
        }
        self.refill();
    }

    fn hand_out(&mut self, offer: Offer, holder: &Holder) {
        if let Some(taker) = self.workers.take(holder) {
            self.outputs.push(match taker {
                Taker::Worker(worker) => QueueOutput::Match(offer, worker),
                Taker::Node(node) => QueueOutput::Pass(offer, node),
            });
        }
    }

    /// Makes room for the offer, by displacing a less valuable one if necessary; returns whether
    /// there is room.
    fn make_room(&mut self, offer: &Offer) -> bool {
        if self.offers.len() < self.offers_max {
            return true;
        }
        let Some(last) = self.offers.last(|except| self.workers.stuck(except)) else {
            return false;
        };
        let worth = (self.workers.stuck(&offer.except), Urgency::of(offer.work));
        if (last.stuck, last.urgency) <= worth {
            return false;
        }
        if let Some(displaced) = self.offers.remove(&last.name) {
            self.turn_away(&displaced);
        }
        true
    }

    fn turn_away(&mut self, offer: &Offer) {
        let kind = if self.workers.stuck(&offer.except) {
            TurnedAway::Stuck
        } else {
            TurnedAway::Takeable
        };
        self.turned_away = self.turned_away.max(kind);
    }

    fn refill(&mut self) {
        let left = match self.turned_away {
            TurnedAway::Nothing => return,
            TurnedAway::Takeable if !self.workers.is_empty() => {
                self.offers.takeable(|except| self.workers.stuck(except))
            }
            TurnedAway::Stuck | TurnedAway::Takeable => self.offers.len(),
        };
        if left <= self.offers_max / 2 {
            self.turned_away = TurnedAway::Nothing;
            self.outputs.push(QueueOutput::Refill(self.key.clone()));
        }
    }
}
