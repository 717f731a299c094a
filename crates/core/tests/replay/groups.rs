//! What one turn sees and when: groups of failed tasks, races within a group, updates, markers, and
//! the errors that end a machine.

use std::{collections::BTreeMap, time::Duration};

use abide_core::{
    command::Ask,
    digest::Digest,
    event::{
        ActivityCancelled, Condition, Marker, MarkerKind, Mover, Origin, TaskTimedOut,
        TimerRescheduled, UpdateAdmitted, UpdateRequest,
    },
    payload::{Payload, PayloadMap},
    replay::{Error, Replay},
};
use abide_program::{Node, Program};

use super::history::{History, at, short};

fn sleep_or_signal() -> Program {
    Program::new([Node::Select(vec![Node::signal("A"), Node::sleep(5)])])
}

fn nothing() -> Vec<String> {
    Vec::new()
}

/// Two attempts of a task failed; what they saw, and what came since, is seen by the third.
#[test]
fn what_failed_tasks_saw_joins_the_next_group() {
    let program = Program::new([Node::signal("A"), Node::signal("B")]);
    let history = History::new().failed_task().signal("A", "1").open_task();
    let started = history.next() - 1;
    let history = history.add(TaskTimedOut { scheduled: started - 1, started }).signal("B", "2");
    let asks = history.open_task().asks(&program);
    assert_eq!(
        asks,
        [
            "TimerStarted signal-1",
            "TimerCancelled signal-1",
            "TimerStarted signal-2",
            "TimerCancelled signal-2",
            "RunCompleted A=1;B=2"
        ]
    );
}

/// A failed task started earlier than the one that completed.
#[test]
fn code_sees_the_time_of_the_start_that_was_completed() {
    let history = History::new().failed_task().open_task();
    let program = Program::new([Node::SideEffect]);
    let expected = format!("RunCompleted side effect {}", at(history.next() - 1));
    assert_eq!(history.asks(&program), ["MarkerRecorded", &expected]);
}

/// The signal won, but the deadline's firing was numbered before code could cancel it.
#[test]
fn a_late_firing_is_ignored_and_the_cancel_withdrawn() {
    let program = Program::new([Node::signal_within("A", Duration::from_secs(5))]);
    let origin = Origin::ExternalEvent { name: "A".into() };
    let history = History::new().task().timer("timer-1", 5, Some(origin));
    let history = history.signal("A", "1").fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted A=1"]);
}

/// The same race on a condition: WaitSatisfied stands alone.
#[test]
fn a_late_firing_leaves_the_satisfied_wait_alone() {
    let condition = Condition::default();
    let (signal, timeout) = ("A".into(), Some(Duration::from_secs(5)));
    let wait = Node::WaitUntil { condition, signal, at_least: 1, timeout };
    let program = Program::new([wait]);
    let mut history = History::new().open_task();
    let completion = history.turn(&program);
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    let history = history.signal("A", "1").fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["WaitSatisfied", "RunCompleted held"]);
}

/// The sleep won against the activity, whose result came in the same group.
#[test]
fn the_cancel_of_an_activity_that_closed_in_the_same_group_is_withdrawn() {
    let program = Program::new([
        Node::Select(vec![Node::activity("work"), Node::sleep(5)]),
        Node::signal("A"),
    ]);
    let history = History::new().task().activity("activity-1", "work").sleep("timer-1", 5);
    let history = history.fired("timer-1").activity_completed("activity-1", "late").open_task();
    assert_eq!(history.asks(&program), ["TimerStarted signal-1"]);
}

/// Sleeps, and moves the sleep so many seconds after now when signal A comes.
fn moved_by_signal(later: u64) -> Program {
    let moves = vec![Node::signal("A"), Node::Reschedule(Duration::from_secs(later))];
    Program::new([Node::Join(vec![Node::sleep(5), Node::Sequence(moves)])])
}

