//! Counts of runs and waits by group. The engine examines a bounded number of rows for them, and says
//! if there are more.

use std::time::Duration;

use abide_core::{
    ids::NamespaceId,
    tally::{RunGroup, RunTally, TallyWaits, WaitGroup, WaitTally},
};

use super::{RunStatus, WaitKind};
use crate::Timestamp;

/// How many runs there are of each status and type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCounts {
    /// The groups that have any runs.
    pub groups: Vec<RunCount>,
    /// There are more runs than were examined, so that only the newest are counted.
    pub more: bool,
}

/// How many runs of one type have the same status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCount {
    /// The status of the runs.
    pub status: RunStatus,
    /// The type name of their workflows.
    pub workflow_type: String,
    /// How many runs there are.
    pub runs: u64,
}

/// How many runs have each value of the field that a query names with `GROUP BY`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldCounts {
    /// The values that any runs have.
    pub groups: Vec<FieldCount>,
    /// There are more runs than were examined, so that only some are counted.
    pub more: bool,
}

/// How many runs have one value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldCount {
    /// The value as text; none for runs that have no value.
    pub value: Option<String>,
    /// How many runs there are.
    pub runs: u64,
}

impl FieldCounts {
    pub(crate) fn of(tally: RunTally) -> Self {
        let count = |(group, runs)| match group {
            RunGroup::Value(value) => Some(FieldCount { value, runs }),
            RunGroup::Type { .. } => None,
        };
        Self { groups: tally.groups.into_iter().filter_map(count).collect(), more: tally.more }
    }
}

/// How many waits of each kind end in each interval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitCounts {
    /// The groups that have any waits, the earliest first.
    pub groups: Vec<WaitCount>,
    /// There are more waits than were examined: the counts are complete up to this time only.
    pub complete_until: Option<Timestamp>,
}

/// How many waits of one kind end in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitCount {
    /// When the interval begins.
    pub from: Timestamp,
    /// What is waited for.
    pub kind: WaitKind,
    /// How many waits there are.
    pub waits: u64,
}

/// The intervals in which the ends of waits are counted, and which waits. Those without an end are never
/// counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "nothing is counted until it is passed to a client"]
pub struct WaitIntervals(TallyWaits);

impl WaitIntervals {
    /// So many intervals of this length, the first of which begins at `from`.
    pub fn new(from: Timestamp, length: Duration, count: u32) -> Self {
        Self(TallyWaits {
            namespace: None,
            known: Default::default(),
            workflow_type: None,
            kinds: Default::default(),
            from,
            interval: length,
            intervals: count,
        })
    }

    /// Counts only waits of workflows of this type.
    pub fn workflow_type(mut self, name: impl Into<String>) -> Self {
        self.0.workflow_type = Some(name.into());
        self
    }

    /// Counts only waits of this kind. Call it again for several.
    pub fn kind(mut self, kind: WaitKind) -> Self {
        self.0.kinds.insert(kind.into());
        self
    }

    pub(crate) fn in_namespace(&self, namespace: &NamespaceId) -> TallyWaits {
        TallyWaits { namespace: Some(namespace.clone()), ..self.0.clone() }
    }

    pub(crate) fn counts(&self, tally: WaitTally) -> WaitCounts {
        let starts: Vec<_> = self.0.starts().collect();
        let start = |interval| starts.get(usize::try_from(interval).ok()?).copied();
        let count = |(group, waits): (WaitGroup, u64)| {
            Some(WaitCount { from: start(group.interval)?, kind: group.kind.into(), waits })
        };
        let end = start(tally.whole).unwrap_or_else(|| self.0.end());
        WaitCounts {
            groups: tally.groups.into_iter().filter_map(count).collect(),
            complete_until: tally.more.then_some(end),
        }
    }
}

impl RunCounts {
    pub(crate) fn of(tally: RunTally) -> Self {
        let count = |(group, runs)| match group {
            RunGroup::Type { status, workflow_type } => {
                Some(RunCount { status: status.into(), workflow_type, runs })
            }
            RunGroup::Value(_) => None,
        };
        Self { groups: tally.groups.into_iter().filter_map(count).collect(), more: tally.more }
    }
}
