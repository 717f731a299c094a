//! Lists and counts of runs, found by the indexes that fit their conditions.

use abide_core::{
    search::Value,
    tally::{RunGroup, RunTally},
};
use abide_store::{
    RunFilter,
    rows::{ListLimit, ListPart, RunPosition, RunRow, RunStatus},
    search::{self, Access, Bound, Clause, Groups, Names},
};
use rusqlite::{Connection, Params, Result, Row, params_from_iter, types};

use crate::{
    tables::runs::{COLUMNS, decode},
    values::{Columns, limit, time},
};

/// Runs of all shards, in the order of the list.
pub(crate) fn list(
    connection: &Connection,
    filter: &RunFilter,
    page: ListLimit,
) -> Result<ListPart<Vec<RunRow>>> {
    let (access, end) = access(connection, filter, page.examined)?;
    let found = search::rows(Names::Sqlite, filter, &access, (COLUMNS, page.rows), end);
    let mut statement = connection.prepare_cached(&found.sql)?;
    let rows = statement.query_and_then(bound(found), decode)?;
    page.part(rows, filter.order(), end)
}

/// Number of runs that match the filter.
pub(crate) fn count(
    connection: &Connection,
    filter: &RunFilter,
    examined: usize,
) -> Result<ListPart<u64>> {
    let (access, next) = access(connection, filter, examined)?;
    let counted = search::count(Names::Sqlite, filter, &access, next);
    let found = first(connection, counted, |row| row.number(0))?;
    Ok(ListPart { found: found.unwrap_or_default(), next })
}

/// Counts the runs of a query in groups, among at most so many.
pub(crate) fn tally(connection: &Connection, filter: &RunFilter, most: usize) -> Result<RunTally> {
    let sources = search::sources(filter);
    let few = few(connection, &sources, most)?;
    let more = few.is_none();
    let access = few.unwrap_or_else(|| search::access(sources));
    let (groups, counted) = search::tally(Names::Sqlite, filter, &access, most);
    let mut statement = connection.prepare_cached(&counted.sql)?;
    let mut rows = statement.query(bound(counted))?;
    let mut tally = RunTally { more, ..RunTally::default() };
    while let Some(row) = rows.next()? {
        let (group, counted) = group(groups, row)?;
        tally.add(group, counted);
    }
    Ok(tally)
}

fn group(groups: Groups, row: &Row<'_>) -> Result<(RunGroup, u64)> {
    let group = match groups {
        Groups::StatusAndType => {
            let status = row.choice(0, RunStatus::from_number)?;
            let group = RunGroup::Type { status, workflow_type: row.text(1)? };
            return Ok((group, row.number(2)?));
        }
        Groups::Status => {
            let status = row.choice(0, RunStatus::from_number)?;
            RunGroup::of_value(Some(&Value::Status(status)))
        }
        Groups::Text => RunGroup::Value(Some(row.text(0)?)),
        Groups::Entry => {
            let entry = row.get_ref(0)?.as_blob_or_null()?;
            RunGroup::of_value(entry.and_then(Value::from_entry).as_ref())
        }
    };
    Ok((group, row.number(1)?))
}

/// How the runs are found, and where a walk over them ends.
fn access(
    connection: &Connection,
    filter: &RunFilter,
    examined: usize,
) -> Result<(Access, Option<RunPosition>)> {
    let mut sources = search::sources(filter);
    // The last one finds everything, so there is no need to ask whether that is little.
    let all = sources.pop();
    if let Some(few) = few(connection, &sources, examined)? {
        return Ok((few, None));
    }
    sources.extend(all);
    let access = search::access(sources);
    let end = match &access {
        Access::Few(_) => None,
        Access::Walk(source) => {
            let last = search::end(Names::Sqlite, filter, source, examined);
            first(connection, last, |row| Ok((row.time(0)?, row.run(1)?)))?
        }
    };
    Ok((access, end))
}

/// The first source that finds at most so many runs.
fn few(connection: &Connection, sources: &[search::Source], most: usize) -> Result<Option<Access>> {
    for source in sources {
        let probe = || search::probe(Names::Sqlite, source, most);
        let found =
            if source.at_once { Some(0) } else { first(connection, probe(), |row| row.number(0))? };
        if found.is_some_and(|found| usize::try_from(found).is_ok_and(|found| found <= most)) {
            return Ok(Some(Access::Few(source.clone())));
        }
    }
    Ok(None)
}

fn first<T>(
    connection: &Connection,
    clause: Clause,
    decode: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = connection.prepare_cached(&clause.sql)?;
    statement.query_and_then(bound(clause), decode)?.next().transpose()
}

fn bound(clause: Clause) -> impl Params {
    params_from_iter(clause.values.into_iter().map(|value| match value {
        Bound::Text(text) => types::Value::from(text),
        Bound::Bytes(bytes) => bytes.into(),
        Bound::Time(at) => time(at).to_vec().into(),
        Bound::Run(run) => run.as_bytes().to_vec().into(),
        Bound::Small(number) => number.into(),
        Bound::Rows(rows) => limit(rows).into(),
    }))
}

#[cfg(test)]
mod tests;
