//! Commands that make no sense: the whole completion is refused, nothing of it is kept, and the
//! message names the command.

use abide_core::{
    command::{Ask, Command},
    event::{
        ActivitySpec, Approval, CancelMode, Condition, Fact, Guards, Marker, MarkerKind, Origin,
        Target, TaskFailureCause, TimerSpec, WaitDetails, WaitSpec,
    },
    failure::Failure,
    limits::Limits,
    payload::{Payload, PayloadMap},
    retry::RetryPolicy,
    run::{Input, Reply},
    time::Timestamp,
};

use crate::{build::*, world::World};

/// Why the commands are refused by a run with timer `t`, activity `a`, wait `w` and update `u`.
fn refused(asks: impl IntoIterator<Item = Ask>) -> String {
    refused_by(Limits::default(), asks)
}

fn refused_by(limits: Limits, asks: impl IntoIterator<Item = Ask>) -> String {
    let mut world = World::new();
    world.update("u");
    world.task([timer("t", 60), activity("a"), open_wait("w", None), accept("u")]);
    world.signal("go");
    world.start_task();
    world.limits = limits;
    let took = world.complete(asks);
    assert_eq!(took.names, ["TaskStarted", "TaskFailed"], "nothing is kept");
    let Reply::TaskRefused { cause, message } = took.reply else { panic!("{:?}", took.reply) };
    assert_eq!(cause, TaskFailureCause::BadCommand);
    let Fact::TaskFailed(failed) = world.last_fact() else { panic!() };
    assert_eq!(failed.failure.message, message);
    message
}

#[test]
fn a_close_must_be_the_last_command() {
    let message = refused([complete_run(), timer("v", 60)]);
    assert_eq!(message, "command 1: a command that closes the run must be the last one");
}

/// The first bad one is named; those before it are not carried out.
#[test]
fn the_message_names_the_command() {
    let message = refused([timer("v", 60), cancel_timer("v"), cancel_timer("v")]);
    assert_eq!(message, "command 3: there is no open timer v");
}

#[test]
fn timers() {
    assert_eq!(refused([timer("t", 60)]), "command 1: timer t is already open");
    assert_eq!(refused([timer("v", 60), timer("v", 60)]), "command 2: timer v is already open");
    assert_eq!(refused([cancel_timer("v")]), "command 1: there is no open timer v");
    assert_eq!(refused([move_timer("v", 60)]), "command 1: there is no open timer v");
    let message = refused([cancel_timer("t"), move_timer("t", 60)]);
    assert_eq!(message, "command 2: there is no open timer t");
}

#[test]
fn waits() {
    assert_eq!(refused([open_wait("w", None)]), "command 1: wait w is already open");
    for ask in [Ask::SatisfyWait, Ask::TimeOutWait, Ask::CancelWait] {
        assert_eq!(refused([ask("v".into())]), "command 1: there is no open wait v");
        let twice = refused([ask("w".into()), ask("w".into())]);
        assert_eq!(twice, "command 2: there is no open wait w");
    }
    let describe = |wait: &str| Ask::DescribeWait { wait: wait.into(), details: shows(3) };
    assert_eq!(refused([describe("v")]), "command 1: there is no open wait v");
    let late = refused([Ask::CancelWait("w".into()), describe("w")]);
    assert_eq!(late, "command 2: there is no open wait w");
}

/// What a wait showed before no longer counts.
#[test]
fn what_a_wait_shows_anew_is_bounded() {
    let limits = Limits { wait_details_bytes: 40, ..Limits::default() };
    let describe = |bytes| Ask::DescribeWait { wait: "w".into(), details: shows(bytes) };
    let expected = "command 1: details of the wait has 41 bytes, the limit is 40";
    assert_eq!(refused_by(limits, [describe(41)]), expected);
    let limits = Limits { open_details_bytes: 60, ..Limits::default() };
    let open = || Ask::OpenWait(WaitSpec { details: Some(shows(30)), ..wait_spec("v", None) });
    let again = |bytes| Ask::DescribeWait { wait: "v".into(), details: shows(bytes) };
    let expected = "command 4: details of all waits have 61 bytes, the limit is 60";
    let message = refused_by(limits, [open(), describe(20), again(40), again(41)]);
    assert_eq!(message, expected);
}

