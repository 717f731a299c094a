//! Checks of the two lists over all shards: each filter alone, every pair of filters, and paging
//! with a filter, compared with the rows themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use abide_core::{
    ids::ShardId,
    tally::{RunGroup, RunTally, TallyWaits, WaitTally},
    time::Timestamp,
};
use bytes::Bytes;

use crate::{
    RunFilter, Store, WaitFilter, WaitPosition, Write,
    conformance::{
        Check, checks, commit, pages_of_two, read,
        samples::{run, run_row, shard, time, wait_row},
    },
    rows::{ListLimit, ListPart, RunPosition, RunRow, RunStatus, WaitKind, WaitRow},
};

pub(super) const CHECKS: &[Check] =
    checks![filters_of_runs, filters_of_waits, a_page_of_large_runs_ends_early, tallies];

fn filters_of_runs(store: &dyn Store) {
    let mut rows: Vec<RunRow> = (0..36).map(varied_run).collect();
    for (number, row) in (0_u8..).zip(&rows) {
        commit(store, shard(number), vec![Write::PutRun(row.clone())]);
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.run)));
    for filter in run_filters() {
        let expected: Vec<_> = rows.iter().filter(|row| filter.matches(row)).cloned().collect();
        let all = read(store.runs(filter.clone(), ListLimit::rows(100)));
        assert_eq!(all, ListPart { found: expected.clone(), next: None }, "{filter:?}");
        let count = u64::try_from(expected.len()).expect("few rows");
        let counted = read(store.count_runs(filter.clone(), 100));
        assert_eq!(counted, ListPart { found: count, next: None }, "counted: {filter:?}");
        for examined in [1, 5, 36, 37] {
            check_parts(store, &filter, examined, &expected);
        }
        let paged = pages_of_two(|last: Option<&RunRow>| {
            let after = last.map(|row| (row.started_at, row.run)).or(filter.after);
            read(store.runs(RunFilter { after, ..filter.clone() }, ListLimit::rows(2))).found
        });
        assert_eq!(paged, expected, "in pages: {filter:?}");
    }
}

/// Reads that examine a bounded number of rows add up to the whole, and each says where the next
/// one begins. Only the runs of one workflow may be examined at once.
fn check_parts(store: &dyn Store, filter: &RunFilter, examined: usize, expected: &[RunRow]) {
    let at_once = filter.span().workflow.is_some();
    let most = if at_once { usize::MAX } else { examined };
    let whole_in = |read_after: &mut dyn FnMut(RunFilter) -> Option<RunPosition>| {
        let mut filter = filter.clone();
        while let Some(next) = read_after(filter.clone()) {
            assert!(filter.after.is_none_or(|after| next < after), "{next:?} after {filter:?}");
            filter.after = Some(next);
        }
    };
    let mut listed = Vec::new();
    whole_in(&mut |filter| {
        let part = read(store.runs(filter, ListLimit { examined, ..ListLimit::rows(3) }));
        assert!(part.found.len() <= most.min(3), "{part:?}");
        listed.extend(part.found);
        part.next
    });
    assert_eq!(listed, expected, "{examined} at a time: {filter:?}");
    let mut counted = Vec::new();
    whole_in(&mut |filter| {
        let part = read(store.count_runs(filter, examined));
        counted.push(usize::try_from(part.found).expect("few rows"));
        part.next
    });
    assert_eq!(counted.iter().sum::<usize>(), expected.len(), "{examined} at a time: {filter:?}");
    assert!(counted.iter().all(|count| *count <= most), "{examined} at a time: {counted:?}");
}

/// Rows differ much in size, and a whole page is held in memory.
fn a_page_of_large_runs_ends_early(store: &dyn Store) {
    let sizes = [1_000, 0, 10, 990, 1, 100_000, 3, 997, 0];
    let rows = (1..).zip(sizes).map(|(number, size)| {
        let (details, namespace) = (Bytes::from(vec![7; size]), "n".into());
        RunRow { details, namespace, ..run_row(run(number)) }
    });
    let mut rows: Vec<RunRow> = rows.collect();
    rows.reverse();
    commit(store, shard(1), rows.iter().cloned().map(Write::PutRun).collect());
    let workflow = Some(rows[0].workflow.clone());
    let all = RunFilter { namespace: Some("n".into()), ..RunFilter::default() };
    for filter in [all.clone(), RunFilter { workflow, ..all }] {
        // In the order of the list, each page ends with the row that fills it.
        let expected: [&[usize]; 4] = [&[0, 997, 3], &[100_000], &[1, 990, 10], &[0, 1_000]];
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let limit = ListLimit { bytes: 1_000, ..ListLimit::rows(100) };
            let part = read(store.runs(RunFilter { after, ..filter.clone() }, limit));
            let full = limit.filled_by(&part.found);
            assert_eq!(part.next, part.found.last().filter(|_| full).map(RunRow::position));
            pages.push(part.found.iter().map(|row| row.details.len()).collect::<Vec<_>>());
            after = part.next;
            if after.is_none() {
                break;
            }
        }
        pages.retain(|page| !page.is_empty());
        assert_eq!(pages, expected, "{filter:?}");
        let one = ListLimit { bytes: 0, ..ListLimit::rows(100) };
        assert_eq!(read(store.runs(filter, one)).found, rows[..1], "one row at least");
    }
}

