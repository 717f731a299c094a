//! Conditions as SQL over the table of runs. Every piece is true or false, never unknown, so that NOT means
//! the same as in the core.

use std::ops::Bound as Edge;

use abide_core::{
    list::RunStatus,
    search::{AttributeKind, Check, Condition, Field, Span, SystemField, Test, Value},
};

use super::clause::{Bound, Clause};

/// What must hold of a row of the table `runs`.
pub(super) fn condition(condition: &Condition) -> Clause {
    match condition {
        Condition::All(parts) if parts.is_empty() => Clause::new("TRUE"),
        Condition::All(parts) => Clause::joined(parts.iter().map(self::condition), " AND "),
        Condition::Any(parts) => Clause::joined(parts.iter().map(self::condition), " OR "),
        Condition::Not(part) => Clause::new("NOT ").then(self::condition(part)),
        Condition::Test(Test { field: Field::System(field), check }) => of_run(*field, check),
        Condition::Test(Test { field: Field::Attribute(name, kind), check }) => {
            let of_name = Clause::with(
                "EXISTS (SELECT 1 FROM attributes AS a WHERE a.run = runs.run AND a.shard = runs.shard \
                 AND a.name = ?",
                [Bound::Text(name.clone())],
            );
            of_name.and(entries("a.value", check, *kind)).text(")")
        }
        Condition::Wait(tests) => {
            let waits = Clause::new(
                "EXISTS (SELECT 1 FROM waits AS w WHERE w.run = runs.run AND w.shard = runs.shard",
            );
            tests.iter().fold(waits, |waits, test| waits.and(of_wait("w", test))).text(")")
        }
    }
}

/// What must hold of the column of a field. A column without a value passes no test.
fn of_run(field: SystemField, check: &Check) -> Clause {
    if field == SystemField::Blocked {
        let passes = |span: &Span| span.contains(&Value::Bool(true));
        let blocked = check.spans().iter().any(passes);
        let other = check.spans().iter().any(|span| span.contains(&Value::Bool(false)));
        let status = Bound::Small(RunStatus::ReplayBlocked.number());
        return match (blocked, other) {
            (true, true) => Clause::new("TRUE"),
            (true, false) => Clause::with("runs.status = ?", [status]),
            (false, true) => Clause::with("runs.status <> ?", [status]),
            (false, false) => Clause::new("FALSE"),
        };
    }
    let Some(column) = column(field) else { return Clause::new("FALSE") };
    let nullable = matches!(
        field,
        SystemField::CloseTime | SystemField::ParentWorkflowId | SystemField::ParentRunId
    );
    let spans = spans(&format!("runs.{column}"), check);
    if nullable {
        return Clause::new(format!("(runs.{column} IS NOT NULL AND ")).then(spans).text(")");
    }
    spans
}

/// The column of a field of a run.
pub(super) const fn column(field: SystemField) -> Option<&'static str> {
    match field {
        SystemField::WorkflowId => Some("workflow"),
        SystemField::RunId => Some("run"),
        SystemField::WorkflowType => Some("workflow_type"),
        SystemField::ExecutionStatus => Some("status"),
        SystemField::StartTime => Some("started_at"),
        SystemField::CloseTime => Some("closed_at"),
        SystemField::TaskQueue => Some("queue"),
        SystemField::ParentWorkflowId => Some("parent_workflow"),
        SystemField::ParentRunId => Some("parent_run"),
        SystemField::Blocked
        | SystemField::WaitKind
        | SystemField::WaitName
        | SystemField::WaitUntil => None,
    }
}

