//! Each way in which code and history can differ, and how it is printed.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    command::Ask,
    event::{
        Blocked, BlockedReason, CancelMode, Condition, Marker, MarkerKind, Origin, Target, WaitSpec,
    },
    payload::PayloadMap,
};
use abide_program::{Node, Program};
use insta::assert_snapshot;

use super::history::{History, workflow};

fn shown(history: &History, steps: impl Into<Vec<Node>>) -> String {
    history.mismatch(&Program::new(steps)).to_string()
}

fn condition(key: Option<&str>, fingerprint: Option<&str>) -> Condition {
    Condition { key: key.map(Into::into), fingerprint: fingerprint.map(Into::into) }
}

fn wait_until(condition: Condition) -> Node {
    let timeout = Some(Duration::from_secs(5));
    Node::WaitUntil { condition, signal: "A".into(), at_least: 1, timeout }
}

fn opened(condition: Condition) -> Ask {
    let (wait, timer) = ("wait-1".into(), Some("timer-1".into()));
    Ask::OpenWait(WaitSpec { wait, condition, timer, details: None })
}

fn target(name: &str) -> Target {
    Target { workflow: workflow(name), run: None, child: None }
}

fn marker(kind: MarkerKind, id: &str) -> Ask {
    let (details, header) = (BTreeMap::new(), PayloadMap::new());
    Ask::RecordMarker(Marker { kind, id: id.into(), details, failure: None, header })
}

