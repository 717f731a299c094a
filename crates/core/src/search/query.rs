//! The typed tree of a query, in one form for all ways to write the same: negations stand outside of
//! comparisons, and what AND and OR join is flat.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::{Field, SystemField, Value};
use crate::{ids::RunId, list::RunRow, time::Timestamp};

/// Which runs, and in which order or by which groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What must hold of a run.
    pub condition: Condition,
    pub order: Order,
    /// By what runs are counted.
    pub group: Option<Field>,
}

/// What must hold of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All of them; everything holds of none.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    Not(Box<Self>),
    Test(Test),
    /// The run has a wait that passes all of these.
    Wait(Vec<Test>),
}

impl Default for Condition {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// A field has a value that passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    pub field: Field,
    pub check: Check,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    Compare(Comparison, Value),
    /// One of several values, at least one.
    OneOf(Vec<Value>),
    Between(Value, Value),
    StartsWith(String),
    /// Any value at all.
    Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub by: OrderField,
    pub descending: bool,
}

/// A time by which lists are ordered. Runs of the same time are in the order of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderField {
    StartTime,
    /// Only for queries that no open run passes.
    CloseTime,
}

impl Default for Order {
    fn default() -> Self {
        Self { by: OrderField::StartTime, descending: true }
    }
}

impl Order {
    /// Where a run stands in a list of this order.
    pub fn position(self, row: &RunRow) -> (Timestamp, RunId) {
        let at = match self.by {
            OrderField::StartTime => row.started_at,
            OrderField::CloseTime => row.closed_at.unwrap_or(Timestamp::NEVER),
        };
        (at, row.run)
    }

    /// Whether a position stands behind another one.
    pub fn behind(self, position: (Timestamp, RunId), other: (Timestamp, RunId)) -> bool {
        if self.descending { position < other } else { position > other }
    }
}

/// Values between two bounds, or a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    Exactly(Value),
    Within(Bound<Value>, Bound<Value>),
}

impl Span {
    pub fn contains(&self, value: &Value) -> bool {
        match self {
            Self::Exactly(exactly) => value == exactly,
            Self::Within(from, to) => {
                use std::ops::RangeBounds as _;
                (from.as_ref(), to.as_ref()).contains(value)
            }
        }
    }
}

impl Check {
    /// The values that pass: those within one of the spans.
    pub fn spans(&self) -> Vec<Span> {
        let (from, to) = match self.clone() {
            Self::Compare(Comparison::Equal, value) => return vec![Span::Exactly(value)],
            Self::OneOf(values) => return values.into_iter().map(Span::Exactly).collect(),
            Self::Compare(Comparison::Less, value) => (Unbounded, Excluded(value)),
            Self::Compare(Comparison::AtMost, value) => (Unbounded, Included(value)),
            Self::Compare(Comparison::More, value) => (Excluded(value), Unbounded),
            Self::Compare(Comparison::AtLeast, value) => (Included(value), Unbounded),
            Self::Between(from, to) => (Included(from), Included(to)),
            Self::StartsWith(prefix) => {
                let end = after_prefix(&prefix).map(Value::Text);
                (Included(Value::Text(prefix)), end.map_or(Unbounded, Excluded))
            }
            Self::Known => (Unbounded, Unbounded),
        };
        vec![Span::Within(from, to)]
    }
}

/// The smallest text that is greater than all texts with this prefix; none if there is no such text.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // The range of characters has a gap, which this steps over.
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

impl Condition {
    /// All of these, in one form: what is joined is flat, and tests of waits are about the same wait.
    #[must_use]
    pub fn all(parts: Vec<Self>) -> Self {
        let (mut joined, mut wait) = (Vec::new(), None);
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::All(parts) => parts,
            part @ (Self::Any(_) | Self::Not(_) | Self::Test(_) | Self::Wait(_)) => vec![part],
        });
        for part in flat {
            match part {
                Self::Wait(tests) => match wait {
                    None => {
                        wait = Some(joined.len());
                        joined.push(Self::Wait(tests));
                    }
                    Some(at) => {
                        if let Some(Self::Wait(all)) = joined.get_mut::<usize>(at) {
                            all.extend(tests);
                        }
                    }
                },
                part @ (Self::All(_) | Self::Any(_) | Self::Not(_) | Self::Test(_)) => {
                    joined.push(part);
                }
            }
        }
        Self::single(joined, Self::All)
    }

    /// One of these, flat.
    #[must_use]
    pub fn any(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::Any(parts) => parts,
            part @ (Self::All(_) | Self::Not(_) | Self::Test(_) | Self::Wait(_)) => vec![part],
        });
        Self::single(flat.collect(), Self::Any)
    }

    /// The opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::Not(part) => *part,
            part @ (Self::All(_) | Self::Any(_) | Self::Test(_) | Self::Wait(_)) => {
                Self::Not(Box::new(part))
            }
        }
    }

    /// A test of the run, or of one of its waits.
    #[must_use]
    pub fn of(test: Test) -> Self {
        if test.field.of_wait() { Self::Wait(vec![test]) } else { Self::Test(test) }
    }

    fn single(mut parts: Vec<Self>, many: fn(Vec<Self>) -> Self) -> Self {
        if parts.len() == 1 { parts.remove(0) } else { many(parts) }
    }

    /// Whether it tests a field that is found so.
    pub fn has(&self, found: &impl Fn(&Field) -> bool) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.has(found)),
            Self::Not(part) => part.has(found),
            Self::Test(test) => found(&test.field),
            Self::Wait(tests) => tests.iter().any(|test| found(&test.field)),
        }
    }

    /// Conditions that must all hold, each of which may find the runs.
    pub fn conjuncts(&self) -> &[Self] {
        match self {
            Self::All(parts) => parts,
            part @ (Self::Any(_) | Self::Not(_) | Self::Test(_) | Self::Wait(_)) => {
                std::slice::from_ref(part)
            }
        }
    }

    /// No open run can pass, as far as one of the conjuncts shows.
    pub(super) fn closed_only(&self) -> bool {
        self.conjuncts().iter().any(|part| match part {
            Self::Test(Test { field: Field::System(SystemField::CloseTime), .. }) => true,
            Self::Test(Test { field: Field::System(SystemField::ExecutionStatus), check }) => {
                let closed = |span: &Span| match span {
                    Span::Exactly(Value::Status(status)) => !status.is_open(),
                    Span::Exactly(_) | Span::Within(..) => false,
                };
                check.spans().iter().all(closed)
            }
            Self::All(_) | Self::Any(_) | Self::Not(_) | Self::Test(_) | Self::Wait(_) => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_text_without_it() {
        assert_eq!(after_prefix("order-").as_deref(), Some("order."));
        assert_eq!(after_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10ffff}"), None);
        let span = Check::StartsWith("ab".into()).spans().remove(0);
        for (text, within) in
            [("aa", false), ("ab", true), ("ab\u{10ffff}z", true), ("abz", true), ("ac", false)]
        {
            assert_eq!(span.contains(&Value::Text(text.into())), within, "{text}");
        }
    }
}
