//! What a run waits for, as lists and descriptions show it: the same wait in both.

use abide_core::{
    codec,
    command::Ask,
    event::{Approval, Guards, Mover, Origin, Parent, RunSpec, WaitDetails},
    list::{WaitEnd, WaitKind},
    run::{Input, Movable, Refusal, RescheduleTimer, ShownWait, StartRun, TimerKey, WaitKey},
    time::Timestamp,
};

use crate::{
    build::*,
    world::{World, start_run},
};

fn approval() -> WaitDetails {
    let approval = Approval {
        request: "1".into(),
        update: "decide".into(),
        choices: vec!["approve".into(), "reject".into()],
    };
    WaitDetails {
        subject: "a new desk".into(),
        actors: vec!["anna".into()],
        data: map("price", "300"),
        approval: Some(approval),
    }
}

/// Opens the wait `w` for a person's decision.
fn ask_person(timer: Option<&str>) -> Ask {
    let mut spec = wait_spec("w", timer);
    spec.details = Some(approval());
    Ask::OpenWait(spec)
}

/// The only wait of the run.
fn only(world: &World) -> ShownWait {
    let [wait] = world.run.shown_waits().try_into().expect("one wait");
    wait
}

fn move_wait(wait: WaitKey, due: u64) -> Input {
    Input::RescheduleTimer(RescheduleTimer {
        what: Movable::Wait(wait),
        fire_at: at(due),
        after: None,
        identity: "operator".into(),
        key: None,
    })
}

fn condition_key() -> WaitKey {
    WaitKey::Condition("w".into())
}

#[test]
fn a_sleep_shows_its_timer_and_its_end() {
    let guards = Guards { not_after: Some(at(60)), max_extensions: Some(3) };
    let wait = only(&World::after([guarded("t", 10, guards)]));
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Timer, "t"));
    assert_eq!(
        (wait.key.clone(), wait.timer.clone()),
        (WaitKey::Timer("t".into()), Some("t".into()))
    );
    assert_eq!((wait.since, wait.until), (at(0), at(10)));
    assert_eq!((wait.origin.clone(), wait.guards), (Some(Origin::CreateTimer), guards));
    assert_eq!(wait.ended_by(), [WaitEnd::Time]);
}

#[test]
fn a_signal_wait_without_deadline_has_no_timer_to_move() {
    let wait = only(&World::after([endless("t", "paid")]));
    assert_eq!(
        (wait.kind, wait.name.as_str(), wait.timer.clone()),
        (WaitKind::Signal, "paid", None)
    );
    assert_eq!(wait.until, Timestamp::NEVER);
    assert_eq!(wait.ended_by(), [WaitEnd::Signal]);
}

#[test]
fn a_condition_and_its_deadline_are_one_wait() {
    let wait = only(&World::after([open_wait("w", Some("t")), deadline("t", 10)]));
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Condition, "paid"));
    assert_eq!((wait.key.clone(), wait.timer.clone()), (condition_key(), Some("t".into())));
    assert_eq!(wait.until, at(10));
    let (key, fingerprint) = (Some("paid".into()), Some("f1".into()));
    assert_eq!(wait.origin, Some(Origin::Condition { key, fingerprint }));
    assert_eq!(wait.ended_by(), [WaitEnd::Condition, WaitEnd::Deadline]);
}

#[test]
fn a_condition_that_a_person_decides_is_an_approval() {
    let wait = only(&World::after([ask_person(None)]));
    assert_eq!(
        (wait.kind, wait.name.as_str(), wait.timer.clone()),
        (WaitKind::Approval, "paid", None)
    );
    assert_eq!(wait.details, Some(approval()));
    assert_eq!(wait.ended_by(), [WaitEnd::Decision]);
}

#[test]
fn the_next_attempt_of_an_activity_is_a_wait_with_its_origin() {
    let spec = abide_core::event::ActivitySpec { retry: Some(policy()), ..activity_spec("a") };
    let mut world = World::after([Ask::ScheduleActivity(spec)]);
    assert_eq!(world.run.shown_waits(), []);
    world.start_activity("a");
    world.fail_activity("a");
    let wait = only(&world);
    let execution = world.activity("a").execution.clone();
    assert_eq!(wait.key, WaitKey::Activity(world.scheduled("a")));
    assert_eq!((wait.kind, &wait.name), (WaitKind::ActivityRetry, &execution.to_string()));
    assert_eq!(wait.origin, Some(Origin::ActivityRetry { execution }));
    assert_eq!((wait.until, wait.timer.clone()), (at(1), None));
    let refused = world.refused(move_wait(wait.key, 50));
    assert!(matches!(refused, Refusal::EndlessWait(_)), "{refused:?}");
}

