//! A WHERE clause, built from a filter.

use rusqlite::types::Value;

/// Conditions that must all hold, and the values of their parameters in order.
pub(crate) struct Conditions {
    pub(crate) sql: String,
    pub(crate) params: Vec<Value>,
}

impl Conditions {
    /// No condition yet: every row passes.
    pub(crate) fn none() -> Self {
        Self { sql: "TRUE".to_owned(), params: Vec::new() }
    }

    /// Adds one condition, with as many values as it has question marks.
    pub(crate) fn require(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.extend(values);
    }

    /// Requires one of these values in the column, unless there are none.
    pub(crate) fn require_one_of(&mut self, column: &str, values: impl IntoIterator<Item = Value>) {
        let values: Vec<_> = values.into_iter().collect();
        if !values.is_empty() {
            let places = vec!["?"; values.len()].join(", ");
            self.require(&format!("{column} IN ({places})"), values);
        }
    }
}
