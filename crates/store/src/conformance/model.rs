//! Checks a backend against [`Tables`]: both get the same random batches, and every reply and every
//! read must agree.

use std::fmt::Debug;

use abide_core::{
    ids::ShardId,
    search::{AttributeKind, Check, Condition, Field, Query, Test},
    time::Timestamp,
};

use crate::{
    CommitError, RunFilter, Store, WaitFilter, WaitPosition, WorkflowRuns,
    conformance::{
        Check as ConformanceCheck, checks,
        random::{RUNS, Random, SHARDS},
        read,
        samples::{run, shard, time},
    },
    memory::Tables,
    rows::{
        DueRow, ListLimit, LogLimit, LogRow, OutboxRow, RunKey, RunRow, TaskRow, WaitKind, WaitRow,
    },
};

pub(super) const CHECKS: &[ConformanceCheck] =
    checks![random_batches_1, random_batches_2, random_batches_3, random_batches_4];

fn random_batches_1(store: &dyn Store) {
    agrees_with_the_model(store, 1);
}

fn random_batches_2(store: &dyn Store) {
    agrees_with_the_model(store, 2);
}

fn random_batches_3(store: &dyn Store) {
    agrees_with_the_model(store, 3);
}

fn random_batches_4(store: &dyn Store) {
    agrees_with_the_model(store, 4);
}

fn agrees_with_the_model(store: &dyn Store, seed: u64) {
    let mut model = Model::new(seed);
    for _ in 0..20 {
        model.write(store, 6);
        model.compare(store);
    }
}

/// Checks that the store agrees with the model although it is reopened again and again.
pub(super) fn survives<S: Store>(mut store: S, mut reopen: impl FnMut(S) -> S) {
    let mut model = Model::new(5);
    for _ in 0..20 {
        model.write(&store, 3);
        store = reopen(store);
        model.compare(&store);
    }
}

/// Expected content of a store, and the generator of the next writes.
struct Model {
    random: Random,
    tables: Tables,
    seed: u64,
    groups: u32,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self { random: Random(seed), tables: Tables::default(), seed, groups: 0 }
    }

    fn write(&mut self, store: &dyn Store, groups: u32) {
        for _ in 0..groups {
            self.groups += 1;
            self.write_group(store);
        }
    }

    /// Sends a few batches before it awaits the first, so that a store may commit them together.
    fn write_group(&mut self, store: &dyn Store) {
        let context = format!("seed {}, group {}", self.seed, self.groups);
        let mut sent = Vec::new();
        for _ in 0..=self.random.below(8) {
            let epochs: Vec<_> = shards().map(|shard| self.tables.shard(shard).epoch).collect();
            let batch = self.random.batch(&epochs);
            let expected = self.tables.apply(&batch).map_err(without_reason);
            sent.push((store.commit(batch.clone()), expected, batch));
        }
        let row = self.random.registry_row();
        let put = store.put_registry(row.clone());
        for (answer, expected, batch) in sent {
            let answer = pollster::block_on(answer).map_err(without_reason);
            assert_eq!(answer, expected, "{context}: {batch:?}");
        }
        assert_eq!(pollster::block_on(put), Ok(self.tables.put_registry(row)), "{context}");
    }

    fn compare(&mut self, store: &dyn Store) {
        let limit = 1 + usize::try_from(self.random.below(7)).unwrap_or_default();
        let context = format!("seed {}, group {}, pages of {limit}", self.seed, self.groups);
        let both = Both { store, tables: &self.tables, limit, context: &context };
        for shard in shards() {
            both.compare_shard(shard);
            both.compare_pages_of(shard);
        }
        both.compare_lists();
    }
}

/// A batch may be refused for several reasons, and a backend may name any of them.
fn without_reason(error: CommitError) -> CommitError {
    match error {
        CommitError::Refused(_) => CommitError::Refused(String::new()),
        error => error,
    }
}

fn shards() -> impl Iterator<Item = ShardId> {
    (0..SHARDS).map(shard)
}

/// A store and its expected content.
struct Both<'a> {
    store: &'a dyn Store,
    tables: &'a Tables,
    /// Rows per page.
    limit: usize,
    context: &'a str,
}

