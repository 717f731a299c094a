//! The indexes that could find the runs of a list, and by which part of its condition.

use abide_core::{
    list::{RunFilter, RunStatus, WaitKind},
    search::{
        Check, Comparison, Condition, Field, Order, OrderField, Span, SystemField, Test, Value,
    },
};

use super::{
    clause::{Bound, Clause},
    condition::{entries, of_wait, spans},
};

/// A table that has an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The runs.
    Runs,
    /// Entries of their search attributes.
    Attributes,
    /// What they wait for.
    Waits,
}

/// An index with the part of a condition by which it finds runs. Its rows are called `s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The table of the index.
    pub table: Table,
    /// Name of the index; none for the primary key.
    pub index: Option<&'static str>,
    /// What the index finds.
    pub by: Clause,
    /// What the index can check besides, without reading the runs.
    pub also: Option<Clause>,
    /// The index has the order of the list.
    pub ordered: bool,
    /// What it finds is read at once, however much it is.
    pub at_once: bool,
}

impl Source {
    fn new(index: &'static str, by: Clause) -> Self {
        let (table, index) = (Table::Runs, Some(index));
        Self { table, index, by, also: None, ordered: false, at_once: false }
    }

    fn ordered(self, ordered: bool) -> Self {
        Self { ordered, ..self }
    }
}

/// Everything that the filter says, except for namespaces and the place of the page, as one condition.
pub(super) fn whole(filter: &RunFilter) -> Condition {
    let test = |field, check| Condition::of(Test { field: Field::System(field), check });
    let equal = |value| Check::Compare(Comparison::Equal, value);
    let mut parts = Vec::new();
    if let Some(workflow) = &filter.workflow {
        parts.push(test(SystemField::WorkflowId, equal(Value::Text(workflow.to_string()))));
    }
    if let Some(name) = &filter.workflow_type {
        parts.push(test(SystemField::WorkflowType, equal(Value::Text(name.clone()))));
    }
    if !filter.statuses.is_empty() {
        let statuses = filter.statuses.iter().copied().map(Value::Status);
        parts.push(test(SystemField::ExecutionStatus, Check::OneOf(statuses.collect())));
    }
    if let Some(from) = filter.started_from {
        let check = Check::Compare(Comparison::AtLeast, Value::Time(from));
        parts.push(test(SystemField::StartTime, check));
    }
    if let Some(before) = filter.started_before {
        let check = Check::Compare(Comparison::Less, Value::Time(before));
        parts.push(test(SystemField::StartTime, check));
    }
    parts.extend(filter.search.as_ref().map(|query| query.condition.clone()));
    Condition::all(parts)
}

/// The sources that could serve, the most selective first. The last one finds all runs of the list in its
/// order.
pub fn sources(filter: &RunFilter) -> Vec<Source> {
    let condition = whole(filter);
    let parts = Parts { filter, conjuncts: condition.conjuncts(), order: filter.order() };
    let mut found: Vec<_> = parts.conjuncts.iter().filter_map(|part| parts.source(part)).collect();
    found.extend(parts.open());
    found.sort_by_key(|(rank, _)| *rank);
    // Each of them is tried, which costs as much as reading a page.
    found.truncate(SOURCES_TRIED);
    found.into_iter().map(|(_, source)| source).chain([parts.all()]).collect()
}

const SOURCES_TRIED: usize = 5;

/// What must hold all together.
struct Parts<'a> {
    filter: &'a RunFilter,
    conjuncts: &'a [Condition],
    order: Order,
}

/// How selective sources of a kind are usually: the lower, the fewer runs.
type Rank = u8;

