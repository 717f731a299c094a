//! Runs that are evicted while work of theirs is in flight: a worker has their task, or an update
//! waits for one. What their log does not hold stays here, which is little, and is put back when the
//! run is loaded again. So a large run takes no memory while a worker takes its time.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    ids::{RunId, SessionId, StartId},
    limits::Limits,
    run::{Run, StartedTask, Volatile},
};

use super::Shard;
use crate::{alarm::Alarm, cache::InMemoryOnly, message::Offer};

/// How often to look whether a run that is too large to be cached is still in use.
const REST: Duration = Duration::from_secs(3);

/// What is left in memory of an evicted run.
#[derive(Debug)]
pub(super) struct Absent {
    volatile: Volatile,
    /// The offer of its task, if updates wait for one: such a task may have no row.
    offer: Option<Offer>,
    in_memory_only: InMemoryOnly,
}

/// Evicted runs with work in flight.
#[derive(Debug, Default)]
pub(super) struct AbsentRuns {
    runs: BTreeMap<RunId, Absent>,
    in_memory_only: InMemoryOnly,
}

impl AbsentRuns {
    fn insert(&mut self, run: RunId, absent: Absent) {
        self.in_memory_only += absent.in_memory_only;
        if let Some(old) = self.runs.insert(run, absent) {
            self.in_memory_only -= old.in_memory_only;
        }
    }

    pub(super) fn remove(&mut self, run: RunId) -> Option<Absent> {
        let absent = self.runs.remove(&run)?;
        self.in_memory_only -= absent.in_memory_only;
        Some(absent)
    }
}

impl Shard {
    /// The started workflow task of a run, also if the run is evicted. For checks.
    pub fn turn(&self, run: RunId) -> Option<&StartedTask> {
        let absent = || self.memory.absent.runs.get(&run).map(|absent| &absent.volatile);
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
            let in_memory_only = InMemoryOnly::of(&entry.run);
            let volatile = std::mem::take(&mut entry.run.volatile);
            let absent = Absent { volatile, offer, in_memory_only };
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
        run.volatile = match self.memory.absent.remove(run.id) {
            Some(absent) => absent.volatile,
            None => Volatile { watched_since: self.opened_at, ..Volatile::default() },
        };
    }

    /// The workflow tasks that a session has.
    pub(super) fn turns_of(&self, session: &SessionId) -> Vec<(RunId, StartId)> {
        let cached = self.memory.cache.iter().map(|(run, entry)| (run, &entry.run.volatile));
        let absent = self.memory.absent.runs.iter().map(|(run, absent)| (run, &absent.volatile));
        cached
            .chain(absent)
            .filter_map(|(run, volatile)| Some((*run, volatile.turn.as_ref()?)))
            .filter(|(_, turn)| turn.session == *session)
            .map(|(run, turn)| (run, turn.start))
            .collect()
    }

    /// Bytes of what no log holds, of all runs.
    pub(super) fn in_memory_only(&self) -> InMemoryOnly {
        let mut bytes = self.memory.cache.in_memory_only();
        bytes += self.memory.absent.in_memory_only;
        bytes
    }

    /// Offers of evicted runs whose updates wait for a task.
    pub(super) fn absent_offers(&self) -> Vec<Offer> {
        self.memory.absent.runs.values().filter_map(|absent| absent.offer.clone()).collect()
    }
}