/// What must hold of a row of the table of waits, under this name.
pub(super) fn of_wait(table: &str, test: &Test) -> Clause {
    let Field::System(field) = &test.field else { return Clause::new("FALSE") };
    match field {
        SystemField::WaitKind => spans(&format!("{table}.kind"), &test.check),
        SystemField::WaitName => spans(&format!("{table}.name"), &test.check),
        SystemField::WaitUntil => {
            let ends = Clause::with(
                format!("{table}.until < ?"),
                [Bound::Time(abide_core::time::Timestamp::NEVER)],
            );
            Clause::joined([ends, spans(&format!("{table}.until"), &test.check)], " AND ")
        }
        SystemField::WorkflowId
        | SystemField::RunId
        | SystemField::WorkflowType
        | SystemField::ExecutionStatus
        | SystemField::StartTime
        | SystemField::CloseTime
        | SystemField::TaskQueue
        | SystemField::ParentWorkflowId
        | SystemField::ParentRunId
        | SystemField::Blocked => Clause::new("FALSE"),
    }
}

/// The column holds a value that passes.
pub(super) fn spans(column: &str, check: &Check) -> Clause {
    within(column, &check.spans(), &bound)
}

/// The column holds an entry of this type that passes.
pub(super) fn entries(column: &str, check: &Check, kind: AttributeKind) -> Clause {
    let of_type = |edge: Edge<Value>, open: Edge<Vec<u8>>| match edge {
        Edge::Unbounded => open,
        Edge::Included(value) => Edge::Included(value.to_entry(kind)),
        Edge::Excluded(value) => Edge::Excluded(value.to_entry(kind)),
    };
    // Entries of other types stand before and behind.
    let (first, behind) = (vec![kind.number()], vec![kind.number() + 1]);
    match &check.spans()[..] {
        [Span::Within(from, to)] => {
            let from = of_type(from.clone(), Edge::Included(first));
            let to = of_type(to.clone(), Edge::Excluded(behind));
            edges(column, from, to, &|bytes| Bound::Bytes(bytes))
        }
        spans => within(column, spans, &|value| Bound::Bytes(value.to_entry(kind))),
    }
}

/// A list of many single values is no chain of ORs: databases bound how deep those are.
fn within(column: &str, spans: &[Span], bound: &dyn Fn(Value) -> Bound) -> Clause {
    let exactly: Option<Vec<Bound>> = spans
        .iter()
        .map(|span| match span {
            Span::Exactly(value) => Some(bound(value.clone())),
            Span::Within(..) => None,
        })
        .collect();
    match exactly {
        Some(mut values) if values.len() == 1 => {
            Clause::with(format!("{column} = ?"), values.pop())
        }
        Some(values) => {
            let places = vec!["?"; values.len()].join(", ");
            Clause::with(format!("{column} IN ({places})"), values)
        }
        None => {
            let spans = spans.iter().map(|span| match span.clone() {
                Span::Exactly(value) => Clause::with(format!("{column} = ?"), [bound(value)]),
                Span::Within(from, to) => edges(column, from, to, bound),
            });
            Clause::joined(spans, " OR ")
        }
    }
}

fn edges<T>(column: &str, from: Edge<T>, to: Edge<T>, bound: &dyn Fn(T) -> Bound) -> Clause {
    let from = match from {
        Edge::Unbounded => None,
        Edge::Included(value) => Some(Clause::with(format!("{column} >= ?"), [bound(value)])),
        Edge::Excluded(value) => Some(Clause::with(format!("{column} > ?"), [bound(value)])),
    };
    let to = match to {
        Edge::Unbounded => None,
        Edge::Included(value) => Some(Clause::with(format!("{column} <= ?"), [bound(value)])),
        Edge::Excluded(value) => Some(Clause::with(format!("{column} < ?"), [bound(value)])),
    };
    match (from, to) {
        (None, None) => Clause::new("TRUE"),
        (from, to) => Clause::joined(from.into_iter().chain(to), " AND "),
    }
}

fn bound(value: Value) -> Bound {
    match value {
        Value::Text(text) => Bound::Text(text),
        Value::Time(at) => Bound::Time(at),
        Value::Status(status) => Bound::Small(status.number()),
        Value::Wait(kind) => Bound::Small(kind.number()),
        Value::Run(run) => Bound::Run(run),
        // Only attributes have such values, and those are compared as entries.
        Value::Int(_) | Value::Double(_) | Value::Bool(_) => Bound::Bytes(Vec::new()),
    }
}
