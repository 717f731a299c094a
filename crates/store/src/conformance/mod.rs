//! The conformance suite. Every backend runs it by one call of [`run`], and durable backends also
//! by one of [`run_reopened`]. Each check gets a fresh, empty store; a check that is added here
//! reaches all backends. It knows nothing about how a backend stores rows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use abide_core::ids::{RunId, ShardId};

use crate::{
    Batch, CommitError, Pending, RunFilter, Store, WorkflowRuns, Write,
    rows::{ListLimit, LogLimit, RunKey, RunRow, SnapshotRow},
};

mod commits;
mod lists;
mod model;
mod pages;
mod random;
mod rows;
mod samples;
mod search;
mod values;

type Check = (&'static str, fn(&dyn Store));

/// Lists functions with their names, so that a failure names its check.
macro_rules! checks {
    ($($check:ident),* $(,)?) => { &[$((concat!(module_path!(), "::", stringify!($check)), $check)),*] };
}
use checks;

const CHECKS: [&[Check]; 7] = [
    commits::CHECKS,
    rows::CHECKS,
    pages::CHECKS,
    lists::CHECKS,
    search::CHECKS,
    values::CHECKS,
    model::CHECKS,
];

/// Runs every check on a fresh store from `fresh`, and panics with the names and messages of those
/// that failed.
pub fn run<S: Store>(mut fresh: impl FnMut() -> S) {
    let mut failures = Vec::new();
    for (name, check) in CHECKS.into_iter().flatten() {
        let store = fresh();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&store))) {
            failures.push(format!("{name}: {}", message(panic.as_ref())));
        }
    }
    assert!(failures.is_empty(), "the store does not conform:\n{}", failures.join("\n"));
}

/// Writes to the store and reopens it, many times, and panics unless every committed row, epochs
/// included, is there each time. `reopen` may close the store or make it crash.
pub fn run_reopened<S: Store>(store: S, reopen: impl FnMut(S) -> S) {
    model::survives(store, reopen);
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}

/// Commits at epoch zero, the epoch of a shard that no check has claimed.
fn commit(store: &dyn Store, shard: ShardId, writes: Vec<Write>) {
    if let Err(error) = try_commit(store, shard, 0, writes) {
        panic!("commit failed: {error}");
    }
}

fn try_commit(
    store: &dyn Store,
    shard: ShardId,
    epoch: u64,
    writes: Vec<Write>,
) -> Result<(), CommitError> {
    pollster::block_on(store.commit(Batch { shard, epoch, writes }))
}

fn read<T>(pending: Pending<'_, T>) -> T {
    match pollster::block_on(pending) {
        Ok(answer) => answer,
        Err(error) => panic!("read failed: {error}"),
    }
}

/// What the store has under the id of this run, among the runs of its workflow.
fn stored(store: &dyn Store, shard: ShardId, row: &RunRow) -> Option<RunRow> {
    let (namespace, workflow) = (row.namespace.clone(), row.workflow.clone());
    let filter = RunFilter {
        namespace: Some(namespace.clone()),
        workflow: Some(workflow.clone()),
        ..RunFilter::default()
    };
    let runs = WorkflowRuns { namespace, workflow, before: None };
    let keys = read(store.runs_of(shard, runs, 100));
    let key = keys.into_iter().find(|key| key.run == row.run)?;
    let listed = read(store.runs(filter, ListLimit::rows(100))).found;
    let listed = listed.into_iter().find(|listed| listed.run == row.run);
    assert_eq!(Some(key), listed.as_ref().map(RunKey::of), "both reads find the same run");
    listed
}

/// Latest snapshot of the run.
fn snapshot_of(store: &dyn Store, shard: ShardId, run: RunId) -> Option<SnapshotRow> {
    read(store.load(shard, run, LogLimit::rows(1))).snapshot
}

/// Walks all pages of two rows, and checks that only the last is shorter. `next` reads the page
/// after the given row.
fn pages_of_two<T: Clone>(mut next: impl FnMut(Option<&T>) -> Vec<T>) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    loop {
        let page = next(all.last());
        assert!(page.len() <= 2, "a page of two has {} rows", page.len());
        let last = page.len() < 2;
        all.extend(page);
        if last {
            return all;
        }
    }
}
