//! The logs of runs: rows are appended and read, and deleted only together with their run.

use abide_core::ids::{RunId, ShardId};
use abide_store::{
    CommitError,
    rows::{LogLimit, LogRow},
};
use rusqlite::{Connection, Result, params};

use crate::{
    fault::{self, Fault},
    tables::execute,
    values::{Columns, bound, limit, number},
};

/// Appends a row. A row that already exists is the batch's fault.
pub(crate) fn append(connection: &Connection, shard: ShardId, row: &LogRow) -> Result<(), Fault> {
    insert(connection, shard, row).map_err(|error| {
        if fault::of_existing_row(&error) {
            Fault::Refused(CommitError::log_row_exists(row.run, row.sequence))
        } else {
            error.into()
        }
    })
}

fn insert(connection: &Connection, shard: ShardId, row: &LogRow) -> Result<()> {
    const SQL: &str = "INSERT INTO log (run, shard, sequence, first_event, events, notes) \
        VALUES (?, ?, ?, ?, ?, ?)";
    let (sequence, first_event) = (number(row.sequence)?, number(row.first_event)?);
    let (events, notes) = (&row.events[..], &row.notes[..]);
    let run = row.run.as_bytes();
    let params = params![run, shard.number(), sequence, first_event, events, notes];
    execute(connection, SQL, params).map(drop)
}

pub(crate) fn delete(connection: &Connection, shard: ShardId, run: RunId) -> Result<()> {
    const SQL: &str = "DELETE FROM log WHERE run = ? AND shard = ?";
    execute(connection, SQL, params![run.as_bytes(), shard.number()]).map(drop)
}

/// The number of the last row, which grows with each one that is added; zero without any. `rowid`
/// is the column `number`, also in a file whose schema does not name it yet.
pub(crate) fn last(connection: &Connection) -> Result<u64> {
    let mut statement = connection.prepare_cached("SELECT ifnull(max(rowid), 0) FROM log")?;
    statement.query_row([], |row| row.number(0))
}

pub(crate) fn page(
    connection: &Connection,
    shard: ShardId,
    run: RunId,
    after: u64,
    page: LogLimit,
) -> Result<Vec<LogRow>> {
    const SQL: &str = "SELECT sequence, first_event, events, notes FROM log \
        WHERE run = ? AND shard = ? AND sequence > ? ORDER BY sequence LIMIT ?";
    let params = params![run.as_bytes(), shard.number(), bound(after), limit(page.rows)];
    let mut statement = connection.prepare_cached(SQL)?;
    page.page(statement.query_and_then(params, |row| {
        Ok(LogRow {
            run,
            sequence: row.number(0)?,
            first_event: row.number(1)?,
            events: row.bytes(2)?,
            notes: row.bytes(3)?,
        })
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_that_exists_is_said_to() {
        let connection = Connection::open_in_memory().unwrap();
        for sql in crate::open::MIGRATIONS {
            connection.execute_batch(sql).unwrap();
        }
        let run = RunId::from_parts(abide_core::time::Timestamp::EPOCH, 1);
        let shard = ShardId::new(1).unwrap();
        let row = |sequence| {
            let (events, notes) = (bytes::Bytes::new(), bytes::Bytes::new());
            LogRow { run, sequence, first_event: 1, events, notes }
        };
        append(&connection, shard, &row(1)).unwrap();
        let exists = Fault::Refused(CommitError::log_row_exists(run, 1));
        assert_eq!(append(&connection, shard, &row(1)), Err(exists));
        let rule = "CREATE TRIGGER rule BEFORE INSERT ON log BEGIN SELECT raise(ABORT, 'no'); END";
        connection.execute_batch(rule).unwrap();
        let exists = Fault::Refused(CommitError::log_row_exists(run, 2));
        assert_ne!(append(&connection, shard, &row(2)), Err(exists));
    }
}
