//! Optional timers that a history may lack: when they float, when they land, and what stays strict.

use std::time::Duration;

use abide_core::{
    event::{BlockedReason, ChildCompleted, Origin},
    time::Timestamp,
};
use abide_program::{Node, Program};

use super::history::{History, run, timer_spec};

fn two_waits_with_children() -> Program {
    let branch =
        |signal: &str, child: &str| Node::Sequence(vec![Node::signal(signal), Node::child(child)]);
    Program::new([Node::Join(vec![branch("A", "ChildA"), branch("B", "ChildB")])])
}

fn signal_beside_work() -> Program {
    let work = Node::Sequence(vec![Node::sleep(5), Node::activity("work")]);
    Program::new([Node::Join(vec![Node::signal("A"), work])])
}

/// Old code waits for two signals at once; each is followed by a child. The code has two optional
/// timers that history never had, and the second wait ends first.
#[test]
fn two_optional_timers_interleaved_with_children() {
    let history = History::new().old_task().signal("B", "2").old_task();
    let history = history.child("order/child-1", "ChildB").signal("A", "1").old_task();
    let history = history.child("order/child-2", "ChildA");
    let initiated = history.last(|fact| fact.name() == "ChildInitiated");
    let history = history.add(ChildCompleted { initiated, run: run(), result: Vec::new() });
    let replay = history.open_task().replay(&two_waits_with_children()).unwrap();
    assert_eq!(replay.code().trace(), ["B=2", "A=1"]);
}

/// Old code waits; the code of today takes the next task while it still waits.
#[test]
fn a_float_that_still_waits_lands_before_the_open_tasks_own_commands() {
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").open_task();
    let asks = history.asks(&signal_beside_work());
    assert_eq!(asks, ["TimerStarted signal-1", "ActivityScheduled work"]);
}

/// The float landed in the first task of today's code, and later replays find it there.
#[test]
fn a_landed_float_is_matched_from_then_on() {
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").task();
    let history = history.optional("signal-1", "A").activity("activity-1", "work");
    let history = history.activity_completed("activity-1", "done").signal("A", "1").open_task();
    let asks = history.asks(&signal_beside_work());
    assert_eq!(asks, ["TimerCancelled signal-1", "RunCompleted slept;work=done;A=1"]);
}

/// The float landed, but the task that wrote it does not say that it records waits.
#[test]
fn a_float_that_landed_without_flag_is_matched_too() {
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").old_task();
    let history = history.optional("signal-1", "A").activity("activity-1", "work");
    let history = history.signal("A", "1").open_task();
    assert_eq!(history.asks(&signal_beside_work()), ["TimerCancelled signal-1"]);
}

/// The signal arrives in the very task that would have emitted the float.
#[test]
fn a_float_whose_wait_is_over_is_dropped_with_its_cancel() {
    let history = History::new().old_task().sleep("timer-1", 5).signal("A", "1").open_task();
    assert_eq!(history.asks(&signal_beside_work()), Vec::<String>::new());
}

/// The sleep wins against the wait, whose timer history never had.
#[test]
fn cancelling_a_float_leaves_no_trace() {
    let program = Program::new([Node::Select(vec![Node::signal("A"), Node::sleep(5)])]);
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted slept"]);
}

/// Code closes the run while another branch still waits for the signal.
#[test]
fn a_float_does_not_land_in_the_task_that_closes_the_run() {
    let closes = Node::Sequence(vec![Node::sleep(5), Node::Complete]);
    let program = Program::new([Node::Join(vec![Node::signal("A"), closes])]);
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted slept"]);
}

/// History has the optional timer under another id than today's code gives it.
#[test]
fn a_recorded_optional_timer_matches_the_first_float_of_its_name() {
    let history = History::new().old_task().optional("other", "B").signal("B", "2").open_task();
    let asks = history.asks(&two_waits_with_children());
    let child = "ChildInitiated order/child-1";
    assert_eq!(asks, ["TimerStarted signal-1", "TimerCancelled other", child]);
}

/// Two waits for the same signal float; history has the timer of the second.
#[test]
fn among_floats_of_one_name_the_same_id_comes_first() {
    let program = Program::new([Node::Join(vec![
        Node::Sequence(vec![Node::signal("A"), Node::sleep(1)]),
        Node::signal("A"),
    ])]);
    let history = History::new().old_task().signal("B", "").old_task().optional("signal-2", "A");
    assert_eq!(history.open_task().asks(&program), ["TimerStarted signal-1"]);
}

/// History says that its tasks record every wait, but has none where code waits.
#[test]
fn a_flagged_history_must_have_every_optional_timer() {
    let program = Program::new([Node::signal("A"), Node::activity("work")]);
    let history = History::new().signal("B", "1").task().activity("activity-1", "work");
    assert_eq!(history.mismatch(&program).at, 6);
}

/// The flag stands on a later task: it holds for that task's own commands.
#[test]
fn the_flag_holds_from_its_own_task_on() {
    let history = History::new().old_task().sleep("timer-1", 5).fired("timer-1").task();
    let history = history.activity("activity-1", "work");
    assert_eq!(history.mismatch(&signal_beside_work()).expected[0], optional("signal-1", "A"));
}

/// A task without flag comes after one with it.
#[test]
fn the_flag_holds_for_all_later_tasks() {
    let history = History::new().task().sleep("timer-1", 5).optional("signal-1", "A");
    let history = history.signal("A", "1").old_task().cancelled("signal-1");
    let program = Program::new([Node::Join(vec![
        Node::sleep(5),
        Node::Sequence(vec![Node::signal("A"), Node::signal("B")]),
    ])]);
    assert_eq!(history.mismatch(&program).expected, [optional("signal-2", "B")]);
}

fn optional(timer: &str, name: &str) -> String {
    format!("TimerStarted {timer}, signal without deadline, {name}")
}

/// Old history has an optional timer for a signal that code does not wait for.
#[test]
fn a_recorded_optional_timer_must_be_in_the_code() {
    let program = Program::new([Node::activity("work")]);
    let history = History::new().old_task().optional("signal-1", "A");
    assert_eq!(history.mismatch(&program).recorded[0].text, optional("signal-1", "A"));
}

/// Old history has a deadline where today's code has none: same id, same signal.
#[test]
fn a_recorded_deadline_never_matches_an_optional_timer() {
    let program = Program::new([Node::signal("A")]);
    let origin = Some(Origin::ExternalEvent { name: "A".into() });
    let history = History::new().old_task().timer("signal-1", 5, origin);
    assert_eq!(history.mismatch(&program).reason, BlockedReason::HistoryShape);
}

/// A sleep until the end of time is a sleep: old history must have it.
#[test]
fn a_far_sleep_is_not_optional() {
    let program = Program::new([Node::Sleep(Duration::MAX)]);
    let far = timer_spec("timer-1", Timestamp::NEVER, Some(Origin::CreateTimer));
    assert_eq!((far.optional(), History::new().old_task().mismatch(&program).at), (false, 5));
}
