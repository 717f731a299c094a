//! Draws programs: every kind of wait, alone, concurrent and in races, with deadlines that change.

use std::time::Duration;

use abide_core::{event::Delivery, retry::RetryPolicy};
use abide_sdk::{OnCancel, ParentClosePolicy, ReusePolicy};

use super::{
    Activity, Care, Child, Cleanup, Crowd, Goal, Local, Move, Node, Order, Program, SIGNALS, Saga,
    Successor, Terms, Undoable, Upsert,
};
use crate::{
    attributes::{STAGE_VALUES, TAG_VALUES},
    code::CLEANUP_STEPS,
    names::{CHILD_ATTEMPTS, Names},
    rng::Rng,
};

pub(super) fn program(rng: &mut Rng, number: usize) -> Program {
    let steps = (0..rng.between(2, 6)).map(|_| node(rng, number, 2)).collect::<Vec<_>>();
    Program {
        body: Node::Sequence(steps),
        ignores_cancel: rng.chance(300),
        scoped: rng.chance(400),
        cleanup: Cleanup {
            steps: rng.index(CLEANUP_STEPS.len() + 1),
            limit: rng.chance(250).then(|| long(rng)),
        },
        update_delay: rng.chance(600).then(|| Duration::from_millis(rng.between(1, 4000))),
        update_work: activity(rng),
        quirk: None,
    }
}

fn node(rng: &mut Rng, number: usize, depth: u32) -> Node {
    let nested = if depth > 0 { 3 } else { 0 };
    let child = if number > 0 { 4 } else { 0 };
    let weights = [
        nested, nested, nested, 5, 8, 5, 6, 3, nested, child, 2, 1, 2, 2, 2, nested, nested, 2, 3,
        2, 4, 3, 1,
    ];
    match rng.weighted(&weights) {
        0 => Node::Sequence(nodes(rng, number, depth)),
        1 => Node::Join(nodes(rng, number, depth)),
        2 => Node::Select(nodes(rng, number, depth)),
        3 => Node::Sleep(long(rng), terms(rng)),
        4 => Node::Activity(activity(rng)),
        5 => receive(rng),
        6 => until(rng),
        7 => approve(rng),
        8 => moved(rng),
        9 => Node::Child(a_child(rng, number)),
        10 => Node::SignalExternal { workflow: neighbour(rng), name: signal(rng) },
        11 => Node::CancelExternal { workflow: neighbour(rng) },
        12 => Node::SideEffect,
        13 => patch(rng),
        14 => Node::ContinueAsNew { runs: rng.between(2, 3), successor: successor(rng) },
        15 => {
            let body = Box::new(node(rng, number, depth - 1));
            Node::Scope { body, cancel_after: rng.chance(600).then(|| long(rng)) }
        }
        16 => {
            let body = Box::new(node(rng, number, depth - 1));
            Node::Shield { body, timeout: rng.chance(500).then(|| long(rng)) }
        }
        17 => Node::Crowd(crowd(rng)),
        18 => Node::Saga(saga(rng)),
        19 => Node::Finish,
        20 => Node::Local(local(rng)),
        21 => Node::Upsert(upsert(rng)),
        _ => Node::Fail,
    }
}

fn upsert(rng: &mut Rng) -> Upsert {
    let stage = rng.chance(800).then(|| rng.pick(&STAGE_VALUES).copied().unwrap_or_default());
    let tags = rng.chance(600).then(|| {
        let drawn = TAG_VALUES.iter().filter(|_| rng.chance(500));
        drawn.map(|tag| (*tag).to_owned()).collect()
    });
    Upsert { stage, tags }
}

fn successor(rng: &mut Rng) -> Successor {
    match rng.weighted(&[3, 1, 1]) {
        0 => Successor::Alike,
        1 => Successor::Limited(long(rng)),
        _ => Successor::Childless,
    }
}

fn nodes(rng: &mut Rng, number: usize, depth: u32) -> Vec<Node> {
    (0..rng.between(2, 3)).map(|_| node(rng, number, depth - 1)).collect()
}

