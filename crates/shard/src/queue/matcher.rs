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

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    dispatch::{QueueKey, Worker},
    ids::{BuildId, SessionId, ShardId},
};

use super::{
    QueueOutput,
    builds::Builds,
    offers::{Name, Offers, Urgency, allowed},
    workers::Workers,
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
    /// How much spare credit the other nodes know of, by build: what was announced less what they
    /// have borrowed.
    told: BTreeMap<Option<BuildId>, usize>,
    outputs: Vec<QueueOutput>,
}

impl Matcher {
    pub(super) fn new(key: QueueKey, offers_max: usize) -> Self {
        Self {
            idle_since: None,
            key,
            offers_max,
            offers: Offers::default(),
            workers: Workers::default(),
            builds: Builds::default(),
            turned_away: TurnedAway::Nothing,
            told: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// Number of offers that wait for a worker.
    pub(super) fn waiting(&self) -> usize {
        self.offers.len()
    }

    pub(super) fn offer(&mut self, offer: Offer) {
        let name = Name::of(&offer);
        if let Some(session) = self.workers.choose(&offer) {
            self.offers.remove(&name);
            self.hand_out(offer, &session);
        } else if self.offers.contains(&name) || self.make_room(&offer) {
            self.offers.put(offer);
        } else {
            self.turn_away(&offer);
        }
        self.refill();
    }

    /// Matches an offer of another node with a local worker, or declines it.
    pub(super) fn borrow(&mut self, offer: Offer) {
        let Some(session) = self.workers.choose_near(&offer) else {
            self.outputs.push(QueueOutput::Declined(offer));
            // A node whose offer is declined assumes that no credit of any build is left.
            self.told.clear();
            return;
        };
        // The borrower may have counted on any build that the work allows.
        for (build, told) in &mut self.told {
            if allowed(build.as_ref(), &offer.except) {
                *told = told.saturating_sub(1);
            }
        }
        self.hand_out(offer, &session);
    }

    /// The lender declined the offer, because its credit was spent.
    pub(super) fn declined(&mut self, lenders: &BTreeSet<SessionId>, offer: Offer) {
        for lender in lenders {
            self.workers.spent(lender);
        }
        self.offer(offer);
    }

    /// Another node has announced its spare credit.
    pub(super) fn lent(&mut self, worker: Worker, credits: usize) {
        let session = worker.session.clone();
        let other_code = self.workers.lent(worker, credits);
        if other_code && self.turned_away == TurnedAway::Stuck {
            self.turned_away = TurnedAway::Takeable;
        }
        self.serve(&session);
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

    pub(super) fn credit(&mut self, worker: Worker, credits: usize) {
        if let Some(build) = &worker.build
            && self.builds.hear(build)
        {
            self.outputs.push(QueueOutput::NewBuild(self.key.clone(), build.clone()));
        }
        let session = worker.session.clone();
        let other_code = self.workers.credit(worker, credits);
        if other_code && self.turned_away == TurnedAway::Stuck {
            self.turned_away = TurnedAway::Takeable;
        }
        self.serve(&session);
    }

    pub(super) fn give_back(&mut self, session: &SessionId) {
        self.workers.give_back(session);
        self.serve(session);
    }

    pub(super) fn gone(&mut self, session: &SessionId) {
        self.workers.gone(session);
        self.refill();
    }

    pub(super) fn shard_closed(&mut self, shard: ShardId) {
        self.offers.remove_shard(shard);
        self.refill();
    }

    pub(super) fn credits_of(&self, session: &SessionId) -> usize {
        self.workers.credits_of(session)
    }

    pub(super) fn outputs(&mut self) -> impl Iterator<Item = QueueOutput> {
        self.outputs.drain(..)
    }

    /// Whether the queue holds nothing but known builds. No offer is turned away then: an empty
    /// queue has already asked for its refill.
    pub(super) fn idle(&self) -> bool {
        self.offers.len() == 0 && self.workers.is_empty()
    }

    fn serve(&mut self, session: &SessionId) {
        while let Some(worker) = self.workers.ready(session) {
            let Some(name) = self.offers.first_for(worker.build.as_ref()) else { break };
            let Some(offer) = self.offers.remove(&name) else { break };
            self.hand_out(offer, session);
        }
        self.refill();
    }

    fn hand_out(&mut self, offer: Offer, session: &SessionId) {
        let far = self.workers.is_far(session);
        if let Some(worker) = self.workers.take(session) {
            self.outputs.push(match far {
                true => QueueOutput::Pass(offer, worker.identity),
                false => QueueOutput::Match(offer, worker),
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
