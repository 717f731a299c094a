//! Workflow tasks: one at a time, named by a start id, written with their end.

use abide_core::{
    event::{Body, Fact, RunTerminated, SignalReceived},
    ids::StartId,
    run::{CompleteTask, FailTask, Input, Liveness, Refusal, Reply, StartRun, Task},
};

use crate::{
    build::*,
    world::{World, start_run},
};

#[test]
fn a_run_begins_with_its_first_task() {
    let world = World::new();
    assert_eq!(world.history(), ["RunStarted", "TaskScheduled"]);
    assert_eq!(world.run.task, Task::Scheduled { number: 2 });
}

/// Signal-with-start and update-with-start.
#[test]
fn inputs_of_the_start_come_before_the_first_task() {
    let signal = World::new().signal("go").decision.records.remove(0);
    let abide_core::note::Record::Event(event) = signal else { panic!() };
    let world = World::begin(StartRun { inputs: vec![event.body], ..start_run() });
    assert_eq!(world.history(), ["RunStarted", "SignalReceived", "TaskScheduled"]);
}

/// A start lives in memory.
#[test]
fn starting_a_task_writes_nothing() {
    let mut world = World::new();
    let start = world.next_start();
    assert!(world.take(Input::StartTask(start)).names.is_empty());
    assert_eq!(world.run.liveness(), Liveness::TaskRunning);
}

#[test]
fn one_task_at_a_time() {
    let mut world = World::new();
    world.start_task();
    let start = world.next_start();
    assert_eq!(world.refused(Input::StartTask(start)), Refusal::StaleTask);
}

#[test]
fn an_idle_run_has_no_task() {
    let mut world = World::after([timer("t", 60)]);
    let start = world.next_start();
    let refusal = world.refused(Input::StartTask(start));
    assert_eq!(refusal.to_string(), "the workflow task is no longer current");
}

/// Start, completion and commands are one row: half the writes of the usual design.
#[test]
fn a_completion_writes_start_completion_and_commands_in_one_row() {
    let mut world = World::new();
    let took = world.task([timer("t", 60), activity("a")]);
    assert_eq!(took.names, ["TaskStarted", "TaskCompleted", "TimerStarted", "ActivityScheduled"]);
    assert_eq!(took.reply, Reply::TaskTaken { completed: 4 });
    assert_eq!(world.run.task, Task::Idle);
    assert_eq!(world.log.len(), 2);
}

/// Code's `now()` is the moment of the start, whenever the answer comes.
#[test]
fn task_started_has_the_time_that_the_worker_saw() {
    let mut world = World::new();
    world.pass(5);
    let given = world.start_task();
    world.pass(7);
    world.complete([]);
    assert_eq!(given.tail[0].time, at(5));
    assert_eq!(world.event("TaskStarted").time, at(5));
    assert_eq!(world.event("TaskCompleted").time, at(12));
}

/// What the worker was told ends its history is what is written.
#[test]
fn the_tail_that_a_worker_gets_is_what_its_end_writes() {
    let mut world = World::new();
    let given = world.start_task();
    world.complete([]);
    assert_eq!(given.tail, [world.event("TaskStarted")]);
}

#[test]
fn a_task_names_the_completion_it_builds_on() {
    let mut world = World::new();
    assert_eq!(world.start_task().previous, 0);
    world.complete([]);
    world.signal("go");
    assert_eq!(world.start_task().previous, 4);
}

#[test]
fn the_clock_may_jump_back_but_history_does_not() {
    let mut world = World::new();
    world.go_to(100);
    world.signal("go");
    world.go_to(0);
    world.task([timer("t", 200)]);
    assert_eq!(world.event("TimerStarted").time, at(100));
}

/// What code saw as `now()` is what history has.
#[test]
fn a_worker_sees_the_time_of_history_when_the_clock_jumped_back() {
    let mut world = World::new();
    world.go_to(100);
    world.signal("go");
    world.go_to(0);
    let given = world.start_task();
    world.complete([]);
    assert_eq!(given.tail, [world.event("TaskStarted")]);
    assert_eq!(given.tail[0].time, at(100));
}

/// The worker may take as long as always, by the clock as it is now.
#[test]
fn a_task_times_out_by_the_true_time_although_the_clock_jumped_back() {
    let mut world = World::new();
    world.go_to(100);
    world.signal("go");
    world.go_to(20);
    let timeout = world.start_task().timeout;
    let deadline = world.run.turn_deadline(&world.limits);
    assert_eq!(deadline, Some(at(20).saturating_add(timeout)));
    world.complete([]);
    assert_eq!(world.event("TaskCompleted").time, at(100), "history does not go back");
}

/// Every kind of answer needs the present start id.
#[test]
fn an_answer_with_another_start_id_is_refused() {
    let mut world = World::new();
    world.start_task();
    world.lose_task();
    world.start_task();
    let start = StartId { incarnation: 1, counter: 1 };
    let complete = CompleteTask { start, ..world.completion([]) };
    let (cause, failure, blocked) = Default::default();
    let inputs = [
        Input::CompleteTask(Box::new(complete)),
        Input::FailTask(Box::new(FailTask { start, cause, failure, blocked })),
        Input::TimeOutTask { start },
        Input::LoseTask { start },
    ];
    for input in inputs {
        assert_eq!(world.refused(input), Refusal::StaleTask);
    }
}

#[test]
fn an_answer_after_a_crash_is_refused() {
    let mut world = World::new();
    world.start_task();
    let late = world.completion([complete_run()]);
    world.crash();
    assert_eq!(world.refused(Input::CompleteTask(Box::new(late))), Refusal::StaleTask);
}