fn shows(bytes: usize) -> WaitDetails {
    WaitDetails { subject: "s".repeat(bytes), ..WaitDetails::default() }
}

#[test]
fn condition_keys() {
    let condition = Condition { key: Some("a b".into()), fingerprint: None };
    let message = refused([Ask::OpenWait(WaitSpec { condition, ..wait_spec("v", None) })]);
    let expected = "command 1: condition key \"a b\" is not 1 to 128 letters, digits and . _ - : \
                    characters";
    assert_eq!(message, expected);
}

/// Whatever a list or a snapshot keeps of a timer or a wait has a bound.
#[test]
fn what_a_timer_or_a_wait_carries_is_bounded() {
    let long = || "x".repeat(1001);
    let limits = Limits { wait_details_bytes: 40, ..Limits::default() };
    let refused = |ask: Ask| refused_by(limits.clone(), [ask]);

    let origins = [
        (Origin::ExternalEvent { name: long() }, "signal name"),
        (
            Origin::Condition { key: None, fingerprint: Some(long()) },
            "fingerprint of the condition",
        ),
        (Origin::ActivityRetry { execution: long().into() }, "execution id"),
        (Origin::ChildWorkflowRetry { workflow: long().into() }, "workflow id"),
    ];
    for (origin, field) in origins {
        let message = refused(timer_of(Some(origin), None));
        assert_eq!(message, format!("command 1: {field} has 1001 bytes, the limit is 1000"));
    }
    let key = Origin::Condition { key: Some("a b".into()), fingerprint: None };
    assert!(refused(timer_of(Some(key), None)).contains("condition key"));
    let condition = Condition { key: None, fingerprint: Some(long()) };
    let wait = Ask::OpenWait(WaitSpec { condition, ..wait_spec("v", None) });
    assert!(refused(wait).contains("fingerprint of the condition has 1001 bytes"));

    let approvals = [
        Approval { request: "r".repeat(41), ..Approval::default() },
        Approval { update: "u".repeat(41), ..Approval::default() },
        Approval { choices: vec![String::new(); 41], ..Approval::default() },
    ];
    let expected = "command 1: details of the wait has 41 bytes, the limit is 40";
    for approval in approvals {
        let details = Some(WaitDetails { approval: Some(approval), ..WaitDetails::default() });
        assert_eq!(refused(timer_of(None, details.clone())), expected);
        let wait = WaitSpec { details, ..wait_spec("v", None) };
        assert_eq!(refused(Ask::OpenWait(wait)), expected);
    }
}

/// What is shown together has a bound together; what was closed makes room.
#[test]
fn what_all_waits_of_a_run_show_is_bounded() {
    let shown = |timer: &str| {
        let details = Some(WaitDetails { subject: "s".repeat(30), ..WaitDetails::default() });
        Ask::StartTimer(TimerSpec { details, ..timer_spec(timer, at(60), None) })
    };
    let limits = Limits { open_details_bytes: 60, ..Limits::default() };
    let message = refused_by(limits.clone(), [shown("x"), shown("y"), shown("z")]);
    let expected = "command 3: details of all waits have 90 bytes, the limit is 60";
    assert_eq!(message, expected);

    let mut world = World::after([shown("x"), shown("y")]);
    world.limits = limits;
    world.signal("go");
    world.task([cancel_timer("x"), shown("z")]);
    assert!(world.run.timers.contains_key(&"z".into()));
}

fn timer_of(origin: Option<Origin>, details: Option<WaitDetails>) -> Ask {
    Ask::StartTimer(TimerSpec {
        timer: "v".into(),
        fire_at: Timestamp::NEVER,
        origin,
        details,
        guards: Guards::default(),
    })
}

#[test]
fn activities() {
    assert_eq!(refused([activity("a")]), "command 1: activity a is already open");
    let cancel = Ask::CancelActivity("b".into());
    assert_eq!(refused([cancel]), "command 1: there is no pending activity b");
    let mut spec = activity_spec("b");
    spec.start_to_close = None;
    let expected = "command 1: activity b needs a start-to-close or schedule-to-close timeout";
    assert_eq!(refused([Ask::ScheduleActivity(spec)]), expected);
}

