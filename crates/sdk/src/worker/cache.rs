//! The runs that one workflow thread keeps in memory. When there are too many, the least recently
//! used one is evicted: its next task costs a replay. A run with local activities that are running,
//! or whose ends its code has not seen, is never evicted, because they would run again.

use std::collections::{BTreeMap, HashMap};

use abide_core::ids::{RunId, StartId};

use super::cached_run::CachedRun;

/// Runs in memory with least-recently-used eviction.
pub(super) struct Cache {
    limit: usize,
    runs: HashMap<RunId, Kept>,
    /// Runs with unfinished local activities; they do not count towards the limit.
    busy: HashMap<RunId, CachedRun>,
    /// Run ids in the order of their last use.
    order: BTreeMap<u64, RunId>,
    uses: u64,
}

struct Kept {
    machine: CachedRun,
    used: u64,
}

impl Cache {
    /// Keeps at most `limit` runs, not counting those with unfinished local activities.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, runs: HashMap::new(), busy: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Removes a run and returns its machine.
    pub(super) fn take(&mut self, run: RunId) -> Option<CachedRun> {
        if let Some(machine) = self.busy.remove(&run) {
            return Some(machine);
        }
        let kept = self.runs.remove(&run)?;
        self.order.remove(&kept.used);
        Some(kept.machine)
    }

    /// Inserts a run. Returns the evicted machine, because dropping it runs user code.
    #[must_use = "to drop a machine may panic: do it when nothing else is left to do"]
    pub(super) fn keep(&mut self, run: RunId, mut machine: CachedRun) -> Option<CachedRun> {
        if machine.locals().unfinished() {
            let kept = self.take(run);
            self.busy.insert(run, machine);
            return kept;
        }
        if self.limit == 0 {
            return Some(machine);
        }
        let replaced = self.take(run);
        let evicted = if self.runs.len() >= self.limit {
            let oldest = self.order.pop_first();
            oldest.and_then(|(_, oldest)| self.runs.remove(&oldest)).map(|kept| kept.machine)
        } else {
            None
        };
        self.uses += 1;
        self.order.insert(self.uses, run);
        self.runs.insert(run, Kept { machine, used: self.uses });
        replaced.or(evicted)
    }

    /// How many runs are in memory.
    pub(super) fn len(&self) -> usize {
        self.runs.len() + self.busy.len()
    }

    /// Drops a run if its last turn was this one: the engine did not accept the turn.
    pub(super) fn forget_turn(&mut self, run: RunId, start: StartId) {
        let kept = self.runs.get(&run).map(|kept| &kept.machine).or(self.busy.get(&run));
        if kept.is_some_and(|machine| machine.last_turn() == Some(start)) {
            self.take(run);
        }
    }
}
