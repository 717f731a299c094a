//! The rules of matching, one example each.

use super::*;
use crate::queue::{FULL_QUEUES, IDLE_QUEUES_MAX, builds::BUILDS_MAX};

#[test]
fn an_offer_meets_a_waiting_worker() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.credit(worker("a"), 1), []);
    assert_eq!(bench.offer(task(1)), [matched(task(1), worker("a"))]);
}

#[test]
fn a_worker_meets_waiting_offers_first_come_first_served() {
    let mut bench = Bench::new(10);
    for run in [3, 1, 2] {
        assert_eq!(bench.offer(task(run)), []);
    }
    let expected = [matched(task(3), worker("a")), matched(task(1), worker("a"))];
    assert_eq!(bench.credit(worker("a"), 2), expected);
    assert_eq!(bench.credit(worker("b"), 2), [matched(task(2), worker("b"))]);
}

#[test]
fn a_repeated_offer_is_one_offer() {
    let mut bench = Bench::new(10);
    bench.offer(task(1));
    bench.offer(task(1));
    assert_eq!(bench.credit(worker("a"), 2), [matched(task(1), worker("a"))]);
}

#[test]
fn a_repeated_offer_keeps_its_place_and_changes_its_terms() {
    let mut bench = Bench::new(10);
    bench.offer(except(task(1), &["x"]));
    bench.offer(task(2));
    let changed = preferring(task(1), "b");
    bench.offer(changed.clone());
    let outputs = bench.credit(built("a", "x"), 1);
    assert_eq!(outputs, [new_build("x"), matched(changed, built("a", "x"))]);
}

#[test]
fn a_repeated_offer_is_matched_at_once_if_its_new_terms_allow() {
    let mut bench = Bench::new(10);
    bench.credit(built("a", "x"), 1);
    assert_eq!(bench.offer(except(task(1), &["x"])), []);
    assert_eq!(bench.offer(task(1)), [matched(task(1), built("a", "x"))]);
    assert_eq!(bench.credit(worker("b"), 1), []);
}

#[test]
fn a_preferred_worker_with_credit_gets_the_offer() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    bench.credit(worker("b"), 1);
    let offer = preferring(task(1), "b");
    assert_eq!(bench.offer(offer.clone()), [matched(offer, worker("b"))]);
}

#[test]
fn nobody_waits_for_a_preferred_worker_without_credit() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    bench.credit(worker("b"), 0);
    let offer = preferring(task(1), "b");
    assert_eq!(bench.offer(offer.clone()), [matched(offer, worker("a"))]);
}

#[test]
fn an_excepted_build_never_gets_the_offer_and_later_ones_go_on() {
    let mut bench = Bench::new(10);
    let blocked = except(preferring(task(1), "a"), &["x"]);
    bench.offer(blocked.clone());
    bench.offer(task(2));
    let outputs = bench.credit(built("a", "x"), 2);
    assert_eq!(outputs, [new_build("x"), matched(task(2), built("a", "x"))]);
    let outputs = bench.credit(built("b", "y"), 1);
    assert_eq!(outputs, [new_build("y"), matched(blocked, built("b", "y"))]);
}

#[test]
fn code_without_a_build_is_never_excepted() {
    let mut bench = Bench::new(10);
    let offer = except(task(1), &["x"]);
    bench.offer(offer.clone());
    assert_eq!(bench.credit(worker("a"), 1), [matched(offer, worker("a"))]);
}

#[test]
fn queries_go_before_tasks_and_in_order_among_themselves() {
    let mut bench = Bench::new(10);
    bench.offer(task(1));
    bench.offer(query(2));
    bench.offer(query(3));
    let a = worker("a");
    let expected =
        [matched(query(2), a.clone()), matched(query(3), a.clone()), matched(task(1), a)];
    assert_eq!(bench.credit(worker("a"), 3), expected);
}