fn varied_run(number: u8) -> RunRow {
    let mut row = run_row(run(u64::from(number)));
    row.namespace = ["n", "m"][usize::from(number % 2)].into();
    row.workflow = ["v", "w", "x"][usize::from(number % 3)].into();
    row.workflow_type = ["T", "U"][usize::from(number / 2 % 2)].to_owned();
    row.status = RunStatus::ALL[usize::from(number % 9)];
    row.started_at = time(1_800_000_000 + i64::from(number / 6), u32::from(number % 3));
    row.ordinal = u64::from(number);
    row
}

/// Each single filter and each pair of two.
fn run_filters() -> Vec<RunFilter> {
    type Set = fn(&mut RunFilter);
    let sets: [Set; 11] = [
        |filter| filter.namespace = Some("n".into()),
        |filter| filter.known = ["m".into()].into(),
        |filter| filter.known = ["m".into(), "n".into(), "o".into()].into(),
        |filter| filter.workflow = Some("w".into()),
        |filter| filter.workflow_type = Some("T".to_owned()),
        |filter| filter.statuses = vec![RunStatus::Running],
        |filter| filter.statuses = vec![RunStatus::Completed, RunStatus::Paused, RunStatus::Failed],
        |filter| filter.statuses = RunStatus::ALL.to_vec(),
        |filter| filter.started_from = Some(time(1_800_000_002, 1)),
        |filter| filter.started_before = Some(time(1_800_000_004, 1)),
        |filter| filter.after = Some((time(1_800_000_003, 2), run(20))),
    ];
    pairs(&sets)
}

fn filters_of_waits(store: &dyn Store) {
    let mut rows: Vec<(ShardId, WaitRow)> = (0..40).map(varied_wait).collect();
    for (shard, row) in &rows {
        let of_run = RunRow {
            namespace: row.namespace.clone(),
            workflow: row.workflow.clone(),
            ..run_row(row.run)
        };
        commit(store, *shard, vec![Write::PutRun(of_run), Write::PutWait(row.clone())]);
    }
    rows.sort_by_key(|(shard, row)| WaitPosition::of(*shard, row));
    for filter in wait_filters() {
        let passes = |(shard, row): &&(ShardId, WaitRow)| {
            filter.matches(&WaitPosition::of(*shard, row), row)
        };
        let expected: Vec<_> = rows.iter().filter(passes).cloned().collect();
        assert_eq!(read(store.waits(filter.clone(), 100)), expected, "{filter:?}");
        let paged = pages_of_two(|last: Option<&(ShardId, WaitRow)>| {
            let position = last.map(|(shard, row)| WaitPosition::of(*shard, row));
            let after = position.or_else(|| filter.after.clone());
            read(store.waits(WaitFilter { after, ..filter.clone() }, 2))
        });
        assert_eq!(paged, expected, "in pages: {filter:?}");
    }
}

/// What is counted is what the rows themselves say, and what is left out is said.
fn tallies(store: &dyn Store) {
    let waits: Vec<(ShardId, WaitRow)> = (0..40).map(varied_wait).collect();
    for (shard, row) in &waits {
        let of_run = RunRow { workflow_type: row.workflow_type.clone(), ..run_row(row.run) };
        commit(store, *shard, vec![Write::PutRun(of_run), Write::PutWait(row.clone())]);
    }
    let runs: BTreeMap<_, _> = waits.iter().map(|(_, row)| (row.run, row)).collect();
    let of_type = |row: &&&WaitRow| row.workflow_type == "T";
    let count = u64::try_from(runs.values().filter(of_type).count()).expect("few rows");
    let filter = RunFilter { workflow_type: Some("T".to_owned()), ..RunFilter::default() };
    let tally = read(store.tally_runs(filter.clone(), runs.len()));
    let expected = RunGroup::Type { status: run_row(run(1)).status, workflow_type: "T".to_owned() };
    let groups = [(expected.clone(), count)].into();
    assert_eq!(tally, RunTally { groups, more: false });
    let some = read(store.tally_runs(filter, runs.len() - 1));
    assert!(some.more && some.groups.get(&expected) <= Some(&count), "{some:?}");
    for asked in wait_tallies() {
        let mut exact = WaitTally { whole: asked.intervals, ..WaitTally::default() };
        for group in waits.iter().filter_map(|(_, row)| asked.group_of(row)) {
            exact.add(group, 1);
        }
        assert_eq!(read(store.tally_waits(asked.clone(), 100)), exact, "{asked:?}");
        let ending = waits.iter().filter(|(_, row)| asked.interval_of(row.until).is_some()).count();
        for most in [2, 11] {
            check_tally_in_part(store, &asked, (most, ending), &exact);
        }
    }
}