impl Parts<'_> {
    fn by_start(&self) -> bool {
        self.order.by == OrderField::StartTime
    }

    fn source(&self, part: &Condition) -> Option<(Rank, Source)> {
        match part {
            Condition::Test(Test { field: Field::System(field), check }) => {
                self.of_field(*field, check)
            }
            Condition::Test(Test { field: Field::Attribute(name, kind), check }) => {
                let namespace = self.filter.namespace.as_ref()?;
                let by = Clause::with(
                    "s.namespace = ? AND s.name = ?",
                    [Bound::Text(namespace.to_string()), Bound::Text(name.clone())],
                );
                let by = by.and(entries("s.value", check, *kind));
                let source = Source::new("attributes_by_value", self.bounded(by));
                let source = Source { table: Table::Attributes, ..source };
                Some((2, source.ordered(exact(check) && self.by_start())))
            }
            Condition::Wait(tests) => self.of_waits(tests).map(|source| (4, source)),
            Condition::All(_) | Condition::Any(_) | Condition::Not(_) => None,
        }
    }

    fn of_field(&self, field: SystemField, check: &Check) -> Option<(Rank, Source)> {
        let ordered = exact(check) && self.by_start();
        let known = *check == Check::Known;
        match field {
            SystemField::RunId if !known => {
                let source = Source::new("", spans("s.run", check));
                Some((0, Source { index: None, ..source }))
            }
            SystemField::WorkflowId if !known => {
                let namespace = self.filter.namespace.as_ref()?;
                let by = Clause::with("s.namespace = ?", [Bound::Text(namespace.to_string())]);
                let source = Source::new("runs_by_workflow", by.and(spans("s.workflow", check)));
                let at_once = self.filter.workflow.is_some();
                Some((1, Source { at_once, ..source }))
            }
            SystemField::ParentWorkflowId => {
                let by = Clause::new("s.parent_workflow IS NOT NULL");
                let by = self.bounded(by.and(spans("s.parent_workflow", check)));
                Some((3, Source::new("runs_by_parent", by).ordered(ordered)))
            }
            SystemField::ExecutionStatus | SystemField::Blocked => {
                let statuses = statuses(field, check);
                let exact = statuses.len() == 1 && self.by_start();
                let by = self.bounded(rare(&statuses)?);
                Some((5, Source::new("runs_by_status", by).ordered(exact)))
            }
            SystemField::CloseTime if self.by_start() => {
                let by = Clause::new("s.closed_at IS NOT NULL");
                Some((6, Source::new("runs_by_close", by.and(spans("s.closed_at", check)))))
            }
            SystemField::WorkflowType if !known => {
                let by = self.bounded(spans("s.workflow_type", check));
                Some((8, Source::new("runs_by_type", by).ordered(ordered)))
            }
            SystemField::RunId
            | SystemField::WorkflowId
            | SystemField::WorkflowType
            | SystemField::StartTime
            | SystemField::CloseTime
            | SystemField::TaskQueue
            | SystemField::ParentRunId
            | SystemField::WaitKind
            | SystemField::WaitName
            | SystemField::WaitUntil => None,
        }
    }

    /// Signals, conditions and approvals have an index by kind and name.
    fn of_waits(&self, tests: &[Test]) -> Option<Source> {
        let indexed = [WaitKind::Signal, WaitKind::Condition, WaitKind::Approval];
        let of_kind = tests.iter().any(|test| {
            let kinds = test.check.spans();
            let mut kinds = kinds.iter().map(|span| match span {
                Span::Exactly(Value::Wait(kind)) => indexed.contains(kind),
                Span::Exactly(_) | Span::Within(..) => false,
            });
            test.field == Field::System(SystemField::WaitKind) && kinds.all(|indexed| indexed)
        });
        if !of_kind {
            return None;
        }
        // In the words of the index definition, so that a database knows that it may use the index.
        let by = Clause::new("s.kind IN (2, 3, 6)");
        let by = tests.iter().fold(by, |by, test| by.and(of_wait("s", test)));
        Some(Source { table: Table::Waits, ..Source::new("waits_by_name", by) })
    }

    /// Open runs have an index of their own. Runs that wait are open.
    fn open(&self) -> Option<(Rank, Source)> {
        let tests = |of: SystemField| {
            self.conjuncts.iter().find_map(move |part| match part {
                Condition::Test(Test { field: Field::System(field), check }) if *field == of => {
                    Some(check)
                }
                Condition::Test(_)
                | Condition::All(_)
                | Condition::Any(_)
                | Condition::Not(_)
                | Condition::Wait(_) => None,
            })
        };
        let statuses = tests(SystemField::ExecutionStatus)
            .map(|it| statuses(SystemField::ExecutionStatus, it));
        let open = statuses.as_ref().is_some_and(|them| them.iter().all(|it| it.is_open()));
        let waits = self.conjuncts.iter().any(|part| matches!(part, Condition::Wait(_)));
        if !open && !waits {
            return None;
        }
        let by = self.bounded(Clause::new("s.status <= 3"));
        let source = Source::new("runs_open_by_start", by).ordered(self.by_start());
        let status = statuses.filter(|_| open).map(|them| within_statuses(&them));
        let of_type = tests(SystemField::WorkflowType).map(|check| spans("s.workflow_type", check));
        let also = status.into_iter().chain(of_type).reduce(Clause::and);
        Some((7, Source { also, ..source }))
    }

    /// All runs of the list.
    fn all(&self) -> Source {
        match self.order.by {
            OrderField::StartTime => {
                Source::new("runs_by_start", self.bounded(Clause::new("TRUE"))).ordered(true)
            }
            OrderField::CloseTime => {
                let closed = Clause::new("s.closed_at IS NOT NULL");
                let by = self.bounds(SystemField::CloseTime, "s.closed_at", closed);
                Source::new("runs_by_close", by).ordered(true)
            }
        }
    }

    /// Adds what is required of the start time, which ends a walk.
    fn bounded(&self, by: Clause) -> Clause {
        self.bounds(SystemField::StartTime, "s.started_at", by)
    }

    fn bounds(&self, of: SystemField, column: &str, by: Clause) -> Clause {
        let checks = self.conjuncts.iter().filter_map(|part| match part {
            Condition::Test(Test { field: Field::System(field), check }) if *field == of => {
                Some(check)
            }
            Condition::Test(_)
            | Condition::All(_)
            | Condition::Any(_)
            | Condition::Not(_)
            | Condition::Wait(_) => None,
        });
        checks.fold(by, |by, check| by.and(spans(column, check)))
    }
}

/// Only one value passes.
fn exact(check: &Check) -> bool {
    matches!(check.spans()[..], [Span::Exactly(_)])
}

fn statuses(field: SystemField, check: &Check) -> Vec<RunStatus> {
    let spans = check.spans();
    let passes = |status: &RunStatus| {
        let value = match field {
            SystemField::Blocked => Value::Bool(*status == RunStatus::ReplayBlocked),
            _ => Value::Status(*status),
        };
        spans.iter().any(|span| span.contains(&value))
    };
    RunStatus::ALL.into_iter().filter(passes).collect()
}

/// Most runs are running or completed, so the index by status leaves them out.
fn rare(statuses: &[RunStatus]) -> Option<Clause> {
    let frequent = |status: &RunStatus| matches!(status, RunStatus::Running | RunStatus::Completed);
    if statuses.is_empty() || statuses.iter().any(frequent) {
        return None;
    }
    // In the words of the index definition.
    Some(Clause::new("s.status NOT IN (1, 4)").and(within_statuses(statuses)))
}

fn within_statuses(statuses: &[RunStatus]) -> Clause {
    let check = Check::OneOf(statuses.iter().copied().map(Value::Status).collect());
    spans("s.status", &check)
}