#[test]
fn workers_take_turns() {
    let mut bench = Bench::new(10);
    for session in ["a", "b", "c"] {
        bench.credit(worker(session), 2);
    }
    let sessions: Vec<_> = (1..=6)
        .flat_map(|run| bench.offer(task(run)))
        .map(|output| match output {
            QueueOutput::Match(_, worker) => worker.session.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sessions, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn turns_go_across_builds() {
    let mut bench = Bench::new(10);
    bench.credit(built("a", "y"), 2);
    bench.credit(built("b", "x"), 2);
    let first = bench.offer(task(1));
    let second = bench.offer(task(2));
    assert_eq!(first, [matched(task(1), built("a", "y"))]);
    assert_eq!(second, [matched(task(2), built("b", "x"))]);
}

#[test]
fn credits_add_up_and_survive_idle_times() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    bench.credit(worker("a"), 1);
    assert_eq!(bench.offer(task(1)), [matched(task(1), worker("a"))]);
    assert_eq!(bench.offer(task(2)), [matched(task(2), worker("a"))]);
    assert_eq!(bench.offer(task(3)), []);
}

#[test]
fn queues_are_independent() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    let other = queue("letters");
    let letter = Offer { queue: other.clone(), ..task(1) };
    assert_eq!(bench.offer(letter.clone()), []);
    let credit = QueueMessage::Credit { queue: other, worker: worker("a"), credits: 1 };
    assert_eq!(bench.handle(credit), [matched(letter, worker("a"))]);
    assert_eq!(bench.offer(task(1)), [matched(task(1), worker("a"))]);
}

#[test]
fn a_match_that_came_to_nothing_gives_the_credit_back() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    bench.offer(task(1));
    bench.offer(task(2));
    assert_eq!(bench.unmatched(task(1), worker("a")), [matched(task(2), worker("a"))]);
}

#[test]
fn a_worker_that_is_gone_gets_nothing_back() {
    let mut bench = Bench::new(10);
    bench.credit(worker("a"), 1);
    bench.offer(task(1));
    bench.gone("a");
    assert_eq!(bench.unmatched(task(1), worker("a")), []);
    assert_eq!(bench.offer(task(2)), []);
}

#[test]
fn the_credits_of_a_lost_stream_vanish_from_all_queues() {
    let mut bench = Bench::new(10);
    let other = queue("letters");
    bench.credit(worker("a"), 5);
    bench.handle(QueueMessage::Credit { queue: other.clone(), worker: worker("a"), credits: 5 });
    bench.gone("a");
    assert_eq!(bench.offer(task(1)), []);
    assert_eq!(bench.offer(Offer { queue: other, ..task(2) }), []);
}

#[test]
fn the_offers_of_a_closed_shard_vanish() {
    let mut bench = Bench::new(10);
    for run in 1..=5 {
        bench.offer(task(run));
    }
    bench.shard_closed(1);
    let runs: Vec<_> = bench.credit(worker("a"), 5);
    let expected: Vec<_> = [2, 3, 4].map(|run| matched(task(run), worker("a"))).into();
    assert_eq!(runs, expected);
}

#[test]
fn a_full_queue_turns_offers_away_and_asks_once_at_half() {
    let mut bench = Bench::new(4);
    for run in 1..=6 {
        assert_eq!(bench.offer(task(run)), []);
    }
    assert_eq!(bench.credit(worker("a"), 1), [matched(task(1), worker("a"))]);
    assert_eq!(bench.credit(worker("a"), 1), [matched(task(2), worker("a")), refill()]);
    let rest = [matched(task(3), worker("a")), matched(task(4), worker("a"))];
    assert_eq!(bench.credit(worker("a"), 5), rest);
}

#[test]
fn a_queue_that_turned_nothing_away_asks_for_nothing() {
    let mut bench = Bench::new(2);
    bench.offer(task(1));
    bench.offer(task(2));
    bench.offer(task(2));
    let expected = [matched(task(1), worker("a")), matched(task(2), worker("a"))];
    assert_eq!(bench.credit(worker("a"), 3), expected);
}

