//! The cache of runs in memory. Runs with uncommitted writes stay; the least recently used of the
//! others are evicted when they are too many or too large, and are folded from the log when they are
//! needed again. Runs with work in flight will be needed soon, so they are evicted last, and only if
//! they are too large.

use std::{
    collections::BTreeMap,
    ops::{AddAssign, SubAssign},
};

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

/// Bytes that are written for a run before it is measured again, at least. Measuring walks through all
/// of it.
const MEASURED_AFTER: usize = 64 << 10;

/// Bytes of a run of which only a few may arrive at the same time.
const LARGE: usize = 64 << 10;

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
    /// The stored row of the run lacks its queue and parent, and its attributes may have no rows: an older
    /// version wrote it. The next write completes it.
    pub row_outdated: bool,
    /// The last batch that holds writes of the run.
    pub written_in: BatchNumber,
    /// The first such batch since the run is in memory.
    first_written_in: Option<BatchNumber>,
    /// Number of log rows covered by the last snapshot.
    pub snapshot_rows: u64,
    /// The session that completed the last workflow task, and so has the run in memory.
    pub affinity: Option<SessionId>,
    /// The alarm set for the timeout of the started workflow task.
    turn_alarm: Option<(Timestamp, StartId)>,
    /// Events since the last completed task, or since the start; none if they are unknown or too large.
    recent: Option<Recent>,
    used: u64,
    /// Bytes of memory when the run was last measured.
    measured: usize,
    /// Bytes that were written for it since.
    grown: usize,
    in_memory_only: InMemoryOnly,
}

/// Bytes of what no log holds, so that it stays in memory when its run is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InMemoryOnly {
    /// Updates that code has neither accepted nor rejected.
    pub updates: usize,
    /// Heartbeats that are not written yet.
    pub heartbeats: usize,
}

impl InMemoryOnly {
    pub fn of(run: &Run) -> Self {
        Self { updates: run.admitted_memory(), heartbeats: run.volatile.heartbeats.memory() }
    }
}

impl AddAssign for InMemoryOnly {
    fn add_assign(&mut self, other: Self) {
        self.updates += other.updates;
        self.heartbeats += other.heartbeats;
    }
}

impl SubAssign for InMemoryOnly {
    fn sub_assign(&mut self, other: Self) {
        self.updates -= other.updates;
        self.heartbeats -= other.heartbeats;
    }
}

/// Encoded events of a run, one entry per log row.
#[derive(Debug, Default)]
pub struct Recent {
    rows: Vec<Bytes>,
    bytes: usize,
    /// They are the run's history from its first event on, so every worker can use them.
    from_start: bool,
}

impl Recent {
    /// No events of a run that has begun or is about to be read.
    pub const fn from_start() -> Self {
        Self { rows: Vec::new(), bytes: 0, from_start: true }
    }

    /// Adds the events of a log row; none if they are too large then.
    pub fn with(mut self, events: Bytes) -> Option<Self> {
        self.bytes += events.len();
        if !events.is_empty() {
            self.rows.push(events);
        }
        (self.bytes <= RECENT_BYTES_MAX).then_some(self)
    }
}

impl Entry {
    /// An entry for a new run.
    pub fn begun(run: Run) -> Self {
        Self::new(run, BTreeMap::new(), Some(Recent::from_start()))
    }

    /// An entry for a run that was folded from the store, with its events if its whole log was read.
    pub fn loaded(run: Run, recent: Option<Recent>) -> Self {
        let rows = project_all(&run);
        Self::new(run, rows, recent)
    }

    fn new(run: Run, rows: BTreeMap<Touch, Vec<Row>>, recent: Option<Recent>) -> Self {
        let snapshot_rows = run.log_rows;
        let measured = run.memory() + recent.as_ref().map_or(0, |recent| recent.bytes);
        let in_memory_only = InMemoryOnly::of(&run);
        Self {
            run,
            rows,
            row_outdated: false,
            written_in: 0,
            first_written_in: None,
            snapshot_rows,
            affinity: None,
            turn_alarm: None,
            recent,
            used: 0,
            measured,
            grown: 0,
            in_memory_only,
        }
    }

    /// An entry for a new run that begins with a copied history, which is in no memory but the store.
    pub fn copied(run: Run) -> Self {
        Self { snapshot_rows: 0, ..Self::new(run, BTreeMap::new(), None) }
    }

    /// Bytes of memory, roughly: what the run took when it was last measured, and all that was written
    /// for it since.
    const fn memory(&self) -> usize {
        self.measured + self.grown
    }

    /// A batch holds writes of the run.
    pub fn written(&mut self, batch: BatchNumber) {
        self.written_in = batch;
        self.first_written_in.get_or_insert(batch);
    }