fn sleeping() -> History {
    History::new().task().sleep("timer-1", 5).optional("signal-1", "A")
}

/// The message that moves the timer stands before the firing: the move holds, the firing is void.
#[test]
fn a_move_for_an_event_before_the_firing_overtakes_it() {
    let program = moved_by_signal(60);
    let mut history = sleeping().signal("A", "1").fired("timer-1").open_task();
    let completion = history.turn(&program);
    let asks: Vec<_> = completion.commands.iter().map(short).collect();
    assert_eq!(asks, ["TimerCancelled signal-1", "TimerRescheduled timer-1"]);
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    let history = history.fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted A=1;slept"]);
}

/// The other way round: the firing stands, and there is nothing to move.
#[test]
fn a_move_for_an_event_after_the_firing_is_too_late() {
    let history = sleeping().fired("timer-1").signal("A", "1").open_task();
    let asks = history.asks(&moved_by_signal(60));
    assert_eq!(asks, ["TimerCancelled signal-1", "RunCompleted slept;A=1"]);
}

/// The current time is later than that due time, so the timer fires again immediately.
#[test]
fn a_move_to_the_present_overtakes_an_earlier_firing() {
    let history = sleeping().signal("A", "1").fired("timer-1").open_task();
    let asks = history.asks(&moved_by_signal(0));
    assert_eq!(asks, ["TimerCancelled signal-1", "TimerRescheduled timer-1"]);
}

/// A task of code that did not know the rule: its move came to nothing, and the firing counted.
#[test]
fn older_histories_keep_the_firing_although_code_moved_the_timer_before() {
    let history = sleeping().signal("A", "1").fired("timer-1").task().cancelled("signal-1");
    let history = history.completed();
    history.replay(&moved_by_signal(60)).unwrap().settle().unwrap();
}

fn moved_from_outside(history: History, seconds: u64) -> History {
    let (fire_at, received_at) = (at(history.next() + seconds), at(history.next()));
    let by =
        Mover::Outside { identity: String::new(), key: None, received_at, asked: Digest::UNKNOWN };
    history.add(TimerRescheduled { timer: "timer-1".into(), fire_at, by })
}

/// Code moves the timer for the signal; after the signal, a client has moved it elsewhere.
#[test]
fn a_move_from_outside_overtakes_a_move_by_code_before_it() {
    let history = moved_from_outside(sleeping().signal("A", "1"), 30).open_task();
    assert_eq!(history.asks(&moved_by_signal(60)), ["TimerCancelled signal-1"]);
    let history = moved_from_outside(sleeping().signal("A", "1"), 0);
    let history = history.fired("timer-1").open_task();
    let asks = history.asks(&moved_by_signal(60));
    assert!(asks.last().unwrap().ends_with(";slept"), "the firing stands: {asks:?}");
}

/// The client was first: code builds on what it did.
#[test]
fn a_move_by_code_overtakes_a_move_from_outside_before_it() {
    let history = moved_from_outside(sleeping(), 30).signal("A", "1").open_task();
    let asks = history.asks(&moved_by_signal(60));
    assert_eq!(asks, ["TimerCancelled signal-1", "TimerRescheduled timer-1"]);
}

#[test]
fn moves_from_outside_that_no_task_has_seen_can_be_asked_for() {
    let history = moved_from_outside(sleeping(), 30);
    let moved = at(history.next() - 1 + 30);
    let mut replay = history.clone().replay(&moved_by_signal(60)).unwrap();
    replay.settle().unwrap();
    assert_eq!(replay.unseen_moves(), [("timer-1".into(), moved)]);
    replay.feed(history.open_task().events).unwrap();
    replay.turn(&[]).unwrap();
    assert_eq!(replay.unseen_moves(), []);
}

