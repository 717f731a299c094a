//! The workers connected to a queue, with their credits. Workers with credit are ordered by their
//! last match, one line per build, so that each gets its turn. Nodes that have lent credit come
//! after all local workers.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    dispatch::Worker,
    ids::{BuildId, SessionId},
};

use super::offers::allowed;
use crate::message::Offer;

/// Who has credit. Sessions are named by workers, so a node must be no session: a worker could take
/// its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A local worker.
    Session(SessionId),
    /// Another node that has lent credit of its workers of one build.
    Lender {
        /// Address of the node.
        node: String,
        build: Option<BuildId>,
    },
}

impl Holder {
    /// Whether this is another node, rather than a local worker.
    const fn is_far(&self) -> bool {
        matches!(self, Self::Lender { .. })
    }
}

/// Who takes an offer.
#[derive(Clone, Debug)]
pub(super) enum Taker {
    Worker(Worker),
    /// The address of another node.
    Node(String),
}

#[derive(Debug)]
struct Connected {
    taker: Taker,
    build: Option<BuildId>,
    credits: usize,
    matched: u64,
    /// It takes nothing now, whatever its credit.
    paused: bool,
}

/// Connected workers, local ones and lenders.
#[derive(Debug, Default)]
pub(super) struct Workers {
    connected: BTreeMap<Holder, Connected>,
    /// Number of connected workers of each build.
    builds: BTreeMap<Option<BuildId>, usize>,
    /// Holders with credit by build: local ones first, then the least recently matched.
    ready: BTreeMap<Option<BuildId>, BTreeSet<(bool, u64, Holder)>>,
    /// Credit of local workers, by build.
    spare: BTreeMap<Option<BuildId>, usize>,
    matches: u64,
}

impl Workers {
    pub(super) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Whether no connected worker may take an offer with these exceptions.
    pub(super) fn stuck(&self, except: &BTreeSet<BuildId>) -> bool {
        !self.builds.keys().any(|build| allowed(build.as_ref(), except))
    }

    /// Adds credits of a worker that takes nothing now if it is paused; returns `true` if no worker of
    /// that build was connected before.
    pub(super) fn credit(&mut self, worker: Worker, credits: usize, paused: bool) -> bool {
        let holder = Holder::Session(worker.session.clone());
        let credits = self.credits_of(&holder).saturating_add(credits);
        let build = worker.build.clone();
        let fresh = self.set(holder.clone(), Taker::Worker(worker), build, credits);
        self.pause(&holder, paused);
        fresh
    }

    /// Sets the credit that another node lends; returns `true` if no worker of that build was
    /// connected before.
    pub(super) fn lent(&mut self, node: String, build: Option<BuildId>, credits: usize) -> bool {
        let holder = Holder::Lender { node: node.clone(), build: build.clone() };
        self.set(holder, Taker::Node(node), build, credits)
    }

    fn set(
        &mut self,
        holder: Holder,
        taker: Taker,
        build: Option<BuildId>,
        credits: usize,
    ) -> bool {
        let matched = self.remove(&holder).map_or(0, |before| before.matched);
        let fresh = !self.builds.contains_key(&build);
        *self.builds.entry(build.clone()).or_default() += 1;
        let connected = Connected { taker, build, credits, matched, paused: false };
        self.connected.insert(holder.clone(), connected);
        self.enlist(&holder);
        fresh
    }

    /// The credit that this node lent is used up.
    pub(super) fn spent(&mut self, node: &str) {
        let of_node =
            |holder: &&Holder| matches!(holder, Holder::Lender { node: of, .. } if of == node);
        let lenders: Vec<_> = self.connected.keys().filter(of_node).cloned().collect();
        for lender in lenders {
            self.delist(&lender);
            if let Some(connected) = self.connected.get_mut(&lender) {
                connected.credits = 0;
            }
        }
    }

    /// Credit of local workers, by build.
    pub(super) fn spare(&self) -> &BTreeMap<Option<BuildId>, usize> {
        &self.spare
    }