#[test]
fn an_answer_is_taken_once() {
    let mut world = World::new();
    world.start_task();
    let completion = world.completion([]);
    world.take(Input::CompleteTask(Box::new(completion.clone())));
    assert_eq!(world.refused(Input::CompleteTask(Box::new(completion))), Refusal::StaleTask);
}

#[test]
fn a_completion_may_ask_for_another_task() {
    let mut world = World::new();
    world.start_task();
    let completion = CompleteTask { force_next: true, ..world.completion([]) };
    let took = world.take(Input::CompleteTask(Box::new(completion)));
    assert_eq!(took.names, ["TaskStarted", "TaskCompleted", "TaskScheduled"]);
}

/// The task is scheduled at once, so that a crash cannot forget it, and handed out after the pause.
#[test]
fn a_task_that_was_asked_for_survives_a_pause() {
    let mut world = World::new();
    world.start_task();
    world.pause();
    let completion = CompleteTask { force_next: true, ..world.completion([]) };
    world.take(Input::CompleteTask(Box::new(completion)));
    world.crash();
    assert!(!world.run.task_pending());
    world.unpause();
    assert!(world.run.task_pending());
}

/// After a crash the same task is there to be taken, under the same number.
#[test]
fn a_started_task_is_started_anew_after_a_crash() {
    let mut world = World::new();
    world.start_task();
    assert!(world.crash().names.is_empty());
    assert_eq!(world.run.task, Task::Scheduled { number: 2 });
    world.task([]);
    assert_eq!(world.history(), ["RunStarted", "TaskScheduled", "TaskStarted", "TaskCompleted"]);
}

#[test]
fn buffered_inputs_are_numbered_after_a_crash() {
    let mut world = World::new();
    world.start_task();
    world.signal("go");
    assert_eq!(world.crash().names, ["SignalReceived", "BufferReleased"]);
    assert_eq!(world.history(), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

/// Only what a task is about wakes code.
#[test]
fn a_scheduled_task_shows_later_inputs_too() {
    let mut world = World::new();
    assert_eq!(world.signal("go").names, ["SignalReceived"]);
    assert_eq!(world.task([]).names, ["TaskStarted", "TaskCompleted"]);
}

#[test]
fn terminating_a_started_task_first_writes_its_start_and_failure() {
    let mut world = World::new();
    world.start_task();
    world.signal("go");
    let names = world.terminate().names;
    assert_eq!(
        names,
        ["TaskStarted", "TaskFailed", "SignalReceived", "RunTerminated", "BufferReleased"]
    );
}

#[test]
fn terminating_a_retried_task_writes_all_of_it() {
    let mut world = World::new();
    world.start_task();
    world.fail_task();
    world.pass(1);
    world.start_task();
    let names = world.terminate().names;
    assert_eq!(names, ["TaskScheduled", "TaskStarted", "TaskFailed", "RunTerminated"]);
}

#[test]
fn terminating_an_idle_run_writes_one_event() {
    let mut world = World::after([timer("t", 60)]);
    assert_eq!(world.terminate().names, ["RunTerminated"]);
    let Fact::RunTerminated(RunTerminated { reason, .. }) = world.last_fact() else { panic!() };
    assert_eq!(reason, "enough");
}

/// Code sees when its history is long, in events or in bytes.
#[test]
fn a_long_history_is_said_to_be_long() {
    let mut world = World::new();
    world.limits.events_suggested = 3;
    let suggested = |world: &mut World| {
        let given = world.start_task();
        let Fact::TaskStarted(started) = given.tail[0].body.fact.clone() else { panic!() };
        assert_eq!(started.history_bytes, world.run.history_bytes);
        started.suggest_continue_as_new
    };
    assert!(!suggested(&mut world));
    world.complete([]);
    world.signal("go");
    assert!(suggested(&mut world));
    world.complete([]);
    world.limits.events_suggested = 1000;
    world.limits.history_bytes_suggested = world.run.history_bytes - world.run.beginning.bytes;
    world.signal("go");
    assert!(suggested(&mut world));
}

/// A run that takes over more signals than a long history has events would else never read one.
#[test]
fn what_a_run_took_over_does_not_make_its_history_long() {
    let suggested = |world: &mut World| {
        let given = world.start_task();
        let Fact::TaskStarted(started) = given.tail[0].body.fact.clone() else { panic!() };
        started.suggest_continue_as_new
    };
    let signal = || Body::new(SignalReceived { name: "go".into(), ..SignalReceived::default() });
    let take_over = |count| {
        let inputs = (0..count).map(|_| signal()).collect();
        World::begin(StartRun { inputs, ..start_run() })
    };
    let mut world = take_over(10);
    (world.limits.events_suggested, world.limits.history_bytes_suggested) = (6, 10_000);
    assert!(!suggested(&mut world));
    world.complete([]);
    world.signal("go");
    assert!(!suggested(&mut world));
    world.complete([]);
    world.signal("go");
    assert!(suggested(&mut world));

    // Where little room is left, half of it is used.
    let mut world = take_over(10);
    (world.limits.events_suggested, world.limits.events) = (6, world.run.last_event + 8);
    assert!(!suggested(&mut world));
    world.complete([]);
    world.signal("go");
    assert!(suggested(&mut world));
}

#[test]
fn a_task_has_the_timeout_of_its_run() {
    let mut world = World::new();
    assert_eq!(world.start_task().timeout, world.limits.task_timeout);
    assert_eq!(world.run.turn_deadline(&world.limits), Some(at(10)));
    let spec = abide_core::event::RunSpec { task_timeout: Some(seconds(3)), ..spec() };
    let mut world = World::with(spec);
    assert_eq!(world.start_task().timeout, seconds(3));
    assert_eq!(world.run.turn_deadline(&world.limits), Some(at(3)));
}
