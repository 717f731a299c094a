//! One file per table with its SQL: puts and deletes for the writer, which take all rows of a group
//! as one array per column, and page queries for the readers. Nothing here does I/O.

use tokio_postgres::types::ToSql;

use crate::session::{Call, Param};

pub(crate) mod attributes;
mod conditions;
pub(crate) mod due;
pub(crate) mod inbox;
pub(crate) mod log;
pub(crate) mod outbox;
pub(crate) mod registry;
pub(crate) mod runs;
pub(crate) mod search;
pub(crate) mod shards;
pub(crate) mod snapshots;
pub(crate) mod tasks;
pub(crate) mod waits;

/// Statements that the writer runs within its transactions.
pub(crate) const WRITES: &[&str] = &[
    shards::LOCK_SHARED,
    shards::LOCK,
    shards::CHECK,
    shards::CLAIM,
    log::DELETE,
    log::APPEND,
    log::EXISTING,
    runs::PUT,
    runs::DELETE,
    snapshots::PUT,
    snapshots::DELETE,
    tasks::PUT,
    tasks::DELETE,
    due::PUT,
    due::DELETE,
    waits::PUT,
    waits::DELETE,
    attributes::PUT,
    attributes::DELETE,
    attributes::DELETE_ALL,
    outbox::PUT,
    outbox::DELETE,
    inbox::PUT,
    inbox::DELETE,
    inbox::DELETE_BEFORE,
];

/// Lookups by key, and the statements of the registry.
pub(crate) const OTHERS: &[&str] = &[
    shards::READ,
    log::PAGE,
    log::LOAD,
    runs::OF_WORKFLOW,
    runs::STRANDED,
    tasks::PAGE,
    due::PAGE,
    outbox::PAGE,
    inbox::READ,
    registry::READ,
    registry::INSERT,
    registry::UPDATE,
];

/// Final effect of a group on one row: the row, or `None` if it is deleted.
pub(crate) type Last<'a, R> = Option<&'a R>;

/// One column of all rows, as an array.
fn column<'a, R, V: ToSql + Sync + Send + 'a>(rows: &[R], value: impl Fn(&R) -> V) -> Param<'a> {
    Box::new(rows.iter().map(value).collect::<Vec<V>>())
}

fn call<'a>(sql: &'static str, params: Vec<Param<'a>>) -> Call<'a> {
    Call { sql: sql.into(), params }
}
