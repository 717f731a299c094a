//! Lists and counts of runs: all of them are sorted, and those that pass are taken.

use std::convert::Infallible;

use abide_core::{
    ids::{RunId, ShardId},
    search::{Field, OrderField, Subject, Value},
    tally::{RunGroup, RunTally},
};

use crate::{
    RunFilter,
    memory::Tables,
    rows::{AttributeRow, ListLimit, ListPart, RunPosition, RunRow},
};

/// A run and the shard that it belongs to.
type Placed<'a> = (ShardId, &'a RunRow);

impl Tables {
    /// All values of search attributes, by shard and run.
    pub fn attributes(&self) -> impl Iterator<Item = AttributeRow> {
        self.attributes.values().cloned()
    }

    /// Runs of all shards, in the order of the list.
    pub fn runs(&self, filter: &RunFilter, limit: usize) -> Vec<RunRow> {
        let found = self.sorted(filter).into_iter().filter(|run| self.passes(filter, *run));
        found.take(limit).map(|(_, row)| row.clone()).collect()
    }

    /// Runs of all shards, in the order of the list, as far as one read goes.
    pub fn part_of_runs(&self, filter: &RunFilter, limit: ListLimit) -> ListPart<Vec<RunRow>> {
        let (seen, end) = self.part(filter, limit.examined);
        let found = seen.into_iter().filter(|run| self.passes(filter, *run));
        let found = found.map(|(_, row)| Ok::<_, Infallible>(row.clone()));
        let Ok(part) = limit.part(found, filter.order(), end);
        part
    }

    /// Number of runs that match the filter, among at most `examined`.
    pub fn count_runs(&self, filter: &RunFilter, examined: usize) -> ListPart<u64> {
        let (seen, next) = self.part(filter, examined);
        let found = seen.into_iter().filter(|run| self.passes(filter, *run));
        ListPart { found: found.map(|_| 1).sum(), next }
    }

    /// Counts runs among the first `rows`.
    pub fn tally_runs(&self, filter: &RunFilter, rows: usize) -> RunTally {
        let seen = self.sorted(filter);
        let mut tally = RunTally { more: seen.len() > rows, ..RunTally::default() };
        let by = filter.search.as_ref().and_then(|query| query.group.as_ref());
        for run in seen.into_iter().take(rows).filter(|run| self.passes(filter, *run)) {
            match by {
                None => tally.add(RunGroup::of(run.1), 1),
                Some(field) => {
                    for group in self.groups_of(field, run) {
                        tally.add(group, 1);
                    }
                }
            }
        }
        tally
    }

    /// All runs within the span of the filter, in the order of the list.
    fn sorted(&self, filter: &RunFilter) -> Vec<Placed<'_>> {
        let (span, order) = (filter.span(), filter.order());
        let runs = self.runs.iter().map(|((shard, _), row)| (*shard, row));
        let mut runs: Vec<_> = runs
            .filter(|(_, row)| span.matches(row))
            .filter(|(_, row)| order.by == OrderField::StartTime || row.closed_at.is_some())
            .collect();
        runs.sort_by_key(|(_, row)| order.position(row));
        if order.descending {
            runs.reverse();
        }
        runs
    }

    /// The first of those runs, and the position of the last if so many are examined.
    fn part(&self, filter: &RunFilter, examined: usize) -> (Vec<Placed<'_>>, Option<RunPosition>) {
        let mut runs = self.sorted(filter);
        let examined = examined.max(1);
        let end = runs.get(examined - 1).map(|(_, row)| filter.order().position(row));
        runs.truncate(examined);
        (runs, end)
    }

    /// Whether the run passes the filter and its query.
    fn passes(&self, filter: &RunFilter, (shard, row): Placed<'_>) -> bool {
        filter.matches(row)
            && filter.search.as_ref().is_none_or(|query| {
                let of = |at: &ShardId, run: &RunId| (*at, *run) == (shard, row.run);
                let waits = self.waits.iter().filter(|((at, run, _), _)| of(at, run));
                let attributes = self.attributes.iter().filter(|((at, run, ..), _)| of(at, run));
                query.condition.holds(Subject {
                    row,
                    attributes: &attributes.map(|(_, entry)| entry).collect::<Vec<_>>(),
                    waits: &waits.map(|(_, wait)| wait).collect::<Vec<_>>(),
                })
            })
    }

    fn groups_of(&self, field: &Field, (shard, row): Placed<'_>) -> Vec<RunGroup> {
        let (name, kind) = match field {
            Field::System(field) => return vec![RunGroup::of_value(field.of_run(row).as_ref())],
            Field::Attribute(name, kind) => (name, kind.number()),
        };
        let entries = self.attributes.iter().filter(|((at, run, of, value), _)| {
            (*at, *run, of) == (shard, row.run, name) && value.first() == Some(&kind)
        });
        let values = entries.filter_map(|(_, entry)| Value::from_entry(&entry.value));
        let mut groups: Vec<_> = values.map(|value| RunGroup::of_value(Some(&value))).collect();
        if groups.is_empty() {
            groups.push(RunGroup::of_value(None));
        }
        groups
    }
}