#[test]
fn the_row_of_a_wait_says_what_its_description_says() {
    let mut world = World::after([ask_person(Some("t")), deadline("t", 10), timer("s", 20)]);
    world.move_timer("t", 30);
    let shown = world.run.shown_waits();
    assert_eq!(shown.len(), 2);
    for wait in shown {
        let row = world.run.wait_row(&wait.key).expect("a row");
        assert_eq!(WaitKey::from_bytes(&row.wait), Some(wait.key));
        assert_eq!((row.kind, row.name, row.timer), (wait.kind, wait.name, wait.timer));
        assert_eq!((row.since, row.until), (wait.since, wait.until));
        assert_eq!(codec::decode_wait_details(row.details), Ok(wait.details));
        assert_eq!((row.run, row.workflow), (world.run.id, world.run.workflow.workflow.clone()));
        assert_eq!(row.workflow_type, world.run.spec.workflow_type);
    }
    assert_eq!(world.run.wait_row(&WaitKey::Timer("t".into())), None, "it is the condition's");
}

#[test]
fn a_wait_says_how_often_it_was_moved_and_by_whom() {
    let mut world = World::after([open_wait("w", Some("t")), deadline("t", 10)]);
    assert_eq!((only(&world).moves, only(&world).moved_by), (0, None));
    assert_eq!(world.take(move_wait(condition_key(), 20)).names, ["TimerRescheduled"]);
    let wait = only(&world);
    assert_eq!((wait.until, wait.moves), (at(20), 1));
    let Some(Mover::Outside { identity, .. }) = wait.moved_by else { panic!("{wait:?}") };
    assert_eq!(identity, "operator");
    world.signal("go");
    world.task([move_timer("t", 40)]);
    let wait = only(&world);
    assert_eq!((wait.until, wait.moves, wait.moved_by), (at(40), 1, Some(Mover::Code)));
}

#[test]
fn a_move_that_waits_for_the_task_to_end_is_shown_at_once() {
    let mut world = World::after([timer("t", 10)]);
    world.signal("go");
    world.start_task();
    world.take(move_wait(WaitKey::Timer("t".into()), 20));
    let wait = only(&world);
    assert_eq!((wait.until, wait.moves), (at(20), 1));
    assert!(matches!(wait.moved_by, Some(Mover::Outside { .. })));
    world.complete([]);
    assert_eq!(only(&world), wait);
}

#[test]
fn only_a_wait_with_a_deadline_can_be_moved() {
    let mut world = World::after([open_wait("w", None), endless("t", "paid")]);
    let endless = world.refused(move_wait(condition_key(), 20));
    assert_eq!(endless, Refusal::EndlessWait("w".into()));
    let never = world.refused(move_wait(WaitKey::Timer("t".into()), 20));
    assert_eq!(never, Refusal::NoDeadline("t".into()));
    let unknown = world.refused(move_wait(WaitKey::Condition("x".into()), 20));
    assert_eq!(unknown, Refusal::UnknownWait("x".into()));
    assert_eq!(unknown.to_string(), "there is no open wait x");
}

/// Otherwise a deadline that came would look like none until a worker is there.
#[test]
fn a_deadline_that_came_stays_the_end_of_the_wait_until_code_has_seen_it() {
    let mut world = World::after([open_wait("w", Some("t")), deadline("t", 10)]);
    world.go_to(12);
    world.fire("t");
    let wait = only(&world);
    assert_eq!((wait.until, wait.timer), (at(10), None));
    assert_eq!(world.refused(move_wait(condition_key(), 20)), Refusal::TimerFired("t".into()));
    world.task([Ask::TimeOutWait("w".into())]);
    assert_eq!(world.run.shown_waits(), []);
}