/// A tally that may not examine all of the waits that end in its intervals.
fn check_tally_in_part(
    store: &dyn Store,
    asked: &TallyWaits,
    (most, ending): (usize, usize),
    exact: &WaitTally,
) {
    let part = read(store.tally_waits(asked.clone(), most));
    assert!(part.more || ending <= most, "{most}: {asked:?}");
    assert!(part.more || part == *exact, "{most}: {asked:?}");
    let whole = |tally: &WaitTally| {
        let mut groups = tally.groups.clone();
        groups.retain(|group, _| group.interval < part.whole);
        groups
    };
    assert_eq!(whole(&part), whole(exact), "{most}: {asked:?}");
    for (group, count) in &part.groups {
        assert!(exact.groups.get(group) >= Some(count), "{most}: {group:?} of {asked:?}");
    }
}

fn wait_tallies() -> Vec<TallyWaits> {
    let all = TallyWaits {
        namespace: None,
        known: BTreeSet::new(),
        workflow_type: None,
        kinds: BTreeSet::new(),
        from: time(1_800_000_000, 0),
        interval: Duration::from_nanos(1_000_000_007),
        intervals: 4,
    };
    let kinds = [WaitKind::Timer, WaitKind::Approval].into();
    vec![
        TallyWaits { namespace: Some("n".into()), ..all.clone() },
        TallyWaits { known: ["m".into()].into(), ..all.clone() },
        TallyWaits { workflow_type: Some("T".to_owned()), ..all.clone() },
        TallyWaits { kinds, ..all.clone() },
        TallyWaits { from: time(1_800_000_002, 20), ..all.clone() },
        TallyWaits { intervals: 1, ..all.clone() },
        // Over the end of time, and over several days.
        TallyWaits { interval: Duration::MAX, ..all.clone() },
        TallyWaits {
            from: time(1_799_000_000, 0),
            interval: Duration::from_secs(86_400),
            intervals: 20,
            ..all.clone()
        },
        all,
    ]
}

/// Run 1 has eight waits, the others one each.
fn varied_wait(number: u8) -> (ShardId, WaitRow) {
    const WAITS: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"b", b"\xff", b"\xff\xff"];
    let (of_run, wait) =
        if number < 8 { (1, WAITS[usize::from(number)]) } else { (number, WAITS[3]) };
    let mut row = wait_row(run(u64::from(of_run)), wait);
    row.namespace = ["n", "m"][usize::from(of_run % 2)].into();
    row.workflow = ["v", "w", "x"][usize::from(of_run % 3)].into();
    row.workflow_type = ["T", "U"][usize::from(of_run / 2 % 2)].to_owned();
    row.kind = WaitKind::ALL[usize::from(number % 6)];
    row.since = time(1_700_000_000 + i64::from(number / 5), u32::from(number % 5));
    row.timer = (!number.is_multiple_of(4)).then(|| "timer".into());
    row.name = ["s", "t", ""][usize::from(number % 3)].to_owned();
    row.until = match number % 4 {
        0 => Timestamp::NEVER,
        step => time(1_800_000_000 + i64::from(step), u32::from(number)),
    };
    (shard(of_run), row)
}

fn wait_filters() -> Vec<WaitFilter> {
    type Set = fn(&mut WaitFilter);
    let sets: [Set; 19] = [
        |filter| filter.known = ["m".into()].into(),
        |filter| filter.known = ["m".into(), "n".into(), "o".into()].into(),
        |filter| filter.namespace = Some("n".into()),
        |filter| filter.run = Some((shard(1), run(1))),
        |filter| filter.run = Some((shard(2), run(1))),
        |filter| filter.workflow = Some("w".into()),
        |filter| filter.workflow_type = Some("T".to_owned()),
        |filter| filter.kind = Some(WaitKind::Timer),
        |filter| filter.kind = Some(WaitKind::Signal),
        |filter| (filter.kind, filter.name) = (Some(WaitKind::Signal), Some("t".to_owned())),
        |filter| (filter.kind, filter.name) = (Some(WaitKind::Timer), Some("s".to_owned())),
        |filter| (filter.kind, filter.name) = (Some(WaitKind::Condition), Some(String::new())),
        |filter| filter.kind = Some(WaitKind::Approval),
        |filter| (filter.kind, filter.name) = (Some(WaitKind::Approval), Some("s".to_owned())),
        |filter| filter.since_before = Some(time(1_700_000_004, 2)),
        |filter| filter.since_before = Some(Timestamp::NEVER),
        |filter| filter.until = Some(time(1_800_000_002, 20)),
        |filter| filter.until = Some(Timestamp::NEVER),
        |filter| {
            let (shard, row) = varied_wait(21);
            filter.after = Some(WaitPosition::of(shard, &row));
        },
    ];
    pairs(&sets)
}

/// The empty filter, every filter with one setting, and every filter with two.
fn pairs<F: Default>(sets: &[fn(&mut F)]) -> Vec<F> {
    let mut filters = vec![F::default()];
    for first in sets {
        for second in sets {
            let mut filter = F::default();
            first(&mut filter);
            second(&mut filter);
            filters.push(filter);
        }
    }
    filters
}
