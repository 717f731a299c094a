//! Whether a run passes a query: what every store must agree with, however it finds the runs.

use super::{Condition, Field, Test, Value};
use crate::list::{AttributeRow, RunRow, WaitRow};

/// A run with all that conditions can be about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub row: &'a RunRow,
    /// The entries of its search attributes.
    pub attributes: &'a [&'a AttributeRow],
    pub waits: &'a [&'a WaitRow],
}

impl Condition {
    /// Whether it holds of the run. The depth of a query is bounded, and so is the stack.
    pub fn holds(&self, of: Subject<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(of)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(of)),
            Self::Not(part) => !part.holds(of),
            Self::Test(test) => test.holds(of),
            Self::Wait(tests) => {
                of.waits.iter().any(|wait| tests.iter().all(|test| test.holds_of(wait)))
            }
        }
    }
}

impl Test {
    fn holds(&self, of: Subject<'_>) -> bool {
        match &self.field {
            Field::System(field) => field.of_run(of.row).is_some_and(|value| self.passes(&value)),
            Field::Attribute(name, kind) => of.attributes.iter().any(|entry| {
                // The attribute may have had another type once.
                entry.name == *name
                    && entry.value.first() == Some(&kind.number())
                    && Value::from_entry(&entry.value).is_some_and(|value| self.passes(&value))
            }),
        }
    }

    fn holds_of(&self, wait: &WaitRow) -> bool {
        match &self.field {
            Field::System(field) => field.of_waiting(wait).is_some_and(|value| self.passes(&value)),
            Field::Attribute(..) => false,
        }
    }

    fn passes(&self, value: &Value) -> bool {
        self.check.spans().iter().any(|span| span.contains(value))
    }
}
