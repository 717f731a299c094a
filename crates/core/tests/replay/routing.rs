//! Results find the code that asked, by code's own ids.

use abide_core::{
    digest::Digest,
    event::{
        ChildCompleted, ChildStartFailed, DeliveryFailure, ExternalCancelFailed,
        ExternalSignalDelivered, Mover, TimerRescheduled,
    },
};
use abide_program::{Node, Program};

use super::history::{History, at, run};

/// Two children end in the opposite order of their start; one could not be started.
#[test]
fn children_are_told_apart_by_the_order_of_their_start() {
    let program = Program::new([Node::Join(vec![Node::child("A"), Node::child("B")])]);
    let history = History::new().task().child("order/child-1", "A").child("order/child-2", "B");
    let completed = ChildCompleted { initiated: 6, run: run(), result: Vec::new() };
    let failed = ChildStartFailed { initiated: 5, cause: DeliveryFailure::AlreadyExists };
    let history = history.add(completed).add(failed).open_task();
    assert_eq!(history.asks(&program), ["RunCompleted B=;A failed: AlreadyExists"]);
}

/// A signal arrived at another workflow, a cancel request at none.
#[test]
fn external_requests_are_told_apart_by_their_order() {
    let signal = Node::SignalExternal { workflow: "other".into(), name: "go".into() };
    let cancel = Node::CancelExternal { workflow: "none".into() };
    let program = Program::new([Node::Join(vec![signal, cancel])]);
    let mut history = History::new().open_task();
    let completion = history.turn(&program);
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    let failed = ExternalCancelFailed { initiated: 6, cause: DeliveryFailure::NotFound };
    let history = history.add(failed).add(ExternalSignalDelivered { initiated: 5 }).open_task();
    let expected = "RunCompleted external failed: NotFound;external=delivered";
    assert_eq!(history.asks(&program), [expected]);
}

/// An operator moved a sleep; later the sleep is over.
#[test]
fn code_is_told_when_somebody_moves_its_timer() {
    let by = Mover::Outside {
        identity: "operator".into(),
        key: None,
        received_at: at(6),
        asked: Digest::UNKNOWN,
    };
    let moved = TimerRescheduled { timer: "timer-1".into(), fire_at: at(60), by };
    let history = History::new().task().sleep("timer-1", 5).add(moved).fired("timer-1");
    let asks = history.open_task().asks(&Program::new([Node::sleep(5)]));
    assert_eq!(asks, [format!("RunCompleted timer-1 moved to {};slept", at(60))]);
}