#[test]
fn updates() {
    assert_eq!(refused([accept("u")]), "command 1: update u was already accepted");
    assert_eq!(refused([reject("u")]), "command 1: update u was already accepted");
    let message = refused([complete_update("v")]);
    assert_eq!(message, "command 1: there is no open accepted update v");
    let twice = [complete_update("u"), complete_update("u")];
    assert_eq!(refused(twice), "command 2: there is no open accepted update u");
    for again in [accept("v"), reject("v")] {
        let asks = [accept("v"), complete_update("v"), again];
        assert_eq!(refused(asks), "command 3: update v was already accepted");
    }
}

#[test]
fn so_many_of_each_may_be_open() {
    let limits = Limits {
        pending_timers: 1,
        pending_activities: 1,
        pending_children: 1,
        ..Limits::default()
    };
    let refused = |asks: Vec<Ask>| refused_by(limits.clone(), asks);
    let cases = [
        (vec![timer("v", 60)], "command 1: timer would exceed the limit of 1"),
        (vec![open_wait("v", None)], "command 1: wait would exceed the limit of 1"),
        (vec![activity("b")], "command 1: activity would exceed the limit of 1"),
        (
            vec![child("c"), signal_external("go")],
            "command 2: pending children and requests would exceed the limit of 1",
        ),
    ];
    for (asks, expected) in cases {
        assert_eq!(refused(asks), expected);
    }
}

#[test]
fn what_a_marker_records_is_bounded() {
    let marker = || Marker {
        kind: MarkerKind::LocalActivity,
        id: "1".into(),
        details: Default::default(),
        failure: None,
        header: PayloadMap::new(),
    };
    let limits = Limits { payload_bytes: 40, id_bytes: 8, failure_depth: 1, ..Limits::default() };
    let refused = |marker| refused_by(limits.clone(), [Ask::RecordMarker(marker)]);
    let failure = |message: &str| Failure { message: message.into(), ..Failure::default() };
    let cases = [
        (Marker { id: "x".repeat(9), ..marker() }, "marker id has 9 bytes, the limit is 8"),
        (
            Marker { failure: Some(failure(&"x".repeat(41))), ..marker() },
            "failure has 41 bytes, the limit is 40",
        ),
        (
            Marker {
                failure: Some(Failure { causes: Failure::default().into(), ..failure("x") }),
                ..marker()
            },
            "failure has 2 causes, the limit is 1",
        ),
        (
            Marker { header: map("h", &"x".repeat(40)), ..marker() },
            "marker has 41 bytes, the limit is 40",
        ),
    ];
    for (marker, expected) in cases {
        assert_eq!(refused(marker), format!("command 1: {expected}"));
    }
}

/// Ids that name nothing, too: the reason of the refusal tells them, and is stored.
#[test]
fn every_text_of_a_command_is_bounded() {
    let limits = Limits { payload_bytes: 40, id_bytes: 8, ..Limits::default() };
    let long = || "x".repeat(9);
    let retry = Some(RetryPolicy::default().non_retryable("x".repeat(41)));
    let keyed = Condition { key: Some(long()), fingerprint: None };
    let ids = [
        (Ask::CancelActivity(long().into()), "activity id"),
        (cancel_timer(&long()), "timer id"),
        (move_timer(&long(), 60), "timer id"),
        (Ask::SatisfyWait(long().into()), "wait id"),
        (Ask::TimeOutWait(long().into()), "wait id"),
        (Ask::CancelWait(long().into()), "wait id"),
        (complete_update(&long()), "update id"),
        (reject(&long()), "update id"),
        (Ask::OpenWait(WaitSpec { condition: keyed, ..wait_spec("v", None) }), "condition key"),
        (Ask::ScheduleActivity(ActivitySpec { queue: long(), ..activity_spec("b") }), "queue"),
    ];
    for (ask, field) in ids {
        let expected = format!("command 1: {field} has 9 bytes, the limit is 8");
        assert_eq!(refused_by(limits.clone(), [ask]), expected);
    }
    let picky = Ask::ScheduleActivity(ActivitySpec { retry, ..activity_spec("b") });
    let expected = "command 1: retry policy has 41 bytes, the limit is 40";
    assert_eq!(refused_by(limits.clone(), [picky]), expected);
    let extension = [("name".to_owned(), "x".repeat(37).into())].into();
    let failure = Failure { extension, ..Failure::default() };
    let expected = "command 1: failure has 41 bytes, the limit is 40";
    assert_eq!(refused_by(limits, [Ask::FailRun(failure)]), expected);
}