#[test]
fn offers_that_vanish_with_their_shard_make_room() {
    let mut bench = Bench::new(2);
    for run in [1, 5, 2] {
        bench.offer(task(run));
    }
    assert_eq!(bench.shard_closed(1), [refill()]);
}

#[test]
fn a_query_displaces_a_task_of_a_full_queue() {
    let mut bench = Bench::new(2);
    bench.offer(task(1));
    bench.offer(task(2));
    bench.offer(query(3));
    let outputs = bench.credit(worker("a"), 5);
    let expected = [matched(query(3), worker("a")), matched(task(1), worker("a")), refill()];
    assert_eq!(outputs, expected);
}

#[test]
fn an_offer_that_somebody_may_take_displaces_one_that_nobody_may() {
    let mut bench = Bench::new(2);
    bench.credit(built("a", "x"), 0);
    bench.offer(except(task(1), &["x"]));
    bench.offer(except(task(2), &["x"]));
    bench.offer(task(3));
    assert_eq!(bench.credit(built("a", "x"), 1), [matched(task(3), built("a", "x")), refill()]);
}

#[test]
fn stuck_offers_do_not_hide_rows_that_somebody_may_take() {
    let mut bench = Bench::new(2);
    bench.credit(built("a", "x"), 0);
    bench.credit(built("b", "y"), 0);
    bench.offer(except(task(1), &["x"]));
    bench.offer(except(task(2), &["x"]));
    bench.offer(task(3));
    assert_eq!(bench.gone("b"), [refill()]);
    assert_eq!(bench.offer(except(task(2), &["x"])), []);
    assert_eq!(bench.offer(task(3)), []);
    assert_eq!(bench.credit(built("a", "x"), 1), [matched(task(3), built("a", "x")), refill()]);
}

#[test]
fn stuck_offers_that_are_turned_away_ask_for_nothing_until_other_code_connects() {
    let mut bench = Bench::new(2);
    bench.credit(built("a", "x"), 1);
    for run in 1..=3 {
        assert_eq!(bench.offer(except(task(run), &["x"])), []);
    }
    let first = except(task(1), &["x"]);
    let outputs = bench.credit(built("b", "y"), 1);
    assert_eq!(outputs, [new_build("y"), matched(first, built("b", "y")), refill()]);
}

#[test]
fn each_build_is_announced_once_in_each_queue() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.credit(built("a", "x"), 1), [new_build("x")]);
    assert_eq!(bench.credit(built("b", "x"), 1), []);
    bench.gone("a");
    bench.gone("b");
    assert_eq!(bench.credit(built("a", "x"), 1), []);
    assert_eq!(bench.credit(built("a", "y"), 1), [new_build("y")]);
    let other = queue("letters");
    let credit = QueueMessage::Credit { queue: other.clone(), worker: built("a", "x"), credits: 1 };
    assert_eq!(bench.handle(credit), [QueueOutput::NewBuild(other, "x".into())]);
}

#[test]
fn a_worker_whose_code_changed_is_matched_by_its_new_build() {
    let mut bench = Bench::new(10);
    bench.credit(built("a", "x"), 1);
    let offer = except(task(1), &["x"]);
    assert_eq!(bench.offer(offer.clone()), []);
    let outputs = bench.credit(built("a", "y"), 0);
    assert_eq!(outputs, [new_build("y"), matched(offer, built("a", "y"))]);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut bench = Bench::new(10);
    for number in 0..=BUILDS_MAX {
        bench.credit(built("a", &number.to_string()), 0);
    }
    assert_eq!(bench.credit(built("a", "1"), 0), []);
    assert_eq!(bench.credit(built("a", "0"), 0), [new_build("0")]);
    for number in 0..2 * IDLE_QUEUES_MAX {
        let offer = Offer { queue: queue(&number.to_string()), ..task(1) };
        bench.offer(offer);
        bench.shard_closed(1);
    }
    assert_eq!(bench.0.queues.len(), IDLE_QUEUES_MAX + 1);
    assert_eq!(bench.0.idle.len(), IDLE_QUEUES_MAX);
}

