//! The offers that a queue keeps, in order. They stand in lanes, one per set of builds that must not
//! get them, so that the first offer for a worker is found by looking at the head of each lane.
//! Nearly all offers share the lane without exceptions; the others are blocked runs, which differ
//! only in which of a few builds they were tried with.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::ids::{BuildId, RunId, ShardId};

use crate::message::{Offer, Work};

/// What makes two offers the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    shard: ShardId,
    run: RunId,
    work: Work,
}

impl Name {
    pub(super) fn of(offer: &Offer) -> Self {
        Self { shard: offer.shard, run: offer.run, work: offer.work }
    }
}

/// What goes first. People wait for queries; tasks are rows and lose nothing by standing behind.
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

/// Where an offer stands: by urgency, then by when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    urgency: Urgency,
    number: u64,
}

/// An offer that would be the first to make room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) stuck: bool,
    pub(super) urgency: Urgency,
    pub(super) name: Name,
}

/// Kept offers.
#[derive(Debug, Default)]
pub(super) struct Offers {
    kept: BTreeMap<Name, (Place, Offer)>,
    lanes: BTreeMap<BTreeSet<BuildId>, BTreeMap<Place, Name>>,
    numbered: u64,
}

impl Offers {
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.kept.contains_key(name)
    }

    /// Keeps an offer at the end, or in the place of the same one.
    pub(super) fn put(&mut self, offer: Offer) {
        let name = Name::of(&offer);
        let place = match self.kept.get(&name) {
            Some((place, _)) => *place,
            None => self.new_place(offer.work),
        };
        self.remove(&name);
        self.lanes.entry(offer.except.clone()).or_default().insert(place, name);
        self.kept.insert(name, (place, offer));
    }

    fn new_place(&mut self, work: Work) -> Place {
        self.numbered += 1;
        Place { urgency: Urgency::of(work), number: self.numbered }
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Offer> {
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

    /// The first offer that code of this build may get.
    pub(super) fn first_for(&self, build: Option<&BuildId>) -> Option<Name> {
        self.lanes
            .iter()
            .filter(|(except, _)| allowed(build, except))
            .filter_map(|(_, lane)| lane.first_key_value())
            .min()
            .map(|(_, name)| *name)
    }

    /// The newest of the least urgent offers, those first that are stuck.
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

    /// How many offers are not stuck.
    pub(super) fn takeable(&self, stuck: impl Fn(&BTreeSet<BuildId>) -> bool) -> usize {
        self.lanes.iter().filter(|(except, _)| !stuck(except)).map(|(_, lane)| lane.len()).sum()
    }
}

/// Whether code of this build may get an offer with these exceptions. Code that names no build is
/// never excepted.
pub(super) fn allowed(build: Option<&BuildId>, except: &BTreeSet<BuildId>) -> bool {
    build.is_none_or(|build| !except.contains(build))
}
