//! A worker with many matches in flight, or that does not read, takes nothing more for now.

use super::*;

fn delivered(bench: &mut Bench, session: &str) -> Vec<QueueOutput> {
    bench.handle(QueueMessage::Delivered(session.into()))
}

#[test]
fn a_worker_has_few_matches_in_flight_whatever_its_credit() {
    let mut bench = Bench::cautious(4);
    for run in 1..=9 {
        bench.offer(task(run));
    }
    let matches = |runs: std::ops::RangeInclusive<u8>| -> Vec<_> {
        runs.map(|run| matched(task(run), worker("a"))).collect()
    };
    assert_eq!(bench.credit(worker("a"), 100), matches(1..=4));
    assert_eq!(bench.credit(worker("a"), 100), [], "more credit changes nothing");
    assert_eq!(delivered(&mut bench, "a"), [], "it resumes when half of them are there");
    assert_eq!(delivered(&mut bench, "a"), matches(5..=6));
    delivered(&mut bench, "a");
    assert_eq!(bench.unmatched(task(6), worker("a")), matches(7..=8), "a failed match counts too");
}

#[test]
fn the_bound_holds_over_all_queues_of_a_worker() {
    let mut bench = Bench::cautious(2);
    let other = |run| Offer { queue: queue("bills"), ..task(run) };
    let credit = |queue| QueueMessage::Credit { queue, worker: worker("a"), credits: 9 };
    assert_eq!(bench.handle(credit(queue("bills"))), []);
    bench.credit(worker("a"), 9);
    for run in [1, 2] {
        assert_eq!(bench.offer(task(run)).len(), 1);
    }
    assert_eq!(bench.offer(other(3)), []);
    assert_eq!(bench.offer(task(4)), []);
    // One may come: whatever queue it is of, the other waits.
    assert_eq!(delivered(&mut bench, "a"), [matched(other(3), worker("a"))]);
    assert_eq!(delivered(&mut bench, "a"), [matched(task(4), worker("a"))]);
}

#[test]
fn work_for_a_paused_worker_goes_to_another() {
    let mut bench = Bench::cautious(1);
    bench.credit(worker("a"), 5);
    assert_eq!(bench.offer(task(1)), [matched(task(1), worker("a"))]);
    let preferred = preferring(task(2), "a");
    assert_eq!(bench.offer(preferred.clone()), []);
    assert_eq!(bench.credit(worker("b"), 1), [matched(preferred, worker("b"))]);
}

#[test]
fn a_worker_that_does_not_read_keeps_its_credit_and_takes_nothing() {
    let mut bench = Bench::cautious(4);
    bench.credit(worker("a"), 2);
    bench.handle(QueueMessage::Hold("a".into()));
    assert_eq!(bench.offer(task(1)), []);
    assert_eq!(bench.credit(worker("a"), 1), []);
    assert_eq!(bench.0.credits_of(&queue("orders"), &"a".into()), 3);
    let resumed = bench.handle(QueueMessage::Resume("a".into()));
    assert_eq!(resumed, [matched(task(1), worker("a"))]);
    bench.gone("a");
    assert_eq!(bench.handle(QueueMessage::Resume("a".into())), [], "it is gone");
}