#[test]
fn a_closed_run_waits_for_nothing() {
    let mut world = World::after([open_wait("w", None), timer("t", 10)]);
    world.terminate();
    assert_eq!(world.run.shown_waits(), []);
    assert_eq!(world.run.describe().waits, []);
    assert_eq!(world.run.wait_row(&condition_key()), None);
}

/// Who follows the waits is not woken by what does not change them.
#[test]
fn the_run_knows_which_row_last_changed_its_waits() {
    let mut world = World::after([timer("t", 60)]);
    let changed = world.run.waits_row;
    assert_eq!(changed, world.run.log_rows);
    world.signal("go");
    world.task([]);
    assert_eq!(world.run.waits_row, changed);
    world.move_timer("t", 90);
    assert_eq!(world.run.waits_row, world.run.log_rows);
}

/// Others may act now. All else stays.
#[test]
fn a_wait_shows_what_code_says_of_it_anew() {
    let mut world = World::after([ask_person(Some("t")), deadline("t", 10)]);
    let before = only(&world);
    world.go_to(5);
    world.signal("hand over");
    let details = WaitDetails { actors: vec!["bert".into()], ..approval() };
    let describe = Ask::DescribeWait { wait: "w".into(), details: details.clone() };
    assert_eq!(world.task([describe]).names[2..], ["WaitDescribed"]);
    assert_eq!(only(&world), ShownWait { details: Some(details), ..before });
}

/// The move is acknowledged while code hands over: neither is lost.
#[test]
fn a_move_while_code_describes_the_wait_is_kept() {
    let mut world = World::after([ask_person(Some("t")), deadline("t", 10)]);
    world.signal("hand over");
    world.start_task();
    assert_eq!(world.take(move_wait(condition_key(), 50)).names, ["InputBuffered"]);
    let details = WaitDetails { actors: vec!["bert".into()], ..approval() };
    let names = world.complete([Ask::DescribeWait { wait: "w".into(), details }]).names;
    assert_eq!(names[2..], ["WaitDescribed", "TimerRescheduled", "BufferReleased"]);
    let wait = only(&world);
    assert_eq!((wait.until, wait.moves), (at(50), 1));
    assert_eq!(wait.details.unwrap().actors, ["bert"]);
}

/// A child that failed and is tried again by the engine.
fn retried_child() -> World {
    let parent = Parent { run: other(), initiated: 5, ordinal: 1 };
    let spec = RunSpec { retry: Some(policy()), ..spec() };
    let mut world = World::begin(StartRun { spec, parent: Some(parent), ..start_run() });
    world.go_to(5);
    let took = world.task([Ask::FailRun(failure("boom"))]);
    world.successor(&took)
}

#[test]
fn the_next_attempt_of_a_child_is_a_wait_with_its_origin() {
    let mut world = retried_child();
    let wait = only(&world);
    let workflow = world.run.workflow.workflow.clone();
    assert_eq!((&wait.key, wait.kind), (&WaitKey::Begin, WaitKind::ChildRetry));
    assert_eq!(wait.name, workflow.to_string());
    assert_eq!(wait.origin, Some(Origin::ChildWorkflowRetry { workflow }));
    assert_eq!((wait.since, wait.until, wait.timer.clone()), (at(5), at(6), None));
    let row = world.run.wait_row(&wait.key).expect("a row");
    assert_eq!((row.kind, row.name, row.until), (wait.kind, wait.name, wait.until));
    let refused = world.refused(move_wait(WaitKey::Begin, 50));
    assert_eq!(refused, Refusal::EndlessWait("begin".into()));

    world.crash();
    world.go_to(6);
    world.due(TimerKey::FirstTask);
    assert_eq!(world.run.shown_waits(), []);
    assert_eq!(world.run.waits_row, world.run.log_rows, "followers of the waits are notified");
}

/// A start delay has no origin, and a run without a parent is not a child's retry.
#[test]
fn only_the_retry_of_a_child_waits_for_its_beginning() {
    let parent = Some(Parent { run: other(), initiated: 5, ordinal: 1 });
    let delayed = World::begin(StartRun { first_task_at: Some(at(60)), parent, ..start_run() });
    assert_eq!(delayed.run.shown_waits(), []);
    let mut alone = World::with(RunSpec { retry: Some(policy()), ..spec() });
    let took = alone.task([Ask::FailRun(failure("boom"))]);
    assert_eq!(alone.successor(&took).run.shown_waits(), []);
}