fn lent(node: &str, credits: usize) -> QueueMessage {
    let (node, queue) = (node.to_owned(), queue("orders"));
    QueueMessage::Lent { node, queue, build: None, credits }
}

fn spare(credits: usize) -> QueueOutput {
    QueueOutput::Spare { queue: queue("orders"), build: None, credits }
}

fn passed(offer: Offer, node: &str) -> QueueOutput {
    QueueOutput::Pass(offer, node.into())
}

#[test]
fn an_offer_is_passed_on_if_nobody_here_takes_it() {
    let mut bench = Bench::new(10);
    bench.handle(lent("far", 2));
    bench.credit(worker("a"), 1);
    assert_eq!(bench.offer(task(1)), [matched(task(1), worker("a"))], "at home first");
    assert_eq!(bench.offer(task(2)), [passed(task(2), "far")]);
    assert_eq!(bench.offer(task(3)), [passed(task(3), "far")]);
    assert_eq!(bench.offer(task(4)), [], "no more was lent");
    assert_eq!(bench.handle(lent("far", 1)), [passed(task(4), "far")], "kept offers go, too");
}

#[test]
fn what_was_lent_is_what_was_said_last() {
    let mut bench = Bench::new(10);
    bench.handle(lent("far", 5));
    bench.handle(lent("far", 1));
    assert_eq!(bench.offer(task(1)), [passed(task(1), "far")]);
    assert_eq!(bench.offer(task(2)), []);
}

#[test]
fn a_declined_offer_waits_at_home() {
    let mut bench = Bench::new(10);
    bench.handle(lent("far", 3));
    assert_eq!(bench.offer(task(1)), [passed(task(1), "far")]);
    let declined = QueueMessage::Declined { node: "far".into(), offer: task(1) };
    assert_eq!(bench.handle(declined), [], "all that was lent is spent");
    assert_eq!(bench.credit(worker("a"), 1), [matched(task(1), worker("a"))]);
}

/// Workers choose the names of their sessions.
#[test]
fn no_worker_takes_the_place_of_a_node_that_lends() {
    for name in ["far", "node far ", "node far"] {
        let mut bench = Bench::new(10);
        bench.handle(lent("far", 2));
        bench.credit(worker(name), 1);
        assert_eq!(bench.offer(task(1)), [matched(task(1), worker(name))]);
        bench.gone(name);
        assert_eq!(bench.offer(task(2)), [passed(task(2), "far")], "{name:?}");
        bench.credit(worker(name), 1);
        bench.handle(QueueMessage::NodeGone("far".into()));
        assert_eq!(bench.offer(task(3)), [matched(task(3), worker(name))]);
    }
}

#[test]
fn what_a_lost_node_lent_is_gone() {
    let mut bench = Bench::new(10);
    bench.handle(lent("far", 3));
    bench.handle(QueueMessage::NodeGone("far".into()));
    assert_eq!(bench.offer(task(1)), []);
}

#[test]
fn spare_credit_is_announced_until_others_know_of_half_of_it() {
    let mut bench = Bench::new(10);
    bench.handle(QueueMessage::NodeCame);
    assert_eq!(bench.credit(worker("a"), 2), [spare(2)]);
    assert_eq!(bench.credit(worker("a"), 1), [], "others know that there is some");
    assert_eq!(bench.credit(worker("a"), 3), [spare(6)]);
    for run in 11..=13 {
        assert_eq!(bench.offer(task(run)), [matched(task(run), worker("a"))]);
    }
    for run in 1..=3 {
        assert_eq!(bench.offer(task(run)), [matched(task(run), worker("a"))]);
    }
    assert_eq!(bench.credit(worker("a"), 1), [spare(1)]);
    assert_eq!(bench.handle(QueueMessage::NodeCame), [spare(1)], "who comes is told");
}

