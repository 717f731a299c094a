//! The statements that read runs through a source.

use abide_core::{
    list::RunFilter,
    search::{Field, OrderField, SystemField},
};

use super::{
    clause::{Bound, Clause},
    condition::condition,
    source::{Source, Table, whole},
};
use crate::rows::RunPosition;

/// How a database writes what others write differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Statements name the index to be used, and tables are read in the order of the statement.
    Sqlite,
    /// The database chooses.
    Postgres,
}

/// How runs are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// All that the source finds, then sorted.
    Few(Source),
    /// A bounded number in the order of the source.
    Walk(Source),
}

impl Names {
    fn from(self, source: &Source) -> String {
        let table = match source.table {
            Table::Runs => "runs",
            Table::Attributes => "attributes",
            Table::Waits => "waits",
        };
        match (self, source.index) {
            (Self::Postgres, _) => format!("{table} AS s"),
            (Self::Sqlite, None) => format!("{table} AS s NOT INDEXED"),
            (Self::Sqlite, Some(index)) => format!("{table} AS s INDEXED BY {index}"),
        }
    }

    const fn join(self) -> &'static str {
        match self {
            Self::Sqlite => "CROSS JOIN",
            Self::Postgres => "JOIN",
        }
    }
}

/// The way to read runs if no source finds few of them: the first that has the order of the list.
pub fn access(sources: Vec<Source>) -> Access {
    let walk = sources.into_iter().filter(|source| source.ordered);
    Access::Walk(walk.into_iter().next().expect("the last source has the order of the list"))
}

/// Counts what a source finds, up to one more than so many.
pub fn probe(names: Names, source: &Source, most: usize) -> Clause {
    Clause::new(format!("SELECT count(*) FROM (SELECT 1 FROM {} WHERE ", names.from(source)))
        .then(source.by.clone())
        .then(Clause::with(" LIMIT ?) AS found", [Bound::Rows(most.saturating_add(1))]))
}

/// Finds time and run of the last of so many runs of a walk.
pub fn end(names: Names, filter: &RunFilter, source: &Source, examined: usize) -> Clause {
    let at = at(filter);
    let skipped = Bound::Rows(examined.max(1) - 1);
    Clause::new(format!("SELECT s.{at}, s.run FROM {} WHERE ", names.from(source)))
        .then(source.by.clone())
        .then(after(filter, "s"))
        .text(&order(filter, "s"))
        .then(Clause::with(" LIMIT 1 OFFSET ?", [skipped]))
}

/// Reads these columns of the runs, up to the position where a walk ends.
pub fn rows(
    names: Names,
    filter: &RunFilter,
    access: &Access,
    (columns, limit): (&str, usize),
    end: Option<RunPosition>,
) -> Clause {
    let columns: Vec<_> = columns.split(", ").map(|column| format!("runs.{column}")).collect();
    let by = match access {
        Access::Few(_) => "runs",
        Access::Walk(_) => "s",
    };
    Clause::new(format!("SELECT {}", columns.join(", ")))
        .then(found(names, filter, access, end))
        .text(&order(filter, by))
        .then(Clause::with(" LIMIT ?", [Bound::Rows(limit)]))
}

/// Counts the runs, up to the position where a walk ends.
pub fn count(
    names: Names,
    filter: &RunFilter,
    access: &Access,
    end: Option<RunPosition>,
) -> Clause {
    Clause::new("SELECT count(*)").then(found(names, filter, access, end))
}

/// By what runs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// By status and type: two columns.
    StatusAndType,
    /// By status.
    Status,
    /// By a text.
    Text,
    /// By an entry of an attribute, which may be absent.
    Entry,
}

