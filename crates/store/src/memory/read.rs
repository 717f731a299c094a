//! Reads, by plain scans in key order; only the runs of a workflow have an index.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ops::Bound::{Excluded, Included, Unbounded},
};

use abide_core::{
    ids::{RunId, ShardId, WorkflowKey},
    tally::{TallyWaits, WaitTally},
    time::Timestamp,
};

use crate::{
    WaitFilter, WaitPosition, WorkflowRuns,
    memory::Tables,
    rows::{
        DueKey, DueRow, InboxRow, Loaded, LogLimit, LogRow, OutboxRow, RegistryRow, RunKey, RunRow,
        ShardRow, Swept, TaskKey, TaskRow, WaitRow,
    },
};

impl Tables {
    /// Owner and epoch of the shard.
    pub fn shard(&self, shard: ShardId) -> ShardRow {
        let unclaimed = || ShardRow { shard, epoch: 0, owner: String::new() };
        self.shards.get(&shard).cloned().unwrap_or_else(unclaimed)
    }

    /// Retained runs of a workflow, highest ordinal first.
    pub fn runs_of(&self, shard: ShardId, workflow: &WorkflowRuns, limit: usize) -> Vec<RunKey> {
        let key = WorkflowKey {
            namespace: workflow.namespace.clone(),
            workflow: workflow.workflow.clone(),
        };
        let runs = self.runs_of.get(&(shard, key)).into_iter().flatten();
        let mut rows: Vec<_> = runs
            .filter_map(|run| self.runs.get(&(shard, *run)))
            .filter(|row| workflow.before.is_none_or(|before| row.ordinal < before))
            .map(RunKey::of)
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.ordinal, row.run)));
        rows.truncate(limit);
        rows
    }

    /// Latest snapshot of the run and the first page of its log after it.
    pub fn load(&self, shard: ShardId, run: RunId, limit: LogLimit) -> Loaded {
        let snapshot = self.snapshots.get(&(shard, run)).cloned();
        let after = snapshot.as_ref().map_or(0, |row| row.sequence);
        let row_outdated = self.runs.get(&(shard, run)).is_some_and(|row| row.queue.is_empty());
        Loaded { snapshot, log: self.log(shard, run, after, limit), row_outdated }
    }

    /// Rows of a run's log after sequence `after`.
    pub fn log(&self, shard: ShardId, run: RunId, after: u64, limit: LogLimit) -> Vec<LogRow> {
        let rows =
            self.log.range((Excluded((shard, run, after)), Included((shard, run, u64::MAX))));
        let Ok(page) = limit.page(rows.map(|(_, row)| Ok::<_, Infallible>(row.clone())));
        page
    }

    /// Tasks of a shard, in key order.
    pub fn tasks(&self, shard: ShardId, after: Option<&TaskKey>, limit: usize) -> Vec<TaskRow> {
        rows_of(&self.tasks, shard, after.cloned())
            .map(|(_, row)| row.clone())
            .take(limit)
            .collect()
    }

    /// Entries of the due index up to and including `until`, ordered by due time.
    pub fn due(
        &self,
        shard: ShardId,
        after: Option<&DueKey>,
        until: Timestamp,
        limit: usize,
    ) -> Vec<DueRow> {
        rows_of(&self.due, shard, after.cloned())
            .take_while(|(key, _)| key.due <= until)
            .map(|(_, row)| row.clone())
            .take(limit)
            .collect()
    }

    /// Waits of all shards, ordered by [`WaitPosition`].
    pub fn waits(&self, filter: &WaitFilter, limit: usize) -> Vec<(ShardId, WaitRow)> {
        let mut rows: Vec<_> = self
            .waits
            .iter()
            .map(|((shard, _, _), row)| (WaitPosition::of(*shard, row), row))
            .filter(|(position, row)| filter.matches(position, row))
            .collect();
        rows.sort_by(|(left, _), (right, _)| left.cmp(right));
        rows.into_iter().take(limit).map(|(at, row)| (at.shard, row.clone())).collect()
    }

    /// Undelivered effects of a shard, ordered by run and number.
    pub fn outbox(
        &self,
        shard: ShardId,
        after: Option<(RunId, u64)>,
        limit: usize,
    ) -> Vec<OutboxRow> {
        let first = Included((shard, RunId::MIN, 0));
        let start = after.map_or(first, |(run, number)| Excluded((shard, run, number)));
        self.outbox
            .range((start, Unbounded))
            .take_while(|((of, _, _), _)| *of == shard)
            .map(|(_, row)| row.clone())
            .take(limit)
            .collect()
    }

    /// Result of an effect, if it has been applied.
    pub fn inbox(&self, shard: ShardId, source: RunId, number: u64) -> Option<InboxRow> {
        self.inbox.get(&(shard, source, number)).cloned()
    }

    /// Counts waits by interval and kind among the `rows` that end first.
    pub fn tally_waits(&self, asked: &TallyWaits, rows: usize) -> WaitTally {
        let ending = self.waits.values().filter(|row| asked.interval_of(row.until).is_some());
        let mut ending: Vec<_> = ending.collect();
        ending.sort_by_key(|row| row.until);
        let cut = ending.get(rows).map(|row| row.until);
        let whole = cut.map_or(asked.intervals, |cut| asked.whole_before(cut));
        let mut tally = WaitTally { more: cut.is_some(), whole, ..WaitTally::default() };
        for group in ending.into_iter().take(rows).filter_map(|row| asked.group_of(row)) {
            tally.add(group, 1);
        }
        tally
    }

    /// Examines a page of open runs for those that nothing would resume.
    pub fn stranded(&self, shard: ShardId, after: Option<RunId>, limit: usize) -> Swept {
        let open = self.runs_of_shard(shard, after).filter(|row| row.status.is_open());
        let open: Vec<_> = open.take(limit).collect();
        let next = open.last().map(|row| row.run).filter(|_| open.len() == limit);
        let idle = open.into_iter().map(|row| row.run).filter(|run| !self.active(shard, *run));
        let (quiet, stranded) = idle.partition(|run| self.resumable(shard, *run));
        Swept { stranded, quiet, next }
    }

    /// Registry rows whose name begins with `prefix`, ordered by name.
    pub fn registry(&self, prefix: &str) -> Vec<RegistryRow> {
        self.registry.values().filter(|row| row.name.starts_with(prefix)).cloned().collect()
    }

    fn runs_of_shard(&self, shard: ShardId, after: Option<RunId>) -> impl Iterator<Item = &RunRow> {
        rows_of(&self.runs, shard, after).map(|(_, row)| row)
    }

    /// Whether the run has a task, or an effect on another workflow.
    fn active(&self, shard: ShardId, run: RunId) -> bool {
        let here = (shard, run);
        self.tasks.keys().any(|(of, key)| (*of, key.run) == here)
            || self.outbox.keys().any(|(of, of_run, _)| (*of, *of_run) == here)
    }

    /// Whether a wait or a due time resumes the run.
    fn resumable(&self, shard: ShardId, run: RunId) -> bool {
        let here = (shard, run);
        let mut due = self.due.keys().filter(|(of, key)| (*of, key.run) == here);
        let waits = self.waits.iter().filter(|((of, of_run, _), _)| (*of, *of_run) == here);
        let mut waits = waits.map(|(_, row)| row).peekable();
        (waits.peek().is_none() && due.next().is_some())
            || (waits.peek().is_some() && waits.all(|wait| self.comes(shard, wait)))
    }

    /// Whether the wait has no deadline, or its deadline is in the due index.
    fn comes(&self, shard: ShardId, wait: &WaitRow) -> bool {
        let mut due = self.due.keys().filter(|(of, key)| (*of, key.run) == (shard, wait.run));
        wait.until.is_never() || due.any(|(_, key)| key.due == wait.until)
    }
}

/// Rows of a shard after a key, in order.
fn rows_of<K: Ord, R>(
    table: &BTreeMap<(ShardId, K), R>,
    shard: ShardId,
    after: Option<K>,
) -> impl Iterator<Item = (&K, &R)> {
    let start = after.map_or(Unbounded, |key| Excluded((shard, key)));
    let from_here = table.range((start, Unbounded)).skip_while(move |((of, _), _)| *of != shard);
    from_here.take_while(move |((of, _), _)| *of == shard).map(|((_, key), row)| (key, row))
}