    /// The credit of a holder; zero if it is not connected.
    pub(super) fn credits_of(&self, holder: &Holder) -> usize {
        self.connected.get(holder).map_or(0, |connected| connected.credits)
    }

    /// Adds one credit, if the holder is connected.
    pub(super) fn give_back(&mut self, holder: &Holder) {
        self.delist(holder);
        if let Some(connected) = self.connected.get_mut(holder) {
            connected.credits = connected.credits.saturating_add(1);
        }
        self.enlist(holder);
    }

    /// The holder takes nothing until it is no longer paused. It keeps its credit.
    pub(super) fn pause(&mut self, holder: &Holder, paused: bool) {
        self.delist(holder);
        if let Some(connected) = self.connected.get_mut(holder) {
            connected.paused = paused;
        }
        self.enlist(holder);
    }

    pub(super) fn gone(&mut self, holder: &Holder) {
        self.remove(holder);
    }

    /// Chooses the holder for an offer: the preferred worker, otherwise the one whose turn it is.
    pub(super) fn choose(&self, offer: &Offer) -> Option<Holder> {
        if let Some(session) = &offer.prefer {
            let holder = Holder::Session(session.clone());
            if self.ready(&holder).is_some_and(|build| allowed(build, &offer.except)) {
                return Some(holder);
            }
        }
        self.ready
            .iter()
            .filter(|(build, _)| allowed(build.as_ref(), &offer.except))
            .filter_map(|(_, line)| line.first())
            .min()
            .map(|(_, _, holder)| holder.clone())
    }

    /// Takes one credit of the local worker that is chosen for an offer.
    pub(super) fn take_near(&mut self, offer: &Offer) -> Option<Worker> {
        let holder = self.choose(offer).filter(|holder| !holder.is_far())?;
        match self.take(&holder)? {
            Taker::Worker(worker) => Some(worker),
            Taker::Node(_) => None,
        }
    }

    /// Returns the build of the holder if it has credit and is not paused.
    pub(super) fn ready(&self, holder: &Holder) -> Option<Option<&BuildId>> {
        let ready = |connected: &&Connected| connected.credits > 0 && !connected.paused;
        self.connected.get(holder).filter(ready).map(|connected| connected.build.as_ref())
    }

    /// Takes one credit of the holder and moves it to the end of the line.
    pub(super) fn take(&mut self, holder: &Holder) -> Option<Taker> {
        self.ready(holder)?;
        self.delist(holder);
        self.matches += 1;
        let connected = self.connected.get_mut(holder)?;
        connected.credits -= 1;
        connected.matched = self.matches;
        let taker = connected.taker.clone();
        self.enlist(holder);
        Some(taker)
    }

    fn remove(&mut self, holder: &Holder) -> Option<Connected> {
        self.delist(holder);
        let connected = self.connected.remove(holder)?;
        let build = &connected.build;
        if let Some(count) = self.builds.get_mut(build) {
            *count -= 1;
            if *count == 0 {
                self.builds.remove(build);
            }
        }
        Some(connected)
    }

    fn enlist(&mut self, holder: &Holder) {
        let Some(connected) = self.connected.get(holder) else { return };
        if connected.credits > 0 && !connected.paused {
            let line = self.ready.entry(connected.build.clone()).or_default();
            line.insert((holder.is_far(), connected.matched, holder.clone()));
            if !holder.is_far() {
                *self.spare.entry(connected.build.clone()).or_default() += connected.credits;
            }
        }
    }

    fn delist(&mut self, holder: &Holder) {
        let Some(connected) = self.connected.get(holder) else { return };
        let Connected { build, credits, matched, .. } = connected;
        let Some(line) = self.ready.get_mut(build) else { return };
        let listed = line.remove(&(holder.is_far(), *matched, holder.clone()));
        if line.is_empty() {
            self.ready.remove(build);
        }
        if let Some(spare) = self.spare.get_mut(build).filter(|_| listed && !holder.is_far()) {
            *spare -= credits;
            if *spare == 0 {
                self.spare.remove(build);
            }
        }
    }
}