    /// Whether the run is large and has to stay until the first writes for which it was loaded are durable.
    pub fn arrives(&self, durable: impl Fn(BatchNumber) -> bool) -> bool {
        self.memory() > LARGE && self.first_written_in.is_some_and(|batch| !durable(batch))
    }

    /// Measures the run again if much was written since, compared with its size.
    fn grow(&mut self, bytes: usize) {
        self.grown += bytes;
        if self.grown > MEASURED_AFTER + self.measured / 2 {
            let recent = self.recent.as_ref().map_or(0, |recent| recent.bytes);
            (self.measured, self.grown) = (self.run.memory() + recent, 0);
        }
    }

    /// Remembers the alarm for the timeout of the started workflow task, if there is one, and
    /// returns it.
    pub fn set_turn_alarm(&mut self, limits: &Limits) -> Option<(Timestamp, StartId)> {
        let turn = self.run.volatile.turn.as_ref();
        let alarm = turn.and_then(|turn| Some((self.run.turn_deadline(limits)?, turn.start)));
        self.turn_alarm = alarm;
        alarm
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
        self.recent = self.recent.take().and_then(|recent| recent.with(events));
    }

    /// Events for a worker: since the last completed task if it has the run in memory, else since the
    /// start; none if they are unknown or too large.
    pub fn recent(&self, in_memory: bool) -> Option<Vec<Bytes>> {
        let recent = self.recent.as_ref().filter(|recent| in_memory || recent.from_start);
        recent.map(|recent| recent.rows.clone())
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
    /// Bytes of memory of all runs.
    bytes: usize,
    in_memory_only: InMemoryOnly,
    /// Number of runs from which [`Self::shrink`] searches again for runs to evict.
    look_at: usize,
    last: LastUsed,
}

/// Whether the last run used stays, however large. Its next input often follows at once, and should not
/// have to load it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastUsed {
    /// It was used since [`Cache::rest`].
    #[default]
    Stays,
    /// It was not used since.
    Rests,
    /// It was not used between two calls.
    Leaves,
}

