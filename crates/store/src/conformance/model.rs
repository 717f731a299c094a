//! Checks a backend against [`Tables`]: the same random batches go to both, and every answer and every
//! read must agree.

use abide_core::{ids::ShardId, time::Timestamp};

use crate::{
    CommitError, RunFilter, Store, WaitFilter, WorkflowRuns,
    conformance::{
        Check, checks,
        random::{RUNS, Random, SHARDS},
        read,
        samples::{run, shard, time},
    },
    memory::Tables,
    rows::WaitKind,
};

pub(super) const CHECKS: &[Check] =
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
    let mut random = Random(seed);
    let mut tables = Tables::default();
    for step in 0..400 {
        let epochs: Vec<_> = shards().map(|shard| tables.shard(shard).epoch).collect();
        let batch = random.batch(&epochs);
        let expected = tables.apply(&batch).map_err(without_reason);
        let answer = pollster::block_on(store.commit(batch.clone())).map_err(without_reason);
        assert_eq!(answer, expected, "seed {seed}, step {step}: {batch:?}");
        if random.below(8) == 0 {
            let row = random.registry_row();
            let answer = pollster::block_on(store.put_registry(row.clone()));
            assert_eq!(answer, Ok(tables.put_registry(row)), "seed {seed}, step {step}");
        }
        if step % 20 == 19 {
            let context = format!("seed {seed}, step {step}");
            shards().for_each(|shard| compare_shard(store, &tables, shard, &context));
            compare_lists(store, &tables, &context);
        }
    }
}

/// Of several reasons to refuse a batch a backend may name any.
fn without_reason(error: CommitError) -> CommitError {
    match error {
        CommitError::Refused(_) => CommitError::Refused(String::new()),
        error => error,
    }
}

fn shards() -> impl Iterator<Item = ShardId> {
    (0..SHARDS).map(shard)
}

fn compare_shard(store: &dyn Store, tables: &Tables, of: ShardId, context: &str) {
    assert_eq!(read(store.shard(of)), tables.shard(of), "{context}");
    assert_eq!(read(store.tasks(of, None, 99)), tables.tasks(of, None, 99), "{context}");
    assert_eq!(read(store.outbox(of, None, 99)), tables.outbox(of, None, 99), "{context}");
    assert_eq!(read(store.stranded(of, None, 99)), tables.stranded(of, None, 99), "{context}");
    for until in [time(0, 0), time(1_800_000_003, 0), Timestamp::NEVER] {
        let expected = tables.due(of, None, until, 99);
        assert_eq!(read(store.due(of, None, until, 99)), expected, "{context}");
    }
    for run in (0..RUNS).map(run) {
        assert_eq!(read(store.run(of, run)), tables.run(of, run), "{context}");
        assert_eq!(read(store.snapshot(of, run)), tables.snapshot(of, run), "{context}");
        assert_eq!(read(store.log(of, run, 0, 99)), tables.log(of, run, 0, 99), "{context}");
        for number in 0..3 {
            let expected = tables.inbox(of, run, number);
            assert_eq!(read(store.inbox(of, run, number)), expected, "{context}");
        }
    }
    for name in ["", "a", "b", "ü"] {
        let workflow = WorkflowRuns { namespace: "a".into(), workflow: name.into(), before: None };
        let expected = tables.runs_of(of, &workflow, 99);
        assert_eq!(read(store.runs_of(of, workflow, 99)), expected, "{context}");
    }
}

fn compare_lists(store: &dyn Store, tables: &Tables, context: &str) {
    let all = RunFilter::default();
    assert_eq!(read(store.runs(all.clone(), 99)), tables.runs(&all, 99), "{context}");
    assert_eq!(read(store.registry(String::new())), tables.registry(""), "{context}");
    for kind in WaitKind::ALL.map(Some).into_iter().chain([None]) {
        for name in [None, Some(String::new()), Some("a".to_owned())] {
            let filter = WaitFilter { kind, name, ..WaitFilter::default() };
            let expected = tables.waits(&filter, 99);
            assert_eq!(read(store.waits(filter, 99)), expected, "{context}");
        }
    }
}
