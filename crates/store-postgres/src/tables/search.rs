//! Lists and counts of runs, found by the indexes that fit their conditions.

use abide_core::{
    search::Value,
    tally::{RunGroup, RunTally},
};
use abide_store::{
    ReadError, RunFilter,
    rows::{ListLimit, ListPart, RunPosition, RunRow, RunStatus},
    search::{self, Access, Bound, Clause, Groups, Names, Source},
};
use tokio_postgres::{Row, types::Type};

use crate::{
    readers::{Query, Readers},
    session::{Made, Param},
    tables::{
        conditions::{self, value},
        runs,
    },
    values::{Columns, Time, Undecodable, limit, run_id},
};

/// Runs of all shards, in the order of the list. As for a page of a log, what is behind the page is not
/// sent.
pub(crate) async fn list(
    readers: &Readers,
    filter: &RunFilter,
    page: ListLimit,
) -> Result<ListPart<Vec<RunRow>>, ReadError> {
    let (access, end) = access(readers, filter, page.examined).await?;
    let found = search::rows(Names::Postgres, filter, &access, (runs::COLUMNS, page.rows), end);
    let (columns, listed) = (runs::COLUMNS, &found.sql);
    let sql = format!(
        "SELECT {columns} FROM (SELECT *, sum(octet_length(details)) OVER ({} \
         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM ({listed}) AS listed) \
         AS page WHERE coalesce(before, 0) < ?{}",
        search::order(filter, "listed"),
        search::order(filter, "page"),
    );
    let bytes = Bound::Rows(page.bytes.max(1));
    let found = Clause { sql, ..found }.then(Clause::with("", [bytes]));
    let rows = readers.read(made(found), runs::decode).await?;
    page.part(rows.into_iter().map(Ok), filter.order(), end)
}

/// Number of runs that match the filter.
pub(crate) async fn count(
    readers: &Readers,
    filter: &RunFilter,
    examined: usize,
) -> Result<ListPart<u64>, ReadError> {
    let (access, next) = access(readers, filter, examined).await?;
    let counted = search::count(Names::Postgres, filter, &access, next);
    let found = readers.first(made(counted), runs::decode_count).await?;
    Ok(ListPart { found: found.unwrap_or_default(), next })
}

/// Counts the runs of a query in groups, among at most so many.
pub(crate) async fn tally(
    readers: &Readers,
    filter: &RunFilter,
    most: usize,
) -> Result<RunTally, ReadError> {
    let sources = search::sources(filter);
    let few = few(readers, &sources, most).await?;
    let more = few.is_none();
    let access = few.unwrap_or_else(|| search::access(sources));
    let (groups, counted) = search::tally(Names::Postgres, filter, &access, most);
    let decode = match groups {
        Groups::StatusAndType => |row: &Row| {
            let status = row.choice(0, RunStatus::from_number)?;
            let group = RunGroup::Type { status, workflow_type: row.text(1)? };
            Ok((group, row.number(2)?))
        },
        Groups::Status => |row: &Row| {
            let status = Value::Status(row.choice(0, RunStatus::from_number)?);
            Ok((RunGroup::of_value(Some(&status)), row.number(1)?))
        },
        Groups::Text => |row: &Row| Ok((RunGroup::Value(Some(row.text(0)?)), row.number(1)?)),
        Groups::Entry => |row: &Row| {
            let entry = row.bytes_or_null(0)?;
            let value = entry.as_deref().and_then(Value::from_entry);
            Ok((RunGroup::of_value(value.as_ref()), row.number(1)?))
        },
    };
    let decode: fn(&Row) -> Result<(RunGroup, u64), Undecodable> = decode;
    let mut tally = RunTally { more, ..RunTally::default() };
    for (group, counted) in readers.read(made(counted), decode).await? {
        tally.add(group, counted);
    }
    Ok(tally)
}

/// How the runs are found, and where a walk over them ends.
async fn access(
    readers: &Readers,
    filter: &RunFilter,
    examined: usize,
) -> Result<(Access, Option<RunPosition>), ReadError> {
    let mut sources = search::sources(filter);
    // The last one finds everything, so there is no need to ask whether that is little.
    let all = sources.pop();
    if let Some(few) = few(readers, &sources, examined).await? {
        return Ok((few, None));
    }
    sources.extend(all);
    let access = search::access(sources);
    let end = match &access {
        Access::Few(_) => None,
        Access::Walk(source) => {
            let last = search::end(Names::Postgres, filter, source, examined);
            readers.first(made(last), decode_position).await?
        }
    };
    Ok((access, end))
}

/// The first source that finds at most so many runs.
async fn few(
    readers: &Readers,
    sources: &[Source],
    most: usize,
) -> Result<Option<Access>, ReadError> {
    for source in sources {
        if !source.at_once {
            let probe = search::probe(Names::Postgres, source, most);
            let found = readers.first(made(probe), runs::decode_count).await?.unwrap_or_default();
            if usize::try_from(found).is_ok_and(|found| found > most) {
                continue;
            }
        }
        return Ok(Some(Access::Few(source.clone())));
    }
    Ok(None)
}

fn decode_position(row: &Row) -> Result<RunPosition, Undecodable> {
    Ok((row.time(0)?, row.run(1)?))
}

/// The statement with numbered places.
fn made(Clause { sql, values }: Clause) -> Query {
    let mut pieces = sql.split('?');
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for (number, piece) in (1..).zip(pieces) {
        numbered.push_str(&format!("${number}{piece}"));
    }
    Query::Filtered(Made { sql: numbered, params: values.into_iter().map(param).collect() })
}

fn param(bound: Bound) -> (Param<'static>, Type) {
    match bound {
        Bound::Text(text) => conditions::text(&text),
        Bound::Bytes(bytes) => value(bytes, Type::BYTEA),
        Bound::Time(at) => value(Time::from(at), Type::BYTEA),
        Bound::Run(run) => value(run_id(run), Type::UUID),
        Bound::Small(number) => value(i16::from(number), Type::INT2),
        Bound::Rows(rows) => value(limit(rows), Type::INT8),
    }
}
