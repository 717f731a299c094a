//! The offers that a queue keeps, in order. They are grouped in lanes, one per set of excluded
//! builds, so that the first offer for a worker is at the head of some lane. Nearly all offers
//! share the lane without exclusions; the others are blocked runs, which differ only in which of a
//! few builds were tried.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::ids::{BuildId, RunId, ShardId};

use crate::message::{Offer, Work};

/// Identity of an offer: offers with the same name are one offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OfferName {
    shard: ShardId,
    run: RunId,
    work: Work,
}

impl OfferName {
    pub(super) fn of(offer: &Offer) -> Self {
        Self { shard: offer.shard, run: offer.run, work: offer.work }
    }
}

/// What goes first. Callers wait for queries; tasks are rows and lose nothing by waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    Query,
    Task,
}

impl Urgency {
    pub(super) fn of(work: Work) -> Self {
        match work {
            Work::Query(_) => Self::Query,
            Work::Workflow | Work::Activity(_) => Self::Task,
        }
    }
}

/// Position of an offer: by urgency, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OfferRank {
    urgency: Urgency,
    number: u64,
}

/// The least valuable offer, which is displaced first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) stuck: bool,
    pub(super) urgency: Urgency,
    pub(super) name: OfferName,
}

/// Kept offers by name, and their order in each lane.
#[derive(Debug, Default)]
pub(super) struct Offers {
    kept: BTreeMap<OfferName, (OfferRank, Offer)>,
    lanes: BTreeMap<BTreeSet<BuildId>, BTreeMap<OfferRank, OfferName>>,
    numbered: u64,
}

impl Offers {
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn contains(&self, name: &OfferName) -> bool {
        self.kept.contains_key(name)
    }

    /// Adds an offer at the end of its lane, or replaces the offer of the same name in its place.
    pub(super) fn put(&mut self, offer: Offer) {
        let name = OfferName::of(&offer);
        let place = match self.kept.get(&name) {
            Some((place, _)) => *place,
            None => self.new_place(offer.work),
        };
        self.remove(&name);
        self.lanes.entry(offer.except.clone()).or_default().insert(place, name);
        self.kept.insert(name, (place, offer));
    }

    fn new_place(&mut self, work: Work) -> OfferRank {
        self.numbered += 1;
        OfferRank { urgency: Urgency::of(work), number: self.numbered }
    }

    pub(super) fn remove(&mut self, name: &OfferName) -> Option<Offer> {
        let (place, offer) = self.kept.remove(name)?;
        if let Some(lane) = self.lanes.get_mut(&offer.except) {
            lane.remove(&place);
            if lane.is_empty() {
                self.lanes.remove(&offer.except);
            }
        }
        Some(offer)
    }

    pub(super) fn remove_shard(&mut self, shard: ShardId) {
        let names: Vec<_> = self.kept.keys().filter(|name| name.shard == shard).copied().collect();
        for name in names {
            self.remove(&name);
        }
    }

    /// The first offer that a worker of this build may take.
    pub(super) fn first_for(&self, build: Option<&BuildId>) -> Option<OfferName> {
        self.lanes
            .iter()
            .filter(|(except, _)| allowed(build, except))
            .filter_map(|(_, lane)| lane.first_key_value())
            .min()
            .map(|(_, name)| *name)
    }

    /// The least valuable offer: stuck before takeable, then the least urgent, then the newest.
    pub(super) fn last(&self, stuck: impl Fn(&BTreeSet<BuildId>) -> bool) -> Option<Last> {
        self.lanes
            .iter()
            .filter_map(|(except, lane)| {
                let (place, name) = lane.last_key_value()?;
                Some((stuck(except), *place, *name))
            })
            .max()
            .map(|(stuck, place, name)| Last { stuck, urgency: place.urgency, name })
    }

    /// Number of offers that are not stuck.
    pub(super) fn takeable(&self, stuck: impl Fn(&BTreeSet<BuildId>) -> bool) -> usize {
        self.lanes.iter().filter(|(except, _)| !stuck(except)).map(|(_, lane)| lane.len()).sum()
    }
}

/// Whether a worker of this build may take an offer with these exceptions. A worker without a build
/// may take any offer.
pub(super) fn allowed(build: Option<&BuildId>, except: &BTreeSet<BuildId>) -> bool {
    build.is_none_or(|build| !except.contains(build))
}