fn receive(rng: &mut Rng) -> Node {
    let name = (!rng.chance(200)).then(|| signal(rng));
    Node::Receive { name, timeout: timeout(rng), terms: terms(rng) }
}

fn until(rng: &mut Rng) -> Node {
    let goal = match rng.weighted(&[4, 2, 4]) {
        0 => Goal::Marks(rng.between(1, 4)),
        1 => Goal::TwoMarks,
        _ => Goal::Votes(rng.between(1, 3)),
    };
    Node::Until { goal, timeout: timeout(rng), terms: terms(rng) }
}

fn approve(rng: &mut Rng) -> Node {
    let needed = if rng.chance(700) { 1 } else { 2 };
    Node::Approve { needed, timeout: timeout(rng), terms: terms(rng) }
}

/// A wait with a deadline, and a concurrent branch that reschedules the deadline later.
fn moved(rng: &mut Rng) -> Node {
    let waits = match rng.below(5) {
        0 => Node::Sleep(long(rng), terms(rng)),
        1 => receive(rng),
        2 => until(rng),
        3 => approve(rng),
        // Another branch makes the condition hold.
        _ => Node::Until { goal: Goal::Slept, timeout: Some(long(rng)), terms: terms(rng) },
    };
    let how = match rng.weighted(&[5, 5, 1, 1]) {
        0 => Move::In(long(rng)),
        1 => Move::By(long(rng)),
        2 => Move::Past,
        _ => Move::Never,
    };
    let moves = vec![Node::Sleep(short(rng), Terms::default()), Node::Move(how)];
    let branches = vec![waits, Node::Sequence(moves)];
    if rng.chance(700) { Node::Join(branches) } else { Node::Select(branches) }
}

/// A new step beside the old ones, or instead of one.
fn patch(rng: &mut Rng) -> Node {
    let change = *rng.pick(&["change0", "change1"]).unwrap_or(&"change0");
    let old = Node::Activity(activity(rng));
    let new = if rng.chance(500) {
        Node::Sequence(vec![old.clone(), Node::Sleep(short(rng), Terms::default())])
    } else {
        receive(rng)
    };
    Node::Patch { change, new: Box::new(new), old: Box::new(old) }
}

fn activity(rng: &mut Rng) -> Activity {
    let activity_type = *rng.pick(&["ok", "ok", "flaky", "fatal", "slow", "beat"]).unwrap_or(&"ok");
    let start_to_close = Some(Duration::from_millis(rng.between(400, 3000)));
    let heartbeat = (activity_type == "beat").then(|| Duration::from_millis(rng.between(200, 600)));
    let delivery = if rng.chance(250) { Delivery::AtMostOnce } else { Delivery::AtLeastOnce };
    let retry = rng.chance(700).then(|| RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(20, 800)),
        maximum_interval: Duration::from_secs(5),
        maximum_attempts: u32::try_from(rng.between(0, 4)).unwrap_or_default(),
        recorded: rng.chance(300),
        ..RetryPolicy::default()
    });
    let give_up = rng.chance(100).then(|| short(rng));
    let on_cancel = on_cancel(rng);
    Activity { activity_type, retry, delivery, start_to_close, heartbeat, on_cancel, give_up }
}

fn local(rng: &mut Rng) -> Local {
    let retry = RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(20, 800)),
        maximum_attempts: u32::try_from(rng.between(1, 6)).unwrap_or(1),
        ..RetryPolicy::default()
    };
    let activity_type = *rng.pick(&["ok", "flaky", "flaky", "fatal"]).unwrap_or(&"ok");
    Local { activity_type, retry, longest_delay: rng.chance(500).then(|| short(rng)) }
}

fn on_cancel(rng: &mut Rng) -> OnCancel {
    match rng.weighted(&[4, 3, 2]) {
        0 => OnCancel::Cancel,
        1 => OnCancel::CancelAndWait,
        _ => OnCancel::Abandon,
    }
}

