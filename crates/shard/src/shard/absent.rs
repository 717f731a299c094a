//! Runs that are evicted while work of theirs is in flight: a worker has their task, or an update
//! waits for one. What their log does not hold stays here, which is little, and is put back when the
//! run is loaded again. So a large run takes no memory while a worker takes its time.

use std::time::Duration;

use abide_core::{
    ids::{RunId, SessionId, StartId},
    limits::Limits,
    run::{Run, StartedTask, Volatile},
};

use super::Shard;
use crate::{alarm::Alarm, message::Offer};

/// How often to look whether a run that is too large to be cached is still in use.
const REST: Duration = Duration::from_secs(3);

/// What is left in memory of an evicted run.
#[derive(Debug)]
pub(super) struct Absent {
    volatile: Volatile,
    /// The offer of its task, if updates wait for one: such a task may have no row.
    offer: Option<Offer>,
    /// Bytes of the updates that code has neither accepted nor rejected.
    waiting_updates: usize,
}

impl Shard {
    /// The started workflow task of a run, also if the run is evicted. For checks.
    pub fn turn(&self, run: RunId) -> Option<&StartedTask> {
        let absent = || self.memory.absent.get(&run).map(|absent| &absent.volatile);
        self.peek(run).map(|run| &run.volatile).or_else(absent)?.turn.as_ref()
    }

    /// Evicts runs that exceed the bounds of the cache.
    pub(super) fn evict(&mut self) {
        let pipeline = &self.memory.pipeline;
        let Limits { cached_runs, cached_bytes, .. } = *self.limits;
        let left =
            self.memory.cache.shrink(cached_runs, cached_bytes, |batch| pipeline.durable(batch));
        for mut entry in left {
            let for_updates = !entry.run.volatile.admitted.is_empty() && entry.run.task_pending();
            let offer = for_updates.then(|| self.task_offer(&entry));
            let waiting_updates = entry.run.admitted_memory();
            let volatile = std::mem::take(&mut entry.run.volatile);
            let absent = Absent { volatile, offer, waiting_updates };
            self.memory.absent.insert(entry.run.id, absent);
        }
        if !self.memory.resting && self.memory.cache.bytes() > cached_bytes {
            self.memory.resting = true;
            self.memory.alarms.set(self.now().saturating_add(REST), Alarm::Rest);
        }
    }

    /// Lets a run leave that is too large to be cached and was not used for a while.
    pub(super) fn rest(&mut self) {
        self.memory.resting = false;
        self.memory.cache.rest();
    }

    /// Puts back what a loaded run had in memory when it was evicted.
    pub(super) fn put_back(&mut self, run: &mut Run) {
        run.volatile = match self.memory.absent.remove(&run.id) {
            Some(absent) => absent.volatile,
            None => Volatile { watched_since: self.opened_at, ..Volatile::default() },
        };
    }

    /// The workflow tasks that a session has.
    pub(super) fn turns_of(&self, session: &SessionId) -> Vec<(RunId, StartId)> {
        let cached = self.memory.cache.iter().map(|(run, entry)| (run, &entry.run.volatile));
        let absent = self.memory.absent.iter().map(|(run, absent)| (run, &absent.volatile));
        cached
            .chain(absent)
            .filter_map(|(run, volatile)| Some((*run, volatile.turn.as_ref()?)))
            .filter(|(_, turn)| turn.session == *session)
            .map(|(run, turn)| (run, turn.start))
            .collect()
    }

    /// Bytes of the updates of all runs that code has neither accepted nor rejected.
    pub(super) fn waiting_updates(&self) -> usize {
        let absent = self.memory.absent.values().map(|absent| absent.waiting_updates);
        self.memory.cache.waiting_updates() + absent.sum::<usize>()
    }

    /// Offers of evicted runs whose updates wait for a task.
    pub(super) fn absent_offers(&self) -> Vec<Offer> {
        self.memory.absent.values().filter_map(|absent| absent.offer.clone()).collect()
    }
}