/// History sleeps, code runs an activity.
#[test]
fn another_kind_of_step() {
    let history = History::new().task().sleep("timer-1", 5).activity("activity-1", "after");
    assert_snapshot!(shown(&history, [Node::activity("charge")]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 TimerStarted timer-1, sleep
    - recorded     6 ActivityScheduled activity-1, after
    + code           ActivityScheduled activity-1, charge
    ");
}

/// The activity has another type. What fitted before it is shown too.
#[test]
fn another_activity_type() {
    let history = History::new().task().sleep("timer-1", 5).activity("activity-1", "refund");
    assert_snapshot!(shown(&history, [Node::Join(vec![Node::sleep(5), Node::activity("charge")])]), @r"
    the code takes a different step than the history at event 6
                   4 TaskCompleted
                   5 TimerStarted timer-1, sleep
    - recorded     6 ActivityScheduled activity-1, refund
    + code           ActivityScheduled activity-1, charge
    ");
}

/// The timer has the same id, but was a sleep.
#[test]
fn another_origin_of_a_timer() {
    let history = History::new().task().sleep("timer-1", 5);
    assert_snapshot!(shown(&history, [Node::signal_within("A", Duration::from_secs(5))]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 TimerStarted timer-1, sleep
    + code           TimerStarted timer-1, signal, A
    ");
}

/// The deadline belongs to a wait for another signal.
#[test]
fn another_signal_name() {
    let origin = Origin::ExternalEvent { name: "B".into() };
    let history = History::new().task().timer("timer-1", 5, Some(origin));
    assert_snapshot!(shown(&history, [Node::signal_within("A", Duration::from_secs(5))]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 TimerStarted timer-1, signal, B
    + code           TimerStarted timer-1, signal, A
    ");
}

/// An older definition slept where the code now waits for a condition.
#[test]
fn a_timer_where_code_opens_a_condition() {
    let history = History::new().task().sleep("timer-1", 5);
    assert_snapshot!(shown(&history, [wait_until(condition(Some("ready"), None))]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 TimerStarted timer-1, sleep
    + code           WaitOpened wait-1, ready
    + code           TimerStarted timer-1, condition, ready
    ");
}

/// The condition has a key now; it had none.
#[test]
fn a_key_where_there_was_none() {
    let history = History::new().task().did(opened(condition(None, None)));
    assert_snapshot!(shown(&history, [wait_until(condition(Some("approval.ready"), None))]), @r"
    the code waits for a different condition than the history at event 5
                   4 TaskCompleted
    - recorded     5 WaitOpened wait-1
    + code           WaitOpened wait-1, approval.ready
    + code           TimerStarted timer-1, condition, approval.ready
      key: recorded none, code approval.ready
    ");
}

/// The condition has the same key and another predicate.
#[test]
fn another_fingerprint() {
    let history = History::new().task().did(opened(condition(Some("ready"), Some("f1"))));
    assert_snapshot!(shown(&history, [wait_until(condition(Some("ready"), Some("f2")))]), @r"
    the code waits for a different condition than the history at event 5
                   4 TaskCompleted
    - recorded     5 WaitOpened wait-1, ready
    + code           WaitOpened wait-1, ready
    + code           TimerStarted timer-1, condition, ready
      fingerprint: recorded f1, code f2
    ");
}

/// Only the deadline's timer recorded a fingerprint.
#[test]
fn another_fingerprint_on_the_deadline() {
    let origin = Origin::Condition { key: Some("ready".into()), fingerprint: Some("f1".into()) };
    let history = History::new().task().did(opened(condition(Some("ready"), None)));
    let history = history.timer("timer-1", 5, Some(origin));
    assert_snapshot!(shown(&history, [wait_until(condition(Some("ready"), Some("f2")))]), @r"
    the code waits for a different condition than the history at event 6
                   4 TaskCompleted
                   5 WaitOpened wait-1, ready
    - recorded     6 TimerStarted timer-1, condition, ready
    + code           TimerStarted timer-1, condition, ready
      fingerprint: recorded f1, code f2
    ");
}

/// The child has another type.
#[test]
fn another_child_type() {
    let history = History::new().task().child("order/child-1", "Ship");
    assert_snapshot!(shown(&history, [Node::child("Bill")]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 ChildInitiated default, order/child-1, Ship
    + code           ChildInitiated default, order/child-1, Bill
    ");
}

/// The child has another workflow id.
#[test]
fn another_child_id() {
    let history = History::new().task().child("shipment-7", "Ship");
    assert_snapshot!(shown(&history, [Node::child("Ship")]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 ChildInitiated default, shipment-7, Ship
    + code           ChildInitiated default, order/child-1, Ship
    ");
}

/// The other workflow got another signal.
#[test]
fn another_external_signal() {
    let (name, input, header) = ("stop".into(), Vec::new(), PayloadMap::new());
    let ask = Ask::SignalExternal { target: target("other"), name, input, header };
    let history = History::new().task().did(ask);
    assert_snapshot!(shown(&history, [Node::SignalExternal { workflow: "other".into(), name: "go".into() }]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 ExternalSignalInitiated default, other, stop
    + code           ExternalSignalInitiated default, other, go
    ");
}

/// Another workflow was asked to cancel itself.
#[test]
fn another_cancel_target() {
    let (mode, reason) = (CancelMode::Request, String::new());
    let ask = Ask::CancelExternal { target: target("first"), mode, reason };
    let history = History::new().task().did(ask);
    assert_snapshot!(shown(&history, [Node::CancelExternal { workflow: "second".into() }]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 ExternalCancelInitiated default, first
    + code           ExternalCancelInitiated default, second
    ");
}

/// The marker is of another kind.
#[test]
fn another_marker() {
    let history = History::new().task().did(marker(MarkerKind::LocalActivity, "1"));
    assert_snapshot!(shown(&history, [Node::SideEffect]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 MarkerRecorded local activity, 1
    + code           MarkerRecorded side effect, side-effect-1
    + code           RunCompleted
    ");
}

/// Code no longer has the change whose version history recorded.
#[test]
fn a_version_that_code_forgot() {
    let history = History::new().task().did(marker(MarkerKind::Version, "faster"));
    let history = history.sleep("timer-1", 5);
    assert_snapshot!(shown(&history, [Node::sleep(5)]), @r#"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 MarkerRecorded version, faster
    - recorded     6 TimerStarted timer-1, sleep
    + code           TimerStarted timer-1, sleep
      the run follows the patch "faster", and the code has no call for it at this place: keep `patched` or `deprecate_patch` there until the run has closed
    "#);
}

/// The run completed; the code fails it.
#[test]
fn another_close() {
    let history = History::new().task().completed();
    assert_snapshot!(shown(&history, [Node::Fail("no".into())]), @r"
    the code takes a different step than the history at event 5
                   4 TaskCompleted
    - recorded     5 RunCompleted
    + code           RunFailed
    ");
}

/// Code does more in the task than history has.
#[test]
fn code_does_more() {
    let history = History::new().task().sleep("timer-1", 5).fired("timer-1").open_task();
    assert_snapshot!(shown(&history, [Node::Join(vec![Node::sleep(5), Node::activity("charge")])]), @r"
    the code takes a different step than the history at event 6
                   4 TaskCompleted
                   5 TimerStarted timer-1, sleep
    - recorded     6 nothing more in this task
    + code           ActivityScheduled activity-1, charge
    ");
}

/// Code does less in the task than history has.
#[test]
fn code_does_less() {
    let history = History::new().task().sleep("timer-1", 5).activity("activity-1", "charge");
    assert_snapshot!(shown(&history, [Node::sleep(5)]), @r"
    the code takes a different step than the history at event 6
                   4 TaskCompleted
                   5 TimerStarted timer-1, sleep
    - recorded     6 ActivityScheduled activity-1, charge
    + code           nothing more in this task
    ");
}

/// History cancelled the timer of the other branch.
#[test]
fn another_cancel() {
    let history = History::new().task().sleep("timer-1", 5).sleep("timer-2", 6);
    let history = history.fired("timer-2").task().cancelled("timer-2").completed();
    assert_snapshot!(shown(&history, [Node::Select(vec![Node::sleep(5), Node::sleep(6)])]), @r"
    the code takes a different step than the history at event 11
                  10 TaskCompleted
    - recorded    11 TimerCancelled timer-2
    - recorded    12 RunCompleted
    + code           TimerCancelled timer-1
    + code           RunCompleted
    ");
}

/// A command's event stands where no task was completed.
#[test]
fn an_event_that_no_task_caused() {
    let history = History::new().sleep("timer-1", 5);
    assert_snapshot!(shown(&history, [Node::sleep(5)]), @r"
    the code takes a different step than the history at event 2
    - recorded     2 TimerStarted timer-1, sleep
    + code           nothing more in this task
    ");
}

/// The recorded condition has no fingerprint: only the keys are compared.
#[test]
fn an_absent_fingerprint_compares_the_key_only() {
    let program = Program::new([wait_until(condition(Some("ready"), Some("f2")))]);
    let history = History::new().task().did(opened(condition(Some("ready"), None)));
    let history = history.timer("timer-1", 5, None).signal("A", "1").open_task();
    assert_eq!(history.asks(&program)[..2], ["TimerCancelled timer-1", "WaitSatisfied"]);
}

/// A fingerprint of two parts: the first counts, or the second where code or history has nothing else.
#[test]
fn the_older_form_of_a_fingerprint_is_known_too() {
    let fits = |recorded: &str, code: &str| {
        let program = Program::new([wait_until(condition(Some("ready"), Some(code)))]);
        let history = History::new().task().did(opened(condition(Some("ready"), Some(recorded))));
        let history = history.timer("timer-1", 5, None).open_task();
        history.replay(&program).is_ok()
    };
    let [new, old, other] = ["a", "b", "c"].map(|digit| digit.repeat(32));
    let both = |first: &str, second: &str| format!("{first}-{second}");
    let new_old = both(&new, &old);
    assert!(fits(&old, &new_old), "a history of older code");
    assert!(fits(&new_old, &both(&new, &other)), "the argument has another name");
    assert!(!fits(&new_old, &both(&other, &old)), "another predicate");
    assert!(!fits(&old, &both(&new, &other)), "a history of older code, and another predicate");
    assert!(fits(&new_old, &old), "older code again");
    assert!(!fits(&new_old, &other), "older code, and another predicate");
    assert!(!fits(&new_old, &new), "the first part is no older form");
    // Another SDK may use any text.
    assert!(fits("paid-1", "paid-1"));
    assert!(!fits("paid-1", "paid-2") && !fits("1", "paid-1") && !fits("paid-1", "1"));
    let long = format!("{new_old}-{old}");
    assert!(!fits(&long, &new_old) && !fits(&old, &long));
}

/// Due times, inputs and timeouts are not compared.
#[test]
fn data_may_change() {
    let program = Program::new([Node::sleep(5)]);
    let history = History::new().task().sleep("timer-1", 500).fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted slept"]);
}

/// What the server stores of a mismatch, for the person who must fix it.
#[test]
fn a_mismatch_becomes_the_block_of_its_run() {
    let history = History::new().task().did(opened(condition(None, Some("f1"))));
    let program = Program::new([wait_until(condition(Some("ready"), Some("f2")))]);
    let expected = Blocked {
        reason: BlockedReason::ConditionDefinition,
        expected: "WaitOpened wait-1, ready; TimerStarted timer-1, condition, ready".into(),
        recorded: vec!["WaitOpened wait-1".into()],
        at: 5,
        expected_key: Some("ready".into()),
        recorded_key: None,
        expected_fingerprint: Some("f2".into()),
        recorded_fingerprint: Some("f1".into()),
    };
    assert_eq!(Blocked::from(&history.mismatch(&program)), expected);
}
