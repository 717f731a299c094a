//! Searching for runs: search attributes with registered types, and a language of conditions over them
//! and over what every run has.
//!
//! - [`attribute`]: types of attributes, which ones a namespace has, and the entries that an index keeps of
//!   a run's attributes.
//! - [`value`]: values of one type each, in their order, also as bytes of the same order.
//! - [`field`]: what a condition can be about.
//! - [`query`]: the typed tree of a query. [`Query::parse`] is the one parser.
//!
//! Evaluation knows two truth values only. A field has any number of values: none if it is absent, several
//! if it is a list. A condition holds if one of them passes, and `!=` is the negation of `=`.

pub mod attribute;
mod error;
mod evaluate;
pub mod field;
mod lexer;
mod literal;
mod parse;
mod print;
pub mod query;
pub mod value;

#[cfg(test)]
mod tests;

pub use self::{
    attribute::{AttributeKind, Definitions},
    error::QueryError,
    evaluate::Subject,
    field::{Field, SystemField},
    query::{Check, Comparison, Condition, Order, OrderField, Query, Span, Test},
    value::{Finite, Value},
};

/// Bytes of a query: longer ones are lists of values, which belong into an attribute.
pub const QUERY_BYTES: usize = 4096;

/// Parentheses within each other: each level costs stack.
pub const QUERY_DEPTH: usize = 32;

/// Comparisons in a query: each is a part of a statement of the database.
pub const QUERY_TESTS: usize = 100;
