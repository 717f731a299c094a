//! The cache of runs in memory. Runs with uncommitted writes or work in flight stay; the least
//! recently used of the others are evicted when there are too many, and are folded from the log
//! when they are needed again.

use std::collections::BTreeMap;

use abide_core::{
    ids::{Key, RunId, SessionId, StartId, WorkflowKey},
    limits::Limits,
    run::{Run, Touch},
    time::Timestamp,
};
use bytes::Bytes;

use crate::{
    pipeline::BatchNumber,
    rows::{self, Row},
};

/// Bytes of recent events kept per run, to send to the worker that has the run in memory.
const RECENT_BYTES_MAX: usize = 1 << 20;

/// Snapshot items per new log row: a snapshot of `n` items is written only after `n / 4` new rows.
/// So snapshots cost a constant amount per log row, however many children or keys the run has.
const SNAPSHOT_ITEMS_PER_ROW: usize = 4;

/// A run in memory.
#[derive(Debug)]
pub struct Entry {
    pub run: Run,
    /// The rows that the store has, or will have once the pending commits are durable, by part of
    /// the run.
    pub rows: BTreeMap<Touch, Vec<Row>>,
    /// The last batch that holds writes of the run.
    pub written_in: BatchNumber,
    /// Number of log rows covered by the last snapshot.
    pub snapshot_rows: u64,
    /// The session that completed the last workflow task, and so has the run in memory.
    pub affinity: Option<SessionId>,
    /// The alarm set for the timeout of the started workflow task.
    pub turn_alarm: Option<(Timestamp, StartId)>,
    /// Events since the last completed task, or since the start; none if they are unknown or over
    /// `RECENT_BYTES_MAX`.
    recent: Option<Recent>,
    used: u64,
}

/// Encoded events of a run, one entry per log row.
#[derive(Debug, Default)]
struct Recent {
    rows: Vec<Bytes>,
    bytes: usize,
}

impl Entry {
    /// An entry for a new run (`stored` is false) or for one folded from the store.
    pub fn new(run: Run, stored: bool) -> Self {
        let rows = if stored { project_all(&run) } else { BTreeMap::new() };
        let snapshot_rows = run.log_rows;
        let recent = (!stored).then(Recent::default);
        Self {
            run,
            rows,
            written_in: 0,
            snapshot_rows,
            affinity: None,
            turn_alarm: None,
            recent,
            used: 0,
        }
    }

    /// Takes the timeout alarm if its workflow task has ended.
    pub fn take_stale_turn_alarm(&mut self) -> Option<(Timestamp, StartId)> {
        let turn = self.run.volatile.turn.as_ref().map(|turn| turn.start);
        self.turn_alarm.take_if(|(_, start)| turn != Some(*start))
    }

    /// Remembers the events of a new log row for the worker that has the run in memory.
    pub fn remember(&mut self, events: Bytes, task_completed: bool) {
        if task_completed {
            self.recent = Some(Recent::default());
        }
        let Some(recent) = &mut self.recent else { return };
        recent.bytes += events.len();
        recent.rows.push(events);
        if recent.bytes > RECENT_BYTES_MAX {
            self.recent = None;
        }
    }

    /// Events since the last completed task, or since the start; none if they are unknown or over
    /// `RECENT_BYTES_MAX`.
    pub fn recent(&self) -> Option<Vec<Bytes>> {
        self.recent.as_ref().map(|recent| recent.rows.clone())
    }

    /// Whether the log has grown enough since the last snapshot to write a new one.
    pub fn snapshot_is_old(&self, limits: &Limits) -> bool {
        let worth = self.run.snapshot_items() / SNAPSHOT_ITEMS_PER_ROW;
        let worth = u64::try_from(worth).unwrap_or(u64::MAX);
        self.run.log_rows - self.snapshot_rows >= limits.snapshot_rows.max(worth)
    }
}

/// All rows that the run should have in the store, by part.
pub fn project_all(run: &Run) -> BTreeMap<Touch, Vec<Row>> {
    run.parts().into_iter().map(|part| (part.clone(), rows::project(run, &part))).collect()
}

/// Runs by id, by last use, and the current run of each workflow.
#[derive(Debug, Default)]
pub struct Cache {
    /// Boxed, because the map moves its values as it grows and shrinks.
    entries: BTreeMap<RunId, Box<Entry>>,
    by_use: BTreeMap<u64, RunId>,
    heads: BTreeMap<WorkflowKey, RunId>,
    clock: u64,
    /// Number of runs from which [`Self::shrink`] searches again for runs to evict.
    look_at: usize,
}

