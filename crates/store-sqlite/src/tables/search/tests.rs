//! How much work lists and counts take: they use an index where one fits, and else examine a bounded number
//! of runs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use abide_core::{
    ids::{RunId, ShardId},
    search::{AttributeKind, Definitions, Query},
    time::Timestamp,
};
use abide_store::rows::AttributeRow;
use bytes::Bytes;

use super::*;
use crate::{
    open::MIGRATIONS,
    tables::{attributes, runs},
};

const RUNS: u32 = 20_000;

fn run(number: u32) -> RunId {
    RunId::from_parts(Timestamp::EPOCH, number.into())
}

fn started(number: u32) -> Timestamp {
    Timestamp::from_unix_millis(u64::from(number))
}

fn row(number: u32) -> RunRow {
    RunRow {
        run: run(number),
        namespace: "namespace".into(),
        workflow: format!("order-{number}").into(),
        ordinal: 1,
        workflow_type: if number == 7 { "Rare" } else { "Order" }.to_owned(),
        status: match number {
            5 => RunStatus::Running,
            6 => RunStatus::Failed,
            _ => RunStatus::Completed,
        },
        start_key: None,
        started_at: started(number),
        closed_at: (number != 5).then(|| started(number)),
        details: Bytes::new(),
        queue: "queue".to_owned(),
        parent: None,
    }
}

/// Many runs, in each of which an amount and a customer are set.
fn world() -> (Connection, Arc<AtomicUsize>) {
    let mut connection = Connection::open_in_memory().unwrap();
    MIGRATIONS.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
    connection.execute_batch("BEGIN").unwrap();
    let shard = ShardId::new(1).unwrap();
    for number in 1..=RUNS {
        runs::put(&connection, shard, &row(number)).unwrap();
        let amount = Value::Int(number.into()).to_entry(AttributeKind::Int);
        let customer = Value::Text(format!("c{}", number % 10)).to_entry(AttributeKind::Keyword);
        for (name, value) in [("Amount", amount), ("Customer", customer)] {
            let entry = AttributeRow {
                run: run(number),
                namespace: "namespace".into(),
                name: name.to_owned(),
                value: value.into(),
                started_at: started(number),
            };
            attributes::put(&connection, shard, &entry).unwrap();
        }
    }
    let operations = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&operations);
    let count = move || {
        counter.fetch_add(10, Relaxed);
        false
    };
    connection.progress_handler(10, Some(count)).unwrap();
    (connection, operations)
}

fn searching(query: &str) -> RunFilter {
    let attributes: Definitions = [
        ("Amount".to_owned(), AttributeKind::Int),
        ("Customer".to_owned(), AttributeKind::Keyword),
    ]
    .into_iter()
    .collect();
    let search = Query::parse(query, &attributes).unwrap();
    let namespace = Some("namespace".into());
    RunFilter { namespace, search: Some(search.into()), ..RunFilter::default() }
}

#[test]
fn a_query_that_an_index_serves_finds_its_runs_at_once() {
    let (connection, operations) = world();
    let page = ListLimit { examined: 100, ..ListLimit::rows(10) };
    for (query, expected) in [
        ("WorkflowId = 'order-9'", vec![9]),
        ("WorkflowType = 'Rare'", vec![7]),
        ("ExecutionStatus = 'Failed'", vec![6]),
        ("ExecutionStatus = 'Running'", vec![5]),
        ("WorkflowType = 'Order' AND ExecutionStatus = 'Running'", vec![5]),
        ("Amount = 17", vec![17]),
        ("Amount > 19998", vec![20_000, 19_999]),
        ("Amount BETWEEN 3 AND 4 AND Customer = 'c3'", vec![3]),
        (
            "WorkflowId STARTS_WITH 'order-1234'",
            vec![12_349, 12_348, 12_347, 12_346, 12_345, 12_344, 12_343, 12_342, 12_341, 12_340],
        ),
        ("Customer = 'c3' AND StartTime > '1970-01-01T00:00:19.990Z'", vec![19_993]),
        ("CloseTime > '1970-01-01T00:00:19.998Z' ORDER BY CloseTime DESC", vec![20_000, 19_999]),
        ("RunId = '00000000-0000-7000-8000-000000000007'", vec![7]),
    ] {
        operations.store(0, Relaxed);
        let part = list(&connection, &searching(query), page).unwrap();
        let expected: Vec<_> = expected.into_iter().map(run).collect();
        assert_eq!(part.found.iter().map(|row| row.run).collect::<Vec<_>>(), expected, "{query}");
        let spent = operations.load(Relaxed);
        assert!(spent < 5_000, "{spent} operations for {query}");
    }
    operations.store(0, Relaxed);
    // Many runs have the value, and they stand in the order of the list.
    let part = list(&connection, &searching("Customer = 'c3'"), page).unwrap();
    assert_eq!(part.found.len(), 10);
    assert_eq!(part.found[0].run, run(19_993));
    let spent = operations.load(Relaxed);
    assert!(spent < 5_000, "{spent} operations");
}

#[test]
fn a_read_of_a_list_examines_a_bounded_number_of_runs() {
    let (connection, operations) = world();
    for query in ["TaskQueue = 'other'", "Amount > 10 AND TaskQueue = 'other'"] {
        operations.store(0, Relaxed);
        let filter = searching(query);
        let next = Some((started(19_901), run(19_901)));
        let counted = count(&connection, &filter, 100).unwrap();
        assert_eq!(counted, ListPart { found: 0, next }, "{query}");
        let limit = ListLimit { examined: 100, ..ListLimit::rows(10) };
        let listed = list(&connection, &filter, limit).unwrap();
        assert_eq!(listed, ListPart { found: Vec::new(), next }, "{query}");
        let spent = operations.load(Relaxed);
        assert!(spent < 30_000, "{spent} operations for {query}");
    }
    let rest = RunFilter { after: Some((started(51), run(51))), ..RunFilter::default() };
    assert_eq!(count(&connection, &rest, 100).unwrap(), ListPart { found: 50, next: None });
    operations.store(0, Relaxed);
    let tallied = tally(&connection, &searching("TaskQueue = 'queue' GROUP BY Customer"), 1_000);
    let tallied = tallied.unwrap();
    assert_eq!((tallied.groups.len(), tallied.more), (10, true));
    assert_eq!(tallied.groups.values().sum::<u64>(), 1_000);
    let spent = operations.load(Relaxed);
    assert!(spent < 100_000, "{spent} operations");
}
