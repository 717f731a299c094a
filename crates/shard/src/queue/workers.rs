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

#[derive(Debug)]
struct Connected {
    worker: Worker,
    credits: usize,
    matched: u64,
    /// A node that has lent credit, rather than a local worker.
    far: bool,
}

/// Connected workers, local ones and lenders.
#[derive(Debug, Default)]
pub(super) struct Workers {
    connected: BTreeMap<SessionId, Connected>,
    /// Number of connected workers of each build.
    builds: BTreeMap<Option<BuildId>, usize>,
    /// Workers with credit by build: local ones first, then the least recently matched.
    ready: BTreeMap<Option<BuildId>, BTreeSet<(bool, u64, SessionId)>>,
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

    /// Adds credits; returns `true` if no worker of that build was connected before.
    pub(super) fn credit(&mut self, worker: Worker, credits: usize) -> bool {
        let before = self.remove(&worker.session);
        let fresh = !self.builds.contains_key(&worker.build);
        let (held, matched) = before.map_or((0, 0), |before| (before.credits, before.matched));
        let session = worker.session.clone();
        *self.builds.entry(worker.build.clone()).or_default() += 1;
        let credits = held.saturating_add(credits);
        let connected = Connected { worker, credits, matched, far: false };
        self.connected.insert(session.clone(), connected);
        self.enlist(&session);
        fresh
    }

    /// Sets the credit that another node lends; returns `true` if no worker of that build was
    /// connected before.
    pub(super) fn lent(&mut self, worker: Worker, credits: usize) -> bool {
        let before = self.remove(&worker.session);
        let fresh = !self.builds.contains_key(&worker.build);
        let matched = before.map_or(0, |before| before.matched);
        let session = worker.session.clone();
        *self.builds.entry(worker.build.clone()).or_default() += 1;
        self.connected.insert(session.clone(), Connected { worker, credits, matched, far: true });
        self.enlist(&session);
        fresh
    }

    /// The credit that this lender gave is used up.
    pub(super) fn spent(&mut self, lender: &SessionId) {
        self.delist(lender);
        if let Some(connected) = self.connected.get_mut(lender) {
            connected.credits = 0;
        }
    }

    /// Credit of local workers, by build.
    pub(super) fn spare(&self) -> &BTreeMap<Option<BuildId>, usize> {
        &self.spare
    }

    /// Whether this is a node that has lent credit, rather than a local worker.
    pub(super) fn is_far(&self, session: &SessionId) -> bool {
        self.connected.get(session).is_some_and(|connected| connected.far)
    }

    /// The credit of a worker; zero if it is not connected.
    pub(super) fn credits_of(&self, session: &SessionId) -> usize {
        self.connected.get(session).map_or(0, |connected| connected.credits)
    }

    /// Adds one credit, if the worker is connected.
    pub(super) fn give_back(&mut self, session: &SessionId) {
        self.delist(session);
        if let Some(connected) = self.connected.get_mut(session) {
            connected.credits = connected.credits.saturating_add(1);
        }
        self.enlist(session);
    }

    pub(super) fn gone(&mut self, session: &SessionId) {
        self.remove(session);
    }

    /// Chooses the worker for an offer: the preferred one, otherwise the one whose turn it is.
    pub(super) fn choose(&self, offer: &Offer) -> Option<SessionId> {
        if let Some(session) = &offer.prefer
            && let Some(worker) = self.ready(session)
            && allowed(worker.build.as_ref(), &offer.except)
        {
            return Some(session.clone());
        }
        self.ready
            .iter()
            .filter(|(build, _)| allowed(build.as_ref(), &offer.except))
            .filter_map(|(_, line)| line.first())
            .min()
            .map(|(_, _, session)| session.clone())
    }

    /// Chooses among local workers only.
    pub(super) fn choose_near(&self, offer: &Offer) -> Option<SessionId> {
        self.choose(offer).filter(|session| !self.is_far(session))
    }

    /// Returns the worker if it has credit.
    pub(super) fn ready(&self, session: &SessionId) -> Option<&Worker> {
        self.connected
            .get(session)
            .filter(|connected| connected.credits > 0)
            .map(|connected| &connected.worker)
    }

    /// Takes one credit of the worker and moves it to the end of the line.
    pub(super) fn take(&mut self, session: &SessionId) -> Option<Worker> {
        self.ready(session)?;
        self.delist(session);
        self.matches += 1;
        let connected = self.connected.get_mut(session)?;
        connected.credits -= 1;
        connected.matched = self.matches;
        let worker = connected.worker.clone();
        self.enlist(session);
        Some(worker)
    }

    fn remove(&mut self, session: &SessionId) -> Option<Connected> {
        self.delist(session);
        let connected = self.connected.remove(session)?;
        let build = &connected.worker.build;
        if let Some(count) = self.builds.get_mut(build) {
            *count -= 1;
            if *count == 0 {
                self.builds.remove(build);
            }
        }
        Some(connected)
    }

    fn enlist(&mut self, session: &SessionId) {
        let Some(connected) = self.connected.get(session) else { return };
        if connected.credits > 0 {
            let line = self.ready.entry(connected.worker.build.clone()).or_default();
            line.insert((connected.far, connected.matched, session.clone()));
            if !connected.far {
                *self.spare.entry(connected.worker.build.clone()).or_default() += connected.credits;
            }
        }
    }

    fn delist(&mut self, session: &SessionId) {
        let Some(connected) = self.connected.get(session) else { return };
        let Connected { worker, credits, matched, far } = connected;
        let Some(line) = self.ready.get_mut(&worker.build) else { return };
        let listed = line.remove(&(*far, *matched, session.clone()));
        if line.is_empty() {
            self.ready.remove(&worker.build);
        }
        if let Some(spare) = self.spare.get_mut(&worker.build).filter(|_| listed && !far) {
            *spare -= credits;
            if *spare == 0 {
                self.spare.remove(&worker.build);
            }
        }
    }
}