impl Cache {
    /// Returns a run and marks it as most recently used.
    pub fn get(&mut self, run: RunId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&run)?;
        self.last = LastUsed::Stays;
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
        self.last = LastUsed::Stays;
        self.clock += 1;
        let entry = Entry { used: self.clock, ..entry };
        self.bytes += entry.memory();
        self.in_memory_only += entry.in_memory_only;
        if let Some(old) = self.entries.insert(run, Box::new(entry)) {
            self.by_use.remove(&old.used);
            self.bytes -= old.memory();
            self.in_memory_only -= old.in_memory_only;
        }
        self.by_use.insert(self.clock, run);
    }

    /// Removes a run that no longer exists.
    pub fn remove(&mut self, run: RunId) {
        let Some(entry) = self.entries.remove(&run) else { return };
        self.by_use.remove(&entry.used);
        self.bytes -= entry.memory();
        self.in_memory_only -= entry.in_memory_only;
        if self.heads.get(&entry.run.workflow) == Some(&run) {
            self.heads.remove(&entry.run.workflow);
        }
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

    /// Bytes of memory of all runs.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of what the log of no run holds.
    pub const fn in_memory_only(&self) -> InMemoryOnly {
        self.in_memory_only
    }

    /// Call it now and then: the last run used stays only if it was used since the last call.
    pub const fn rest(&mut self) {
        self.last = match self.last {
            LastUsed::Stays => LastUsed::Rests,
            LastUsed::Rests | LastUsed::Leaves => LastUsed::Leaves,
        };
        self.look_at = 0;
    }

    /// A commit succeeded: runs that had to stay may now be evicted.
    pub fn allow_shrinking(&mut self) {
        self.look_at = 0;
    }

    /// A run has changed, and so many bytes were written for it.
    pub fn wrote(&mut self, run: RunId, bytes: usize) {
        if let Some(entry) = self.entries.get_mut(&run) {
            self.bytes -= entry.memory();
            entry.grow(bytes);
            self.bytes += entry.memory();
            self.in_memory_only -= entry.in_memory_only;
            entry.in_memory_only = InMemoryOnly::of(&entry.run);
            self.in_memory_only += entry.in_memory_only;
        }
    }

    /// Evicts runs until at most `max` are left and take at most `max_bytes`, or no other may be
    /// evicted. The last one used stays for a while, however large. If too many had to stay, the next search waits
    /// for a commit or for a quarter more runs: a search at each insert would take quadratic time.
    /// Returns the evicted runs with work in flight, whose volatile state the caller keeps.
    pub fn shrink(
        &mut self,
        max: usize,
        max_bytes: usize,
        durable: impl Fn(BatchNumber) -> bool,
    ) -> Vec<Box<Entry>> {
        let mut in_flight = Vec::new();
        let fits = self.entries.len() <= max && self.bytes <= max_bytes;
        if fits || self.entries.len() < self.look_at {
            return in_flight;
        }
        let mut excess = self.entries.len().saturating_sub(max);
        let last_used = self.by_use.iter().next_back();
        let last_used = last_used.filter(|_| max > 0 && self.last != LastUsed::Leaves);
        // If it is too large alone, it is no reason to evict the others: two busy runs would do so to
        // each other.
        let memory =
            last_used.and_then(|(_, run)| self.entries.get(run)).map(|entry| entry.memory());
        let alone = memory.filter(|bytes| *bytes > max_bytes).unwrap_or(0);
        let last_used = last_used.map(|(used, _)| *used);
        let mut excess_bytes = self.bytes.saturating_sub(alone).saturating_sub(max_bytes);
        let mut leaving = Vec::new();
        for idle in [true, false] {
            for (used, run) in &self.by_use {
                let too_many = idle && excess > 0;
                if (!too_many && excess_bytes == 0) || Some(*used) == last_used {
                    break;
                }
                let Some(entry) = self.entries.get(run) else { continue };
                if durable(entry.written_in) && entry.run.volatile.idle() == idle {
                    leaving.push((*used, *run));
                    excess = excess.saturating_sub(1);
                    excess_bytes = excess_bytes.saturating_sub(entry.memory());
                }
            }
        }
        for (used, run) in leaving {
            self.by_use.remove(&used);
            let Some(entry) = self.entries.remove(&run) else { continue };
            self.bytes -= entry.memory();
            self.in_memory_only -= entry.in_memory_only;
            if self.heads.get(&entry.run.workflow) == Some(&run) {
                self.heads.remove(&entry.run.workflow);
            }
            if !entry.run.volatile.idle() {
                in_flight.push(entry);
            }
        }
        let stayed = self.entries.len();
        let too_many = stayed > max || self.bytes > max_bytes;
        self.look_at = if too_many { stayed + stayed / 4 + 1 } else { 0 };
        in_flight
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use abide_core::{
        event::RunSpec,
        payload::Payload,
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
        Entry { written_in: 1, ..Entry::begun(run) }
    }

    #[test]
    fn runs_that_must_stay_are_not_looked_at_with_each_that_comes() {
        const RUNS: u128 = 1000;
        let mut cache = Cache::default();
        let looks = Cell::new(0);
        for number in 1..=RUNS {
            cache.insert(entry(number));
            cache.shrink(10, usize::MAX, |_| {
                looks.set(looks.get() + 1);
                false
            });
        }
        assert_eq!(cache.iter().count(), 1000, "nothing is durable");
        assert!(looks.get() < 8 * RUNS, "{} looks", looks.get());
        cache.allow_shrinking();
        cache.shrink(10, usize::MAX, |_| true);
        assert_eq!(cache.iter().count(), 10);
        cache.insert(entry(RUNS + 1));
        cache.shrink(10, usize::MAX, |_| true);
        assert_eq!(cache.iter().count(), 10, "one comes and one leaves");
    }

    #[test]
    fn a_busy_run_that_is_too_large_alone_does_not_evict_the_others() {
        let mut cache = Cache::default();
        for number in 1..=10 {
            cache.insert(entry(number));
        }
        let large = RunId::from_parts(Timestamp::EPOCH, 5);
        cache.get(large).expect("it is here").run.spec.input = vec![Payload::new(vec![0; 2 << 20])];
        cache.wrote(large, 2 << 20);
        cache.shrink(20, 1 << 20, |_| true);
        assert_eq!(cache.iter().count(), 10);
    }

    #[test]
    fn large_runs_leave_early_and_the_last_one_used_stays() {
        let mut cache = Cache::default();
        for number in 1..=10 {
            cache.insert(entry(number));
        }
        cache.shrink(10, 1 << 20, |_| true);
        assert_eq!(cache.iter().count(), 10, "they are small");
        let run = |number| RunId::from_parts(Timestamp::EPOCH, number);
        let spec = RunSpec { input: vec![Payload::new(vec![0; 2 << 20])], ..RunSpec::default() };
        for number in 3..=4 {
            cache.get(run(number)).expect("it is here").run.spec = spec.clone();
            cache.wrote(run(number), 2 << 20);
        }
        cache.shrink(10, 1 << 20, |_| true);
        let left: Vec<_> = cache.iter().map(|(run, _)| *run).collect();
        assert_eq!(left, [run(4)], "all but the last one used");
        cache.get(run(4)).expect("it is here").run.spec = RunSpec::default();
        cache.wrote(run(4), 2 << 20);
        cache.insert(entry(5));
        cache.shrink(10, 1 << 20, |_| true);
        assert_eq!(cache.iter().count(), 2, "it was measured again");
    }
}