impl Cache {
    /// Returns a run and marks it as most recently used.
    pub fn get(&mut self, run: RunId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&run)?;
        // One message gets the same run many times.
        if entry.used != self.clock {
            self.by_use.remove(&entry.used);
            self.clock += 1;
            entry.used = self.clock;
            self.by_use.insert(self.clock, run);
        }
        Some(entry)
    }

    /// Returns a run without marking it as used.
    pub fn peek(&self, run: RunId) -> Option<&Entry> {
        self.entries.get(&run).map(|entry| &**entry)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&RunId, &Entry)> {
        self.entries.iter().map(|(run, entry)| (run, &**entry))
    }

    /// Adds a run as most recently used, or replaces it.
    pub fn insert(&mut self, entry: Entry) {
        let run = entry.run.id;
        self.clock += 1;
        let entry = Entry { used: self.clock, ..entry };
        if let Some(old) = self.entries.insert(run, Box::new(entry)) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.clock, run);
    }

    /// The current run of a workflow, if it is known.
    pub fn head(&self, workflow: &WorkflowKey) -> Option<RunId> {
        self.heads.get(workflow).copied()
    }

    /// The run of a workflow that was started with this key, if it is in memory.
    pub fn run_of_start(&self, workflow: &WorkflowKey, key: Option<&Key>) -> Option<RunId> {
        let started =
            |entry: &Entry| entry.run.key.as_ref() == key && entry.run.workflow == *workflow;
        self.entries.values().find(|entry| started(entry)).map(|entry| entry.run.id)
    }

    /// Records the current run of a workflow; the run must be in memory.
    pub fn set_head(&mut self, workflow: WorkflowKey, run: RunId) {
        self.heads.insert(workflow, run);
    }

    /// A commit succeeded: runs that had to stay may now be evicted.
    pub fn allow_shrinking(&mut self) {
        self.look_at = 0;
    }

    /// Evicts runs until at most `max` are left or no other may be evicted. If too many had to
    /// stay, the next search waits for a commit or for a quarter more runs: a search at each insert
    /// would take quadratic time.
    pub fn shrink(&mut self, max: usize, durable: impl Fn(BatchNumber) -> bool) {
        if self.entries.len() <= max || self.entries.len() < self.look_at {
            return;
        }
        let excess = self.entries.len() - max;
        let leaving: Vec<_> = self
            .by_use
            .iter()
            .filter(|(_, run)| {
                self.entries
                    .get(run)
                    .is_some_and(|entry| durable(entry.written_in) && entry.run.volatile.idle())
            })
            .map(|(used, run)| (*used, *run))
            .take(excess)
            .collect();
        for (used, run) in leaving {
            self.by_use.remove(&used);
            if let Some(entry) = self.entries.remove(&run)
                && self.heads.get(&entry.run.workflow) == Some(&run)
            {
                self.heads.remove(&entry.run.workflow);
            }
        }
        let stayed = self.entries.len();
        self.look_at = if stayed > max { stayed + stayed / 4 + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use abide_core::{
        event::RunSpec,
        run::{self, Context, StartRun},
    };

    use super::*;

    /// A run whose first writes are in batch 1.
    fn entry(number: u128) -> Entry {
        let limits = Limits::default();
        let now = Timestamp::EPOCH;
        let context = Context { now, next_run: RunId::MAX, limits: &limits };
        let id = RunId::from_parts(now, number);
        let workflow =
            WorkflowKey { namespace: "default".into(), workflow: number.to_string().into() };
        let (run, _) = run::start(&context, StartRun::new(workflow, id, RunSpec::default()));
        Entry { written_in: 1, ..Entry::new(run, false) }
    }

    #[test]
    fn runs_that_must_stay_are_not_looked_at_with_each_that_comes() {
        const RUNS: u128 = 1000;
        let mut cache = Cache::default();
        let looks = Cell::new(0);
        for number in 1..=RUNS {
            cache.insert(entry(number));
            cache.shrink(10, |_| {
                looks.set(looks.get() + 1);
                false
            });
        }
        assert_eq!(cache.iter().count(), 1000, "nothing is durable");
        assert!(looks.get() < 8 * RUNS, "{} looks", looks.get());
        cache.allow_shrinking();
        cache.shrink(10, |_| true);
        assert_eq!(cache.iter().count(), 10);
        cache.insert(entry(RUNS + 1));
        cache.shrink(10, |_| true);
        assert_eq!(cache.iter().count(), 10, "one comes and one leaves");
    }
}