/// The same activity a few times.
fn crowd(rng: &mut Rng) -> Crowd {
    let bound = rng.index(3) + 1;
    let order = match rng.below(5) {
        0 => Order::All,
        1 => Order::First,
        2 => Order::Bounded(bound),
        3 => Order::BoundedUntilFailure(bound),
        _ => Order::Window(bound),
    };
    Crowd { activity: activity(rng), count: rng.index(5) + 1, order }
}

fn saga(rng: &mut Rng) -> Saga {
    let steps = (0..rng.between(1, 3)).map(|_| Undoable { stubborn: rng.chance(200) }).collect();
    Saga { steps, last: activity(rng), at_once: rng.chance(300) }
}

fn a_child(rng: &mut Rng, number: usize) -> Child {
    let names = Names::get();
    let retried = rng.chance(400);
    // Recorded retries are children with their own ids.
    let recorded = retried && rng.chance(500);
    let pool = if recorded { &names.retried } else { &names.children };
    let retry = retried.then(|| RetryPolicy {
        initial_interval: Duration::from_millis(rng.between(20, 800)),
        maximum_attempts: CHILD_ATTEMPTS,
        recorded,
        ..RetryPolicy::default()
    });
    let care = match rng.weighted(&[3, 3, 3, 3]) {
        // There is no single child to hold.
        _ if recorded => Care::Await,
        0 => Care::Await,
        1 => Care::Hold,
        2 => Care::Hurry,
        _ => Care::Leave,
    };
    Child {
        number: rng.index(number),
        workflow: rng.pick(pool).cloned().unwrap_or_default(),
        retry,
        parent_close: *rng.pick(&PARENT_CLOSE).unwrap_or(&ParentClosePolicy::Terminate),
        reuse: reuse(rng),
        run_timeout: rng.chance(150).then(|| Duration::from_millis(rng.between(500, 10_000))),
        execution_timeout: rng.chance(100).then(|| Duration::from_secs(rng.between(2, 30))),
        on_cancel: rng.chance(500).then(|| on_cancel(rng)),
        care,
    }
}

/// All close policies; most often the child ends.
const PARENT_CLOSE: [ParentClosePolicy; 4] = [
    ParentClosePolicy::Terminate,
    ParentClosePolicy::Terminate,
    ParentClosePolicy::RequestCancel,
    ParentClosePolicy::Abandon,
];

/// Whether an id may be reused; most often it may.
pub(crate) fn reuse(rng: &mut Rng) -> ReusePolicy {
    match rng.weighted(&[6, 2, 1]) {
        0 => ReusePolicy::Allow,
        1 => ReusePolicy::AllowIfFailed,
        _ => ReusePolicy::Reject,
    }
}

/// Mostly none; otherwise details for lists, and limits for clients.
fn terms(rng: &mut Rng) -> Terms {
    Terms {
        described: rng.chance(200),
        not_after: rng.chance(150).then(|| long(rng) + long(rng)),
        max_extensions: rng.chance(150).then(|| u32::try_from(rng.below(3)).unwrap_or_default()),
    }
}

/// No limit, zero, or some time.
fn timeout(rng: &mut Rng) -> Option<Duration> {
    match rng.weighted(&[3, 1, 6]) {
        0 => None,
        1 => Some(Duration::ZERO),
        _ => Some(long(rng)),
    }
}

fn short(rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.between(1, 900))
}

fn long(rng: &mut Rng) -> Duration {
    if rng.chance(50) {
        return Duration::from_secs(rng.between(60, 4000));
    }
    // Round values, so that several timers are due at the same time.
    Duration::from_millis(rng.between(1, 40) * 250)
}

fn signal(rng: &mut Rng) -> &'static str {
    rng.pick(&SIGNALS).copied().unwrap_or("go")
}

/// Another workflow, which may or may not exist.
fn neighbour(rng: &mut Rng) -> String {
    let names = Names::get();
    let pool = if rng.chance(800) { &names.roots } else { &names.children };
    rng.pick(pool).cloned().unwrap_or_default()
}
