//! What programs do when they are asked to end, and what they carry into the next run.

use std::time::Duration;

use abide_core::{
    command::{Ask, ContinueAsNew},
    event::{RunCancelRequested, RunSpec, UpdateAdmitted, UpdateRequest},
};
use abide_program::{Node, OnCancel, Program};

use super::history::History;

fn cancel_requested() -> History {
    History::new().add(RunCancelRequested::default()).open_task()
}

/// A cancel request comes while the program sleeps.
#[test]
fn a_program_closes_as_cancelled() {
    let program = Program::new([Node::sleep(5)]);
    assert_eq!(cancel_requested().asks(&program), ["TimerStarted timer-1", "RunCancelled"]);
}

/// The same for a program that goes on.
#[test]
fn a_program_may_ignore_a_cancel_request() {
    let program = Program { on_cancel: OnCancel::Ignore, ..Program::new([Node::sleep(5)]) };
    assert_eq!(cancel_requested().asks(&program), ["TimerStarted timer-1"]);
}

/// The program has read one of three signals and has an update that takes time.
#[test]
fn a_new_run_gets_what_was_not_read() {
    let program = Program {
        update_delay: Some(Duration::from_secs(1)),
        ..Program::new([Node::signal("go"), Node::ContinueAsNew { runs: 2 }])
    };
    let history = History::new().signal("A", "").signal("B", "").task();
    let history = history.optional("signal-1", "go");
    let request = UpdateRequest::default();
    let history = history.add(UpdateAdmitted { update: "u".into(), request }).signal("go", "");
    let last = history.open_task().turn(&program).commands.pop().unwrap().ask;
    let spec = RunSpec { workflow_type: "order".into(), ..RunSpec::default() };
    let next = ContinueAsNew { spec, signals: vec![2, 3], updates: vec!["u".into()] };
    assert_eq!(last, Ask::ContinueAsNew(Box::new(next)));
}

/// More signals were there in the task in which the program went on in a new run.
#[test]
fn a_new_run_gets_what_came_after_the_last_step() {
    let program = Program::new([Node::signal("go"), Node::ContinueAsNew { runs: 2 }]);
    let history = History::new().signal("go", "").signal("go", "").signal("A", "");
    let last = history.open_task().turn(&program).commands.pop().unwrap().ask;
    let Ask::ContinueAsNew(next) = last else { panic!("{last:?}") };
    assert_eq!(next.signals, [3, 4]);
}

/// The workflow has had as many runs as it should.
#[test]
fn the_last_run_goes_on_to_its_end() {
    let program = Program::new([Node::ContinueAsNew { runs: 1 }, Node::Fail("end".into())]);
    assert_eq!(History::new().open_task().asks(&program), ["RunFailed"]);
}
