//! Rows that belong to no slot. A write is a compare-and-swap on the version, in one statement,
//! which the database runs for one writer at a time.

use abide_store::rows::RegistryRow;
use tokio_postgres::Row;

use crate::{
    readers::Query,
    session::Call,
    tables::call,
    values::{Columns, Undecodable, number, text},
};

pub(crate) const INSERT: &str = "INSERT INTO registry (name, version, value) VALUES ($1, $2, $3) \
    ON CONFLICT (name) DO NOTHING";

pub(crate) const UPDATE: &str = "UPDATE registry SET version = $2::bigint, value = $3 \
    WHERE name = $1 AND version = $2::bigint - 1";

pub(crate) const READ: &str = "SELECT name, version, value FROM registry \
    WHERE name >= $1 AND starts_with(name, $1) ORDER BY name";

/// Writes the row if the stored version is one less; changes no row otherwise.
pub(crate) fn put(row: &RegistryRow) -> Call<'_> {
    let sql = if row.version == 1 { INSERT } else { UPDATE };
    let value = &row.value[..];
    call(sql, vec![Box::new(text(&row.name)), Box::new(number(row.version)), Box::new(value)])
}

/// All rows whose name begins with `prefix`, in order of name.
pub(crate) fn read(prefix: &str) -> Query {
    Query::ByKey(call(READ, vec![Box::new(text(prefix).into_owned())]))
}

pub(crate) fn decode(row: &Row) -> Result<RegistryRow, Undecodable> {
    Ok(RegistryRow { name: row.text(0)?, version: row.number(1)?, value: row.bytes(2)? })
}