/// One command after the other could make a run's row as large as its history may be.
#[test]
fn the_attributes_of_a_run_are_bounded_together() {
    let named = |name: &str, bytes: usize| {
        PayloadMap::from([(name.to_owned(), Payload::new(vec![0; bytes]))])
    };
    let asks: [fn(PayloadMap) -> Ask; 2] = [Ask::UpsertMemo, Ask::UpsertSearchAttributes];
    for (ask, field) in asks.into_iter().zip(["memo", "search attributes"]) {
        let limits = Limits { attributes_bytes: 100, ..Limits::default() };
        let expected = format!("command 2: {field} has 102 bytes, the limit is 100");
        let both = [ask(named("a", 50)), ask(named("b", 50))];
        assert_eq!(refused_by(limits.clone(), both), expected);
        let mut world = World::after([ask(named("a", 50)), ask(named("b", 48))]);
        world.limits = limits;
        world.signal("go");
        let instead = [ask(named("a", 0)), ask(named("c", 50)), ask(named("c", 20))];
        let took = world.task(instead);
        assert!(took.names.iter().any(|name| name == "TaskCompleted"), "{:?}", took.names);
    }
}

/// Its attributes are from before the limit.
#[test]
fn attributes_that_are_too_large_may_shrink() {
    let named = |name: &str, bytes: usize| {
        PayloadMap::from([(name.to_owned(), Payload::new(vec![0; bytes]))])
    };
    let mut world =
        World::after([Ask::UpsertMemo(named("a", 300)), Ask::UpsertMemo(named("b", 9))]);
    world.limits = Limits { attributes_bytes: 100, ..Limits::default() };
    world.signal("go");
    let took = world.task([Ask::UpsertMemo(named("b", 0)), Ask::UpsertMemo(named("a", 200))]);
    assert!(took.names.iter().any(|name| name == "TaskCompleted"), "{:?}", took.names);
    world.signal("go");
    let took = world.task([Ask::UpsertMemo(named("b", 1))]);
    assert!(!took.names.iter().any(|name| name == "TaskCompleted"), "{:?}", took.names);
}

#[test]
fn what_a_gateway_keeps_with_a_command_is_bounded() {
    let mut world = World::after([]);
    world.limits = Limits { payload_bytes: 40, ..Limits::default() };
    world.signal("go");
    world.start_task();
    let extension = [("name".to_owned(), "x".repeat(37).into())].into();
    let mut completion = world.completion([]);
    completion.commands = vec![Command { extension, ..complete_run().into() }];
    let took = world.take(Input::CompleteTask(Box::new(completion)));
    let Reply::TaskRefused { message, .. } = took.reply else { panic!("{:?}", took.reply) };
    assert_eq!(message, "command 1: extension has 41 bytes, the limit is 40");
}

#[test]
fn a_task_may_have_so_many_commands() {
    let limits = Limits { commands: 2, ..Limits::default() };
    let ids: Vec<_> = (0..100).map(|number| format!("timer-{number}")).collect();
    let message = refused_by(limits, ids.iter().map(|id| timer(id, 60)));
    // Two, one for each of the three things that are open, and four for each of the six new events.
    assert_eq!(message, "command 30: a task may have 29 commands, not 100");
}