/// Counts runs in groups, among at most so many that the source finds.
pub fn tally(names: Names, filter: &RunFilter, access: &Access, most: usize) -> (Groups, Clause) {
    let (source, distinct, order) = match access {
        Access::Few(source) => (source, "DISTINCT ", String::new()),
        Access::Walk(source) => (source, "", order(filter, "s")),
    };
    let group = filter.search.as_ref().and_then(|query| query.group.as_ref());
    let (groups, column, joined) = match group {
        None => (Groups::StatusAndType, "runs.status, runs.workflow_type", None),
        Some(Field::System(SystemField::ExecutionStatus)) => (Groups::Status, "runs.status", None),
        Some(Field::System(SystemField::TaskQueue)) => (Groups::Text, "runs.queue", None),
        Some(Field::System(_)) => (Groups::Text, "runs.workflow_type", None),
        Some(Field::Attribute(name, kind)) => {
            let of_type = [vec![kind.number()], vec![kind.number() + 1]].map(Bound::Bytes);
            let values = std::iter::once(Bound::Text(name.clone())).chain(of_type);
            let joined = Clause::with(
                " LEFT JOIN attributes AS g ON g.run = runs.run AND g.shard = runs.shard \
                 AND g.name = ? AND g.value >= ? AND g.value < ?",
                values,
            );
            (Groups::Entry, "g.value", Some(joined))
        }
    };
    let join = names.join();
    let statement = Clause::new(format!(
        "SELECT {column}, count(*) FROM (SELECT {distinct}s.run, s.shard FROM {} WHERE ",
        names.from(source)
    ))
    .then(source.by.clone())
    .text(&order)
    .then(Clause::with(
        format!(" LIMIT ?) AS seen {join} runs ON runs.run = seen.run AND runs.shard = seen.shard"),
        [Bound::Rows(most)],
    ))
    .then(joined.unwrap_or_default())
    .text(" WHERE ")
    .then(chosen(filter))
    .text(&format!(" GROUP BY {column}"));
    (groups, statement)
}

/// Tables and conditions that are the same for rows and counts.
fn found(names: Names, filter: &RunFilter, access: &Access, end: Option<RunPosition>) -> Clause {
    match access {
        Access::Few(source) => {
            let (from, join) = (names.from(source), names.join());
            Clause::new(format!(" FROM (SELECT DISTINCT s.run, s.shard FROM {from} WHERE "))
                .then(source.by.clone())
                .text(&format!(
                    ") AS seen {join} runs ON runs.run = seen.run AND runs.shard = seen.shard WHERE "
                ))
                .then(chosen(filter))
                .then(after(filter, "runs"))
        }
        Access::Walk(source) => {
            let (from, join) = (names.from(source), names.join());
            let walked = Clause::new(format!(
                " FROM {from} {join} runs ON runs.run = s.run AND runs.shard = s.shard WHERE "
            ))
            .then(source.by.clone());
            let walked = source.also.clone().into_iter().fold(walked, Clause::and);
            walked
                .then(after(filter, "s"))
                .then(until(filter, end))
                .text(" AND ")
                .then(chosen(filter))
        }
    }
}

/// What is required of the runs, whatever found them.
fn chosen(filter: &RunFilter) -> Clause {
    let mut chosen = condition(&whole(filter));
    if let Some(namespace) = &filter.namespace {
        let namespace = Bound::Text(namespace.to_string());
        chosen = chosen.and(Clause::with("runs.namespace = ?", [namespace]));
    }
    if !filter.known.is_empty() {
        let known = filter.known.iter().map(|namespace| Bound::Text(namespace.to_string()));
        let places = vec!["?"; filter.known.len()].join(", ");
        chosen = chosen.and(Clause::with(format!("runs.namespace IN ({places})"), known));
    }
    chosen
}

/// The column by whose time the list is ordered.
fn at(filter: &RunFilter) -> &'static str {
    match filter.order().by {
        OrderField::StartTime => "started_at",
        OrderField::CloseTime => "closed_at",
    }
}

/// The order of the list, of rows with the columns of this table.
pub fn order(filter: &RunFilter, table: &str) -> String {
    let direction = if filter.order().descending { "DESC" } else { "ASC" };
    format!(" ORDER BY {table}.{} {direction}, {table}.run {direction}", at(filter))
}

/// Behind the page before.
fn after(filter: &RunFilter, table: &str) -> Clause {
    let sign = if filter.order().descending { "<" } else { ">" };
    filter.after.map(|position| placed(filter, table, sign, position)).unwrap_or_default()
}

/// Not behind the end of the walk.
fn until(filter: &RunFilter, end: Option<RunPosition>) -> Clause {
    let sign = if filter.order().descending { ">=" } else { "<=" };
    end.map(|position| placed(filter, "s", sign, position)).unwrap_or_default()
}

fn placed(filter: &RunFilter, table: &str, sign: &str, (time, run): RunPosition) -> Clause {
    let at = at(filter);
    Clause::with(
        format!(" AND ({table}.{at}, {table}.run) {sign} (?, ?)"),
        [Bound::Time(time), Bound::Run(run)],
    )
}