impl Both<'_> {
    fn compare_shard(&self, of: ShardId) {
        let Self { store, tables, limit, context } = self;
        assert_eq!(read(store.shard(of)), tables.shard(of), "{context}");
        for run in (0..RUNS).map(run) {
            let page = LogLimit::rows(*limit);
            let expected = tables.load(of, run, page);
            assert_eq!(read(store.load(of, run, page)), expected, "{context}");
            for number in 0..3 {
                let expected = tables.inbox(of, run, number);
                assert_eq!(read(store.inbox(of, run, number)), expected, "{context}");
            }
        }
    }

    fn compare_pages_of(&self, of: ShardId) {
        let Self { store, tables, limit, .. } = *self;
        self.pages(|last: Option<&TaskRow>| {
            let after = last.map(|row| row.key.clone());
            let expected = tables.tasks(of, after.as_ref(), limit);
            (read(store.tasks(of, after, limit)), expected)
        });
        self.pages(|last: Option<&OutboxRow>| {
            let after = last.map(|row| (row.run, row.number));
            (read(store.outbox(of, after, limit)), tables.outbox(of, after, limit))
        });
        let mut after = None;
        loop {
            let swept = read(store.stranded(of, after, limit));
            assert_eq!(swept, tables.stranded(of, after, limit));
            after = swept.next;
            if after.is_none() {
                break;
            }
        }
        for until in [time(0, 0), time(1_800_000_003, 0), Timestamp::NEVER] {
            self.pages(|last: Option<&DueRow>| {
                let after = last.map(DueRow::key);
                let expected = tables.due(of, after.as_ref(), until, limit);
                (read(store.due(of, after, until, limit)), expected)
            });
        }
        for run in (0..RUNS).map(run) {
            // Sequences start at zero, which the first page, after zero, leaves out.
            self.pages(|last: Option<&LogRow>| {
                let after = last.map_or(0, |row| row.sequence);
                (
                    read(store.log(of, run, after, LogLimit::rows(limit))),
                    tables.log(of, run, after, LogLimit::rows(limit)),
                )
            });
        }
        for name in ["", "a", "b", "ü"] {
            self.pages(|last: Option<&RunKey>| {
                let before = last.map(|row| row.ordinal);
                let workflow =
                    WorkflowRuns { namespace: "a".into(), workflow: name.into(), before };
                let expected = tables.runs_of(of, &workflow, limit);
                (read(store.runs_of(of, workflow, limit)), expected)
            });
        }
    }

    fn compare_lists(&self) {
        let Self { store, tables, limit, context } = *self;
        assert_eq!(read(store.registry(String::new())), tables.registry(""), "{context}");
        self.pages(|last: Option<&RunRow>| {
            let after = last.map(|row| (row.started_at, row.run));
            let filter = RunFilter { after, ..RunFilter::default() };
            let expected = tables.runs(&filter, limit);
            (read(store.runs(filter, ListLimit::rows(limit))).found, expected)
        });
        for name in ["", "a", "b", "ü"] {
            let keyword = AttributeKind::Keyword;
            let field = Field::Attribute(name.to_owned(), keyword);
            let condition = Condition::of(Test { field, check: Check::Known });
            let search = Some(Query { condition, ..Query::default() }.into());
            let filter = RunFilter { search, ..RunFilter::default() };
            let expected = tables.runs(&filter, 100);
            let found = read(store.runs(filter, ListLimit::rows(100))).found;
            assert_eq!(found, expected, "{context}");
        }
        for kind in WaitKind::ALL.map(Some).into_iter().chain([None]) {
            for name in [None, Some(String::new()), Some("a".to_owned())] {
                self.pages(|last: Option<&(ShardId, WaitRow)>| {
                    let after = last.map(|(shard, row)| WaitPosition::of(*shard, row));
                    let filter =
                        WaitFilter { kind, name: name.clone(), after, ..WaitFilter::default() };
                    let expected = tables.waits(&filter, limit);
                    (read(store.waits(filter, limit)), expected)
                });
            }
        }
    }

    /// Walks all pages of both in parallel. `next` reads the page after the given row from both.
    fn pages<T: Clone + Debug + PartialEq>(
        &self,
        mut next: impl FnMut(Option<&T>) -> (Vec<T>, Vec<T>),
    ) {
        let mut last = None;
        loop {
            let (page, expected) = next(last.as_ref());
            assert_eq!(page, expected, "{}", self.context);
            if page.len() < self.limit {
                return;
            }
            last = page.last().cloned();
        }
    }
}
