//! A piece of SQL with the values of its parameters.

use abide_core::{ids::RunId, time::Timestamp};

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A text.
    Text(String),
    /// The bytes of an entry.
    Bytes(Vec<u8>),
    /// A time, in the form in which the store keeps it.
    Time(Timestamp),
    /// The id of a run.
    Run(RunId),
    /// A status or kind.
    Small(u8),
    /// A number of rows.
    Rows(usize),
}

/// SQL with a question mark for each value, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clause {
    /// The text.
    pub sql: String,
    /// The values of its parameters.
    pub values: Vec<Bound>,
}

impl Clause {
    /// This text without values.
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    /// This text with these values.
    pub fn with(sql: impl Into<String>, values: impl IntoIterator<Item = Bound>) -> Self {
        Self { sql: sql.into(), values: values.into_iter().collect() }
    }

    /// Appends text.
    #[must_use]
    pub fn text(mut self, sql: &str) -> Self {
        self.sql.push_str(sql);
        self
    }

    /// Appends another piece.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.sql.push_str(&other.sql);
        self.values.extend(other.values);
        self
    }

    /// Appends a condition that must hold too.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.text(" AND ").then(other)
    }

    /// The pieces with a text in between, within parentheses.
    pub fn joined(pieces: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let mut joined = Self::new("(");
        for (index, piece) in pieces.into_iter().enumerate() {
            joined = joined.text(if index == 0 { "" } else { between }).then(piece);
        }
        joined.text(")")
    }
}
