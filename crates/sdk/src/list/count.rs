//! Counts of runs and waits by group. The engine examines a bounded number of rows for them, and says
//! if there are more.

use std::time::Duration;

use abide_core::{
    ids::NamespaceId,
    tally::{Tallied, TallyGroup, WaitTally},
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
    pub(crate) fn of(tallied: Tallied) -> Self {
        let count = |(group, runs)| match group {
            TallyGroup::Field(value) => Some(FieldCount { value, runs }),
            TallyGroup::Waits { .. } | TallyGroup::Runs { .. } => None,
        };
        let groups = tallied.groups.into_iter().filter_map(count).collect();
        Self { groups, more: tallied.more }
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
pub struct WaitIntervals(WaitTally);

impl WaitIntervals {
    /// So many intervals of this length, the first of which begins at `from`.
    pub fn new(from: Timestamp, length: Duration, count: u32) -> Self {
        Self(WaitTally {
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
        self.0.kinds.insert(kind);
        self
    }

    pub(crate) fn in_namespace(&self, namespace: &NamespaceId) -> WaitTally {
        WaitTally { namespace: Some(namespace.clone()), ..self.0.clone() }
    }

    pub(crate) fn counts(&self, tallied: Tallied) -> WaitCounts {
        let starts: Vec<_> = self.0.starts().collect();
        let count = |(group, waits)| match group {
            TallyGroup::Waits { interval, kind } => {
                let from = *starts.get(usize::try_from(interval).ok()?)?;
                Some(WaitCount { from, kind, waits })
            }
            TallyGroup::Runs { .. } | TallyGroup::Field(_) => None,
        };
        let whole = usize::try_from(tallied.whole).unwrap_or(usize::MAX);
        let end = starts.get(whole).copied().unwrap_or_else(|| self.0.end());
        WaitCounts {
            groups: tallied.groups.into_iter().filter_map(count).collect(),
            complete_until: tallied.more.then_some(end),
        }
    }
}

impl RunCounts {
    pub(crate) fn of(tallied: Tallied) -> Self {
        let count = |(group, runs)| match group {
            TallyGroup::Runs { status, workflow_type } => {
                Some(RunCount { status, workflow_type, runs })
            }
            TallyGroup::Waits { .. } | TallyGroup::Field(_) => None,
        };
        let groups = tallied.groups.into_iter().filter_map(count).collect();
        Self { groups, more: tallied.more }
    }
}
