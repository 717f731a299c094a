//! Tallies: how many waits end when, and how many runs stand how. A store examines a bounded number
//! of rows for a tally, whether they pass its filter or not, and says so if there are more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    ids::NamespaceId,
    limits::{InvalidField, Limits},
    list::{RunFilter, RunRow, RunStatus, WaitKind, WaitRow},
    search::Value,
    time::Timestamp,
};

/// Counts runs by status and type, or by the field that their query names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyRuns {
    pub filter: RunFilter,
}

/// Counts waits by kind and by the interval in which they end. Those without an end never are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyWaits {
    pub namespace: Option<NamespaceId>,
    /// Only these namespaces, which an engine knows; none means all.
    pub known: BTreeSet<NamespaceId>,
    /// Only waits of workflows of this type.
    pub workflow_type: Option<String>,
    /// Only these kinds; none means all.
    pub kinds: BTreeSet<WaitKind>,
    /// Only waits that end at or after this: where the first interval begins.
    pub from: Timestamp,
    /// How long an interval is.
    pub interval: Duration,
    /// How many intervals there are.
    pub intervals: u32,
}

/// What the runs of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunGroup {
    /// Type and status.
    Type { status: RunStatus, workflow_type: String },
    /// The value in the field of the query's GROUP BY, as text; `None` if they have none.
    Value(Option<String>),
}

/// Waits of one kind that end in one interval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitGroup {
    /// Which interval; the first is zero.
    pub interval: u32,
    pub kind: WaitKind,
}

/// How many runs there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTally {
    /// Groups that have any.
    pub groups: BTreeMap<RunGroup, u64>,
    /// There are rows that were not examined, so the counts are lower bounds.
    pub more: bool,
}

/// How many waits there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitTally {
    /// Groups that have any.
    pub groups: BTreeMap<WaitGroup, u64>,
    /// There are rows that were not examined, so the counts are lower bounds.
    pub more: bool,
    /// How many intervals from the first on are counted completely: all of them unless there is more.
    pub whole: u32,
}

impl RunTally {
    /// Adds runs to their group.
    pub fn add(&mut self, group: RunGroup, runs: u64) {
        if runs > 0 {
            *self.groups.entry(group).or_default() += runs;
        }
    }

    /// Keeps so many groups.
    pub fn bound(&mut self, groups: usize) {
        while self.groups.len() > groups {
            self.groups.pop_last();
            self.more = true;
        }
    }
}

impl WaitTally {
    /// Adds waits to their group.
    pub fn add(&mut self, group: WaitGroup, waits: u64) {
        if waits > 0 {
            *self.groups.entry(group).or_default() += waits;
        }
    }
}

impl TallyWaits {
    /// Where the last interval ends.
    pub fn end(&self) -> Timestamp {
        self.from.saturating_add(self.interval.saturating_mul(self.intervals))
    }

    /// The interval in which a wait with this end falls, if any.
    pub fn interval_of(&self, until: Timestamp) -> Option<u32> {
        let inside = until >= self.from && until < self.end() && !until.is_never();
        inside.then(|| self.whole_before(until))
    }

    /// How many intervals are over at this time.
    pub fn whole_before(&self, at: Timestamp) -> u32 {
        let passed = at.saturating_since(self.from).as_nanos() / self.interval.as_nanos().max(1);
        u32::try_from(passed).unwrap_or(u32::MAX).min(self.intervals)
    }

    /// When each interval begins.
    pub fn starts(&self) -> impl Iterator<Item = Timestamp> {
        let start = |interval| self.from.saturating_add(self.interval.saturating_mul(interval));
        (0..self.intervals).map(start)
    }

    /// Whether a row passes the filter, whenever it ends.
    pub fn passes(&self, row: &WaitRow) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| row.namespace == *namespace)
            && (self.known.is_empty() || self.known.contains(&row.namespace))
            && self.workflow_type.as_ref().is_none_or(|name| row.workflow_type == *name)
            && (self.kinds.is_empty() || self.kinds.contains(&row.kind))
    }

    /// The group of a row, if it is counted.
    pub fn group_of(&self, row: &WaitRow) -> Option<WaitGroup> {
        let interval = self.interval_of(row.until).filter(|_| self.passes(row))?;
        Some(WaitGroup { interval, kind: row.kind })
    }

    /// Refuses what would be no tally, or one of more groups than the limit.
    pub fn check(&self, limits: &Limits) -> Result<(), InvalidField> {
        if self.interval.is_zero() {
            return Err(InvalidField::new("interval", "is zero; set the length of an interval"));
        }
        let most = limits.tally_groups / WaitKind::ALL.len();
        match usize::try_from(self.intervals) {
            Ok(intervals) if (1..=most).contains(&intervals) => Ok(()),
            _ => {
                let problem =
                    format!("is {}; the limit is {most} and the minimum is 1", self.intervals);
                Err(InvalidField::new("intervals", problem))
            }
        }
    }
}

impl RunGroup {
    /// The group of a run.
    pub fn of(row: &RunRow) -> Self {
        Self::Type { status: row.status, workflow_type: row.workflow_type.clone() }
    }

    /// The group of runs that have this value.
    pub fn of_value(value: Option<&Value>) -> Self {
        Self::Value(value.map(Value::plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::new(seconds, 0).expect("a time")
    }

    fn tally() -> TallyWaits {
        TallyWaits {
            namespace: None,
            known: BTreeSet::new(),
            workflow_type: None,
            kinds: BTreeSet::new(),
            from: at(100),
            interval: Duration::from_secs(10),
            intervals: 3,
        }
    }

    #[test]
    fn a_wait_falls_into_the_interval_that_its_end_begins_or_is_in() {
        let expected = [(99, None), (100, Some(0)), (109, Some(0)), (110, Some(1))];
        for (seconds, expected) in expected.into_iter().chain([(129, Some(2)), (130, None)]) {
            assert_eq!(tally().interval_of(at(seconds)), expected, "{seconds}");
        }
        let endless = TallyWaits { interval: Duration::MAX, ..tally() };
        assert_eq!(endless.interval_of(Timestamp::NEVER), None);
    }

    #[test]
    fn an_interval_is_whole_when_it_is_over() {
        for (seconds, whole) in [(50, 0), (109, 0), (110, 1), (125, 2), (130, 3), (900, 3)] {
            assert_eq!(tally().whole_before(at(seconds)), whole, "{seconds}");
        }
        assert!(tally().starts().eq([at(100), at(110), at(120)]));
    }

    #[test]
    fn groups_that_are_left_out_are_said() {
        let mut tally = RunTally::default();
        for workflow_type in ["A", "B", "C"].map(str::to_owned) {
            tally.add(RunGroup::Type { status: RunStatus::Running, workflow_type }, 1);
        }
        tally.bound(3);
        assert_eq!((tally.groups.len(), tally.more), (3, false));
        tally.bound(2);
        assert_eq!((tally.groups.len(), tally.more), (2, true));
    }

    #[test]
    fn intervals_are_bounded() {
        let limits = Limits::default();
        assert_eq!(tally().check(&limits), Ok(()));
        for intervals in [0, 1_001] {
            let refused = TallyWaits { intervals, ..tally() }.check(&limits).expect_err("refused");
            assert_eq!(refused.field, "intervals");
        }
        let none = TallyWaits { interval: Duration::ZERO, ..tally() };
        assert_eq!(none.check(&limits).expect_err("refused").field, "interval");
    }
}