#[test]
fn who_borrows_gets_a_worker_that_is_here_or_is_declined() {
    let mut bench = Bench::new(10);
    bench.handle(QueueMessage::NodeCame);
    bench.handle(lent("third", 9));
    bench.credit(worker("a"), 2);
    for run in 1..=2 {
        assert_eq!(bench.lend(&task(run)), (Some(worker("a")), vec![]));
    }
    assert_eq!(bench.lend(&task(3)), (None, vec![]), "and not passed further");
    assert_eq!(bench.offer(task(4)), [passed(task(4), "third")]);
}

/// What others think that there is must not stay behind what there is.
#[test]
fn who_borrows_is_told_again_before_it_thinks_that_nothing_is_left() {
    let mut bench = Bench::new(10);
    bench.handle(QueueMessage::NodeCame);
    assert_eq!(bench.credit(worker("a"), 4), [spare(4)]);
    assert_eq!(bench.lend(&task(1)), (Some(worker("a")), vec![]));
    assert_eq!(bench.credit(worker("a"), 1), []);
    assert_eq!(bench.lend(&task(2)), (Some(worker("a")), vec![]));
    assert_eq!(bench.credit(worker("a"), 3), [spare(6)], "they know of two only");
}

/// What a declined node forgets is all that it was told.
#[test]
fn who_is_declined_is_told_of_other_builds_again() {
    let mut bench = Bench::new(10);
    bench.handle(QueueMessage::NodeCame);
    let built = Worker { build: Some("new".into()), ..worker("a") };
    let told =
        QueueOutput::Spare { queue: queue("orders"), build: built.build.clone(), credits: 3 };
    assert_eq!(bench.credit(built, 3).last(), Some(&told));
    let refused = Offer { except: ["new".into()].into(), ..task(1) };
    assert_eq!(bench.lend(&refused), (None, vec![told]));
}

/// Who borrows chose by what it was told of one build, and got a worker of another.
#[test]
fn a_borrowed_credit_counts_for_each_build_that_may_have_been_meant() {
    let mut bench = Bench::new(10);
    bench.handle(QueueMessage::NodeCame);
    bench.credit(built("a", "x"), 2);
    bench.credit(built("b", "y"), 2);
    assert_eq!(bench.lend(&task(1)), (Some(built("a", "x")), vec![]));
    let told = |build: &str, credits| QueueOutput::Spare {
        queue: queue("orders"),
        build: Some(build.into()),
        credits,
    };
    let told = vec![told("x", 1), told("y", 1)];
    assert_eq!(bench.lend(&task(2)), (Some(built("b", "y")), told));
}

/// A task per queue, of very many queues: what finds no room is found again by a refill.
#[test]
fn the_offers_of_all_queues_are_bounded_together() {
    let mut bench = Bench::new(1);
    let offer = |number: usize| Offer { queue: queue(&number.to_string()), ..task(1) };
    for number in 0..2 * FULL_QUEUES {
        assert_eq!(bench.offer(offer(number)), []);
    }
    assert_eq!(bench.0.waiting(WorkKind::Workflow), FULL_QUEUES);
    let serve = |bench: &mut Bench, number: usize| {
        let queue = queue(&number.to_string());
        bench.handle(QueueMessage::Credit { queue, worker: worker("a"), credits: 1 })
    };
    assert_eq!(serve(&mut bench, 0), [matched(offer(0), worker("a"))]);
    let turned_away = FULL_QUEUES + 1;
    let refill = |number: usize| QueueOutput::Refill(queue(&number.to_string()));
    assert_eq!(serve(&mut bench, turned_away), [refill(turned_away)]);
    assert_eq!(bench.offer(offer(turned_away)), [matched(offer(turned_away), worker("a"))]);
    // A queue that was forgotten meanwhile may have had offers too.
    assert_eq!(serve(&mut bench, 1_000_000), [refill(1_000_000)]);
}
