//! The workers that are connected to a queue, with their credits. Those with credit stand in order
//! of their last match, one line per build, so that each gets its turn.

use std::collections::{BTreeMap, BTreeSet};

use abide_core::{
    call::Worker,
    ids::{BuildId, SessionId},
};

use super::offers::allowed;
use crate::message::Offer;

#[derive(Debug)]
struct Connected {
    worker: Worker,
    credits: usize,
    matched: u64,
}

/// Connected workers.
#[derive(Debug, Default)]
pub(super) struct Workers {
    connected: BTreeMap<SessionId, Connected>,
    /// How many workers of each build are connected.
    builds: BTreeMap<Option<BuildId>, usize>,
    /// Who has credit: by build, least recently matched first.
    ready: BTreeMap<Option<BuildId>, BTreeSet<(u64, SessionId)>>,
    matches: u64,
}

impl Workers {
    pub(super) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Nobody who is connected may take an offer with these exceptions.
    pub(super) fn stuck(&self, except: &BTreeSet<BuildId>) -> bool {
        !self.builds.keys().any(|build| allowed(build.as_ref(), except))
    }

    /// Adds credits; `true` if no worker of that build was connected.
    pub(super) fn credit(&mut self, worker: Worker, credits: usize) -> bool {
        let before = self.remove(&worker.session);
        let fresh = !self.builds.contains_key(&worker.build);
        let (held, matched) = before.map_or((0, 0), |before| (before.credits, before.matched));
        let session = worker.session.clone();
        *self.builds.entry(worker.build.clone()).or_default() += 1;
        let connected = Connected { worker, credits: held.saturating_add(credits), matched };
        self.connected.insert(session.clone(), connected);
        self.enlist(&session);
        fresh
    }

    /// Adds one credit, if the worker is connected.
    pub(super) fn give_back(&mut self, session: &SessionId) {
        if let Some(connected) = self.connected.get_mut(session) {
            connected.credits = connected.credits.saturating_add(1);
        }
        self.enlist(session);
    }

    pub(super) fn gone(&mut self, session: &SessionId) {
        self.remove(session);
    }

    /// Who gets the offer: whom it prefers, else whose turn it is.
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
            .map(|(_, session)| session.clone())
    }

    /// The worker, if it has credit.
    pub(super) fn ready(&self, session: &SessionId) -> Option<&Worker> {
        self.connected
            .get(session)
            .filter(|connected| connected.credits > 0)
            .map(|connected| &connected.worker)
    }

    /// Takes one credit of the worker, which has had its turn then.
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
            line.insert((connected.matched, session.clone()));
        }
    }

    fn delist(&mut self, session: &SessionId) {
        let Some(connected) = self.connected.get(session) else { return };
        let build = &connected.worker.build;
        if let Some(line) = self.ready.get_mut(build) {
            line.remove(&(connected.matched, session.clone()));
            if line.is_empty() {
                self.ready.remove(build);
            }
        }
    }
}