/// An activity without running attempt is cancelled between the events of other commands; its close
/// is an input of the next group.
#[test]
fn a_close_between_command_events_is_an_input() {
    let race = Node::Select(vec![Node::sleep(5), Node::activity("work")]);
    let program = Program::new([race, Node::sleep(7)]);
    let history = History::new().task().sleep("timer-1", 5).activity("activity-1", "work");
    let history = history.fired("timer-1").task().did(Ask::CancelActivity("activity-1".into()));
    let scheduled = history.scheduled("activity-1");
    let history = history.add(ActivityCancelled { scheduled, ..ActivityCancelled::default() });
    let history = history.sleep("timer-2", 7).fired("timer-2").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted slept;slept"]);
}

fn update(id: &str, name: &str) -> UpdateAdmitted {
    let request = UpdateRequest { name: name.into(), ..UpdateRequest::default() };
    UpdateAdmitted { update: id.into(), request }
}

/// The open task has a signal and three updates, one of which code rejects.
#[test]
fn updates_come_after_the_tasks_events_in_order() {
    let program = Program::new([Node::signal("A"), Node::signal("B")]);
    let history = History::new().signal("A", "1").open_task();
    let updates = [update("u1", "accept"), update("u2", "reject"), update("u3", "accept")];
    let completion = history.replay(&program).unwrap().turn(&updates).unwrap();
    let asks: Vec<_> = completion.commands.iter().skip(3).map(short).collect();
    let expected = [
        "UpdateAccepted u1",
        "UpdateCompleted u1",
        "nothing",
        "UpdateAccepted u3",
        "UpdateCompleted u3",
    ];
    assert_eq!(asks, expected);
}

/// History accepted an update in a task that also saw a signal.
#[test]
fn accepted_updates_are_delivered_again_on_replay() {
    let program = Program::new([Node::signal("A"), Node::signal("B")]);
    let mut history = History::new().signal("A", "1").open_task();
    let mut replay = history.replay(&program).unwrap();
    let completion = replay.turn(&[update("u2", "reject"), update("u1", "accept")]).unwrap();
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    assert_eq!(history.open_task().asks(&program), nothing());
}

/// An update was carried over from another run: it is an event, and its acceptance another.
#[test]
fn an_admitted_update_is_delivered_once() {
    let program = Program::new([Node::signal("A")]);
    let mut history = History::new().add(update("u1", "accept")).open_task();
    let completion = history.turn(&program);
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    assert_eq!(history.open_task().asks(&program), nothing());
}

/// The recorded value is not what code would compute.
#[test]
fn a_side_effect_reads_the_recorded_value() {
    let value = (String::from("value"), vec![Payload::new("recorded")]);
    let marker = Marker {
        kind: MarkerKind::SideEffect,
        id: "side-effect-1".into(),
        details: BTreeMap::from([value]),
        failure: None,
        header: PayloadMap::new(),
    };
    let program = Program::new([Node::SideEffect, Node::sleep(5)]);
    let history = History::new().task().did(Ask::RecordMarker(marker)).sleep("timer-1", 5);
    let history = history.fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted side effect recorded;slept"]);
}

/// The change is younger than the run: a replayed turn has no marker for it.
#[test]
fn an_old_run_keeps_the_old_version() {
    let change = || Node::Version { change: "faster".into() };
    let program = Program::new([change(), Node::sleep(5), change()]);
    let history = History::new().task().sleep("timer-1", 5).fired("timer-1").open_task();
    assert_eq!(history.asks(&program), ["RunCompleted faster old;slept;faster old"]);
}

/// The same program in a run that has just begun.
#[test]
fn a_new_run_records_the_new_version() {
    let program = Program::new([Node::Version { change: "faster".into() }]);
    let history = History::new().open_task();
    assert_eq!(history.asks(&program), ["MarkerRecorded", "RunCompleted faster new"]);
}

