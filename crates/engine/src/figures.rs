//! Metrics of an engine. A counter is one relaxed atomic addition at the place of the event, and is
//! read on request; no decision depends on it.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use abide_store::{Batch, CommitError, ReadError, Write};

/// Bucket bounds of the commit latency histogram: from a fast disk to a database in trouble.
const COMMIT_BOUNDS: [Duration; 12] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Gauges of an engine, and its counters since it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Shards that this node serves.
    pub shards: usize,
    /// The engine may answer for its shards: it is alone, or its lease is valid.
    pub joined: bool,
    /// How much longer the lease is valid without a renewal; none if there is no lease.
    pub lease_left: Option<Duration>,
    /// Other nodes of the cluster that are not gone.
    pub nodes: usize,
    /// Other nodes to which there is a link.
    pub links: usize,
    /// Workers connected to this node.
    pub workers: usize,
    /// Workflow tasks that wait in memory for a worker.
    pub tasks_waiting: usize,
    /// Activities that wait in memory for a worker.
    pub activities_waiting: usize,
    /// Tasks, queries and activities delivered to workers of this node.
    pub given: u64,
    /// Calls forwarded to other nodes.
    pub forwarded: u64,
    /// Timers, deadlines and retries that fell due.
    pub timers_fired: u64,
    /// How often a thread had to wait for the node machine, because another one used it.
    pub node_waits: u64,
    /// Committed log rows of runs.
    pub transitions: u64,
    /// The commit latency histogram.
    pub commits: CommitTimes,
    /// Number of faults of the store, by kind.
    pub faults: Vec<(StoreFault, u64)>,
    /// Shards that are read-only, because the store accepts no writes.
    pub read_only: usize,
    /// Runs set aside because the store refused their writes twice.
    pub set_aside: usize,
    /// Number of failed attempts to decode data of a run.
    pub unreadable: u64,
    /// Children whose first writes the store refused, and effects that no run can have caused.
    pub refused_effects: u64,
    /// Number of times that the clock was set.
    pub clock_steps: u64,
}

/// Latency histogram of answered commits, successful or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitTimes {
    /// Cumulative number of commits that took no longer than each bound.
    pub within: Vec<(Duration, u64)>,
    pub count: u64,
    /// Sum of all latencies.
    pub total: Duration,
}

/// Kinds of store faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreFault {
    /// The epoch was stale: another owner has claimed the shard.
    Stale,
    /// A batch contradicted what is stored.
    Refused,
    /// Nothing was written; a retry may succeed.
    Unavailable,
    /// Nothing was written because the disk is full.
    Full,
    /// The outcome of the commit is unknown.
    Unknown,
    /// The store has stopped for good.
    Stopped,
    /// A read failed temporarily.
    Read,
    /// Stored data is damaged.
    Damaged,
    /// The rows of nodes could not be read or written.
    Registry,
    /// Background maintenance of the store failed, without harm to commits. The store counts it.
    Upkeep,
}

impl StoreFault {
    const ALL: [Self; 9] = [
        Self::Stale,
        Self::Refused,
        Self::Unavailable,
        Self::Full,
        Self::Unknown,
        Self::Stopped,
        Self::Read,
        Self::Damaged,
        Self::Registry,
    ];

    pub(crate) const fn of(failed: &CommitError) -> Self {
        match failed {
            CommitError::Stale { .. } => Self::Stale,
            CommitError::Refused(_) => Self::Refused,
            CommitError::Unavailable(_) => Self::Unavailable,
            CommitError::Full(_) => Self::Full,
            CommitError::Unknown(_) => Self::Unknown,
            CommitError::Stopped(_) => Self::Stopped,
        }
    }

    pub(crate) const fn of_read(failed: &ReadError) -> Self {
        match failed {
            ReadError::Unavailable(_) => Self::Read,
            ReadError::Corrupt(_) => Self::Damaged,
        }
    }
}

/// Counters that the parts of an engine increment.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) given: Counter,
    pub(crate) forwarded: Counter,
    pub(crate) timers_fired: Counter,
    pub(crate) node_waits: Counter,
    pub(crate) transitions: Counter,
    pub(crate) unreadable: Counter,
    pub(crate) refused_effects: Counter,
    pub(crate) clock_steps: Counter,
    /// Commits by the first bound that they met; the last bucket is above all bounds.
    commits: [Counter; COMMIT_BOUNDS.len() + 1],
    commit_nanos: Counter,
    faults: [Counter; StoreFault::ALL.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Counters {
    /// The store answered a batch with this many transitions.
    pub(crate) fn committed(
        &self,
        took: Duration,
        transitions: u64,
        answer: &Result<(), CommitError>,
    ) {
        let bucket = COMMIT_BOUNDS.partition_point(|bound| *bound < took);
        self.commits[bucket].add(1);
        self.commit_nanos.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        match answer {
            Ok(()) => self.transitions.add(transitions),
            Err(failed) => self.fault(StoreFault::of(failed)),
        }
    }

    /// Counts a fault of the store.
    pub(crate) fn fault(&self, fault: StoreFault) {
        let counted = StoreFault::ALL.iter().zip(&self.faults).find(|(known, _)| **known == fault);
        if let Some((_, counter)) = counted {
            counter.add(1);
        }
    }

    /// Number of faults of the store, by kind.
    pub(crate) fn faults(&self) -> Vec<(StoreFault, u64)> {
        StoreFault::ALL.into_iter().zip(self.faults.iter().map(Counter::get)).collect()
    }

    /// The commit latency histogram.
    pub(crate) fn commit_times(&self) -> CommitTimes {
        let mut count = 0;
        let mut sums = self.commits.iter().map(|bucket| {
            count += bucket.get();
            count
        });
        let within = COMMIT_BOUNDS.into_iter().zip(sums.by_ref()).collect();
        sums.for_each(drop);
        CommitTimes { within, count, total: Duration::from_nanos(self.commit_nanos.get()) }
    }
}

/// Number of transitions (log rows) in a batch.
pub(crate) fn transitions(batch: &Batch) -> u64 {
    let appended = batch.writes.iter().filter(|write| matches!(write, Write::AppendLog(_)));
    u64::try_from(appended.count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_by_how_long_they_took() {
        let counters = Counters::default();
        for millis in [1, 3, 30_000] {
            counters.committed(Duration::from_millis(millis), 2, &Ok(()));
        }
        let lost = Err(CommitError::Unknown("the connection was lost".into()));
        counters.committed(Duration::from_millis(100), 2, &lost);
        let times = counters.commit_times();
        assert_eq!((times.count, times.total), (4, Duration::from_millis(30_104)));
        let within = |bound| times.within.iter().find(|(known, _)| *known == bound).expect("it").1;
        assert_eq!(within(Duration::from_micros(500)), 0);
        assert_eq!(within(Duration::from_millis(1)), 1);
        assert_eq!(within(Duration::from_millis(5)), 2);
        assert_eq!(within(Duration::from_millis(100)), 3);
        assert_eq!(within(Duration::from_secs(5)), 3);
        assert_eq!(counters.transitions.get(), 6, "only what is written counts");
        let unknown =
            counters.faults().into_iter().find(|(fault, _)| *fault == StoreFault::Unknown);
        assert_eq!(unknown, Some((StoreFault::Unknown, 1)));
    }
}
