//! Lists, counts and tallies of runs as SQL, for all stores that speak it. Values are always bound, never
//! written into a statement.
//!
//! Runs are found in one of two ways. If a part of the condition finds few runs by an index (a *source*),
//! all of them are read, checked and sorted. Otherwise the store walks an index that has the order of the
//! list, checks run after run, and stops after a bounded number. [`sources`] names the indexes that could
//! serve, [`probe`] tells whether one finds few, [`Access`] is what was chosen.

mod clause;
mod condition;
mod source;
mod statement;

pub use clause::{Bound, Clause};
pub use source::{Source, Table, sources};
pub use statement::{Access, Groups, Names, access, count, end, order, probe, rows, tally};
