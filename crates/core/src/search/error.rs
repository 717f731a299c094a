//! Errors in a query: where, what, and what would be right.

use std::fmt;

use crate::limits::InvalidField;

/// A query cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// Number of the character at which it is wrong; the first is 1.
    pub column: usize,
    pub problem: String,
    /// How to correct it, if that is known.
    pub hint: Option<String>,
}

impl QueryError {
    pub(super) fn new(column: usize, problem: impl Into<String>) -> Self {
        Self { column, problem: problem.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.problem)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for QueryError {}

impl From<QueryError> for InvalidField {
    fn from(error: QueryError) -> Self {
        Self::new("query", format!("is wrong at {error}"))
    }
}

/// The name among `known` that was probably meant, if one is near.
pub(super) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let near = known.map(|known| (distance(&lower, &known.to_lowercase()), known)).min();
    let tolerated = 1 + name.chars().count() / 4;
    near.filter(|(distance, _)| *distance <= tolerated).map(|(_, known)| known)
}

/// How many characters to insert, remove or replace to get from one text to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