/// The version was recorded by code that was about to stop asking for it.
#[test]
fn a_deprecated_version_may_be_asked_for_or_left_out() {
    let marker = Marker {
        kind: MarkerKind::Version,
        id: "faster".into(),
        details: [(Marker::DEPRECATED.to_owned(), Vec::new())].into(),
        failure: None,
        header: PayloadMap::new(),
    };
    let history = History::new().task().did(Ask::RecordMarker(marker)).sleep("timer-1", 5);
    let history = history.fired("timer-1").open_task();
    let program = Program::new([Node::Version { change: "faster".into() }, Node::sleep(5)]);
    assert_eq!(history.asks(&program), ["RunCompleted faster new;slept"]);
    let program = Program::new([Node::sleep(5)]);
    assert_eq!(history.asks(&program), ["RunCompleted slept"]);
}

/// The machine met a mismatch and is given more.
#[test]
fn a_mismatch_is_final() {
    let history = History::new().task().sleep("timer-1", 5).fired("timer-1").open_task();
    let mut replay = Replay::new(Program::new([Node::activity("work")]).code());
    let first = replay.feed(history.events).unwrap_err();
    let later = History::new().open_task().events;
    let answers = [replay.feed(later), replay.settle(), replay.turn(&[]).map(|_| ())];
    assert_eq!(answers, [Err(first.clone()), Err(first.clone()), Err(first)]);
}

/// The worker was given events that do not follow what the machine has seen.
#[test]
fn a_gap_is_an_error() {
    let mut replay = Replay::new(sleep_or_signal().code());
    let tail = History::new().open_task().events.split_off(1);
    assert_eq!(replay.feed(tail), Err(Error::Gap { expected: 1, found: 2 }));
}

/// The turn was taken, but the task timed out: the machine is of no use any more.
#[test]
fn a_discarded_turn_ends_the_machine() {
    let history = History::new().open_task();
    let mut replay = history.replay(&sleep_or_signal()).unwrap();
    replay.turn(&[]).unwrap();
    let more = history.add(TaskTimedOut { scheduled: 2, started: 3 }).events;
    assert_eq!(replay.feed(more), Err(Error::TurnDiscarded { started: 3 }));
}

/// The turn was taken, but another worker started the task again, under the same number.
#[test]
fn another_start_of_the_same_number_ends_the_machine() {
    let history = History::new().open_task();
    let mut replay = history.replay(&sleep_or_signal()).unwrap();
    replay.turn(&[]).unwrap();
    let mut events = history.events;
    events[2].time = at(99);
    assert_eq!(replay.feed(events), Err(Error::TurnDiscarded { started: 3 }));
}

/// A turn needs an open task, and an open task has one turn.
#[test]
fn there_is_one_turn_per_task() {
    let mut replay = History::new().open_task().replay(&sleep_or_signal()).unwrap();
    replay.turn(&[]).unwrap();
    assert_eq!(replay.turn(&[]), Err(Error::NoOpenTask));
}

/// A cached machine gets the events of its own turn, the start of the task included.
#[test]
fn the_events_of_a_live_turn_are_matched_not_run_again() {
    let mut history = History::new().open_task();
    let mut replay = history.replay(&sleep_or_signal()).unwrap();
    let completion = replay.turn(&[]).unwrap();
    history.complete_task(completion.flags);
    completion.commands.iter().for_each(|command| history.record(command));
    let history = history.fired("timer-1").open_task();
    replay.feed(history.events[2..].to_vec()).unwrap();
    let asks: Vec<_> = replay.turn(&[]).unwrap().commands.iter().map(short).collect();
    assert_eq!(
        (replay.acknowledged(), replay.seen(), asks),
        (4, 9, vec!["TimerCancelled signal-1".into(), "RunCompleted slept".into()])
    );
}

/// The history of a closed run is checked to its end.
#[test]
fn a_closed_run_is_checked_by_settling() {
    let history = History::new().task().sleep("timer-1", 5).fired("timer-1").task().completed();
    let mut replay = history.replay(&Program::new([Node::sleep(5)])).unwrap();
    replay.settle().unwrap();
    assert_eq!((replay.acknowledged(), replay.code().closed()), (9, true));
}
