//! Lists and counts of runs are made of reads that each examine a bounded number of rows, so that one
//! that examines many does not keep the others waiting.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use abide_core::{
    limits::Limits,
    list::RunFilter,
    operation::{Count, CountRuns, ListRuns, RunRows},
    payload::Payload,
};
use abide_engine::{Engine, Options};
use abide_store::{
    Pending, Store,
    forward::{Forward, Read},
    memory::MemoryStore,
};

use crate::support::{ask, start, start_call};

/// Counts the reads that count runs.
#[derive(Default)]
struct CountingStore {
    kept: MemoryStore,
    counts: AtomicUsize,
}

impl Forward for CountingStore {
    fn target(&self) -> &dyn Store {
        &self.kept
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Read, answer: Pending<'a, T>) -> Pending<'a, T> {
        if read == Read::CountRuns {
            self.counts.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_counts_are_whole_however_little_each_read_examines() {
    let store = Arc::new(CountingStore::default());
    let limits = Limits { examined_rows: 2, page_rows: 3, ..Limits::default() };
    let engine = Engine::start(Arc::clone(&store) as _, Options { limits, ..Options::default() });
    for number in 0..9 {
        let workflow_type = if number % 4 == 0 { "rare" } else { "common" };
        start(&engine, &format!("run-{number}"), workflow_type).await;
    }
    for (workflow_type, number) in [(None, 9), (Some("rare"), 3), (Some("no such type"), 0)] {
        let workflow_type = workflow_type.map(str::to_owned);
        let filter = RunFilter { workflow_type, ..RunFilter::default() };
        let counted = ask(&engine, CountRuns { filter: filter.clone() }).await;
        assert_eq!(counted, Ok(Count(number)), "{filter:?}");
        let reads = store.counts.swap(0, Ordering::Relaxed);
        assert_eq!(reads, 5, "nine runs in reads of two: {filter:?}");
        assert_eq!(listed(&engine, filter).await, number);
    }
    engine.shutdown().await;
}

/// A page is one message, and the rows of all pages in flight are in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_runs_is_bounded_by_bytes() {
    let limits = Limits { examined_rows: 2, page_bytes: 10_000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let engine = Engine::start(Arc::new(MemoryStore::default()), options);
    for number in 0..9 {
        let mut call = start_call(&format!("run-{number}"), "large");
        call.spec.memo = [("large".to_owned(), Payload::new(vec![7; 3_000]))].into();
        ask(&engine, call).await.expect("it starts");
    }
    assert_eq!(pages(&engine).await, [4, 4, 1], "four rows fill a page");
    engine.shutdown().await;
}

/// Between two reads, a list that is not finished holds no turn, and so only little memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_not_small_ends_before_its_next_read() {
    let limits = Limits { examined_rows: 2, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let engine = Engine::start(Arc::new(MemoryStore::default()), options);
    for (number, bytes) in [(0, 100), (1, 40_000), (2, 40_000), (3, 40_000), (4, 100)] {
        let mut call = start_call(&format!("run-{number}"), "any");
        call.spec.memo = [("memo".to_owned(), Payload::new(vec![7; bytes]))].into();
        ask(&engine, call).await.expect("it starts");
    }
    assert_eq!(pages(&engine).await, [4, 1], "the second read makes it large");
    engine.shutdown().await;
}

/// Lists all runs in pages, which are full except for the last one.
async fn listed(engine: &Engine, mut filter: RunFilter) -> u64 {
    let mut listed = 0;
    loop {
        let asked = ListRuns { filter: filter.clone(), limit: None };
        let RunRows { rows, next } = ask(engine, asked).await.expect("a page");
        listed += u64::try_from(rows.len()).expect("few rows");
        assert!(
            rows.len() == 3 || next.is_none(),
            "a page of {} rows with more to come",
            rows.len()
        );
        filter.after = next;
        if next.is_none() {
            return listed;
        }
    }
}

/// Numbers of rows of the pages of all runs.
async fn pages(engine: &Engine) -> Vec<usize> {
    let (mut filter, mut pages) = (RunFilter::default(), Vec::new());
    loop {
        let asked = ListRuns { filter: filter.clone(), limit: None };
        let RunRows { rows, next } = ask(engine, asked).await.expect("a page");
        pages.push(rows.len());
        filter.after = next;
        if next.is_none() {
            return pages;
        }
    }
}