/// Otherwise a client could stop the run forever by sending many signals.
#[test]
fn every_signal_that_a_task_has_seen_can_be_waited_for() {
    let mut world = World::after([]);
    world.limits = Limits { commands: 1, ..Limits::default() };
    (0..50).for_each(|_| drop(world.signal("go")));
    let waits = (0..50).flat_map(|number| {
        let id = format!("signal-{number}");
        [timer(&id, 60), cancel_timer(&id)]
    });
    let took = world.task(waits.collect::<Vec<_>>());
    assert_eq!(took.names.iter().filter(|name| **name == "TimerCancelled").count(), 50);
}

/// Else a run that is at its bounds could not follow a cancel request.
#[test]
fn all_that_is_open_can_be_ended_in_one_task() {
    let mut world = World::after([timer("t", 60), activity("a"), child("c")]);
    world.signal("go");
    world.limits = Limits { commands: 1, pending_children: 1, ..Limits::default() };
    let initiated = *world.run.children.keys().next().unwrap();
    let Ask::CancelExternal { target, mode, reason } = cancel_external(CancelMode::Request) else {
        panic!()
    };
    let target = Target { child: Some(initiated), ..target };
    let cancel_child = Ask::CancelExternal { target, mode, reason };
    let asks = [cancel_timer("t"), Ask::CancelActivity("a".into()), cancel_child, complete_run()];
    let took = world.task(asks);
    assert!(took.names.iter().any(|name| name == "RunCompleted"), "{:?}", took.names);
}

/// What cleans up may well be a child.
#[test]
fn requests_to_children_to_cancel_themselves_take_no_room() {
    let mut world = World::after([child("c")]);
    let initiated = *world.run.children.keys().next().unwrap();
    let Ask::CancelExternal { target, mode, reason } = cancel_external(CancelMode::Request) else {
        panic!()
    };
    let target = Target { child: Some(initiated), ..target };
    world.limits.pending_children = 2;
    world.signal("cancel");
    world.task([Ask::CancelExternal { target, mode, reason }]);
    world.signal("clean up");
    let took = world.task([child("cleaner")]);
    assert!(took.names.iter().any(|name| name == "ChildInitiated"), "{:?}", took.names);
    world.signal("go");
    let took = world.task([signal_external("too much")]);
    assert!(took.names.iter().any(|name| name == "TaskFailed"), "{:?}", took.names);
}

/// What is closed in the same task makes room.
#[test]
fn the_bound_counts_what_is_open_after_each_command() {
    let mut world = World::after([timer("t", 60)]);
    world.limits.pending_timers = 1;
    world.signal("go");
    assert_eq!(world.task([cancel_timer("t"), timer("v", 60)]).names.len(), 4);
}

/// A firing in the buffer does not close the timer for code.
#[test]
fn commands_are_judged_on_the_state_without_the_buffer() {
    let mut world = World::after([timer("t", 10)]);
    world.signal("go");
    world.start_task();
    world.go_to(10);
    world.fire("t");
    assert_eq!(world.complete([cancel_timer("t")]).names[2], "TimerCancelled");
}

#[test]
fn a_retry_that_is_refused_again_is_a_note() {
    let mut world = World::new();
    assert_eq!(world.task([cancel_timer("v")]).names, ["TaskStarted", "TaskFailed"]);
    world.pass(1);
    assert_eq!(world.task([cancel_timer("v")]).names, ["TaskAttemptFailed"]);
}

#[test]
fn facts_for_lists_change_the_run_and_an_empty_value_removes() {
    let mut world = World::new();
    let marker = Marker {
        kind: MarkerKind::Named("mine".into()),
        id: "1".into(),
        details: Default::default(),
        failure: None,
        header: PayloadMap::new(),
    };
    world.task([
        Ask::UpsertMemo(map("note", "x")),
        Ask::UpsertSearchAttributes(map("customer", "7")),
        Ask::UpsertSearchAttributes(map("region", "eu")),
        Ask::RecordMarker(marker),
    ]);
    assert_eq!(world.history().last().unwrap(), "MarkerRecorded");
    world.signal("go");
    let gone = PayloadMap::from([("customer".to_owned(), Payload::default())]);
    world.task([Ask::UpsertSearchAttributes(gone)]);
    assert_eq!(world.run.spec.search_attributes, map("region", "eu"));
    assert_eq!(world.run.spec.memo, map("note", "x"));
}
