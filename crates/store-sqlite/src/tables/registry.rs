//! Rows that belong to no slot, written by compare-and-set on their version.

use abide_store::rows::RegistryRow;
use rusqlite::{Connection, Result, params};

use crate::{
    tables::{execute, row},
    values::{Columns, number},
};

/// Writes the row if the stored version is one less, and returns whether it did.
pub(crate) fn put(connection: &Connection, row: &RegistryRow) -> Result<bool> {
    const SQL: &str = "INSERT OR REPLACE INTO registry (name, version, value) VALUES (?, ?, ?)";
    let fits = version(connection, &row.name)?.checked_add(1) == Some(row.version);
    if fits {
        execute(connection, SQL, params![row.name, number(row.version)?, &row.value[..]])?;
    }
    Ok(fits)
}

fn version(connection: &Connection, name: &str) -> Result<u64> {
    const SQL: &str = "SELECT version FROM registry WHERE name = ?";
    Ok(row(connection, SQL, [name], |row| row.number(0))?.unwrap_or_default())
}

/// All rows whose name begins with `prefix`, in order of name.
pub(crate) fn read(connection: &Connection, prefix: &str) -> Result<Vec<RegistryRow>> {
    const SQL: &str = "SELECT name, version, value FROM registry WHERE name >= ? ORDER BY name";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut found = Vec::new();
    let mut rows = statement.query([prefix])?;
    while let Some(row) = rows.next()? {
        let name: String = row.text(0)?;
        if !name.starts_with(prefix) {
            break;
        }
        found.push(RegistryRow { name, version: row.number(1)?, value: row.bytes(2)? });
    }
    Ok(found)
}
