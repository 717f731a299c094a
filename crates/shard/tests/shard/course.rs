//! Deletion and reset of runs: one batch each, whatever waits meanwhile, and nothing is left behind.

use std::time::Duration;

use abide_core::{
    command::Ask,
    event::{Delivery, ParentClosePolicy},
    failure::{Failure, FailureKind},
    ids::{Key, RunId},
    operation::{AnyAnswer, CallError, Delete, Done, Reset, RunTarget, Started, Terminate},
    run::{Reapply, Refusal, ResetPoint},
};
use abide_store::{
    CommitError, RunFilter,
    rows::{Loaded, LogLimit},
};

use crate::{
    effects::child,
    harness::{Reads, World, activity, shard_of, signal, target, timer, workflow},
};

fn exactly(id: &str, run: RunId) -> RunTarget {
    RunTarget { workflow: workflow(id), run: Some(run) }
}

fn delete(id: &str, run: RunId) -> Delete {
    Delete { target: exactly(id, run), identity: "operator".into() }
}

fn reset(target: RunTarget, to: ResetPoint, key: Option<&str>) -> Reset {
    let (reason, identity) = ("wrong turn".into(), "operator".into());
    Reset { target, to, reapply: Reapply::ALL, reason, identity, key: key.map(Key::from) }
}

fn done(answer: Result<AnyAnswer, CallError>) -> RunId {
    match answer {
        Ok(AnyAnswer::Done(Done { run, .. })) => run,
        other => panic!("not done: {other:?}"),
    }
}

fn refused(answer: Result<AnyAnswer, CallError>) -> Refusal {
    match answer {
        Err(CallError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn close(world: &mut World) {
    let token = world.take_task();
    world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
}

fn terminate(world: &mut World, id: &str) {
    let (target, reason, identity) = (target(id), "over".into(), "operator".into());
    let call = Terminate { target, reason, identity, details: Vec::new(), key: None };
    world.ask(shard_of(id), call).expect("the run is open");
}

fn is_gone(world: &World, id: &str, run: RunId) -> bool {
    let Loaded { snapshot, log, .. } = world.tables.load(shard_of(id), run, LogLimit::rows(9));
    let rows = world.tables.runs(&RunFilter::default(), 99);
    snapshot.is_none() && log.is_empty() && rows.iter().all(|row| row.run != run)
}

#[test]
fn a_deleted_run_leaves_nothing_and_its_workflow_can_start_again() {
    let mut world = World::new();
    let run = world.start("w");
    close(&mut world);
    assert_eq!(done(world.ask(shard_of("w"), delete("w", run))), run);
    assert!(is_gone(&world, "w", run));
    assert_eq!(world.signal("w", "late").unwrap_err(), CallError::NotFound);
    assert_eq!(world.ask(shard_of("w"), delete("w", run)).unwrap_err(), CallError::NotFound);
    let next = world.start("w");
    assert_eq!(world.run("w").id, next);
    assert_eq!(world.run("w").ordinal, 1);
}

#[test]
fn the_run_before_a_deleted_one_becomes_the_current_run() {
    let mut world = World::new();
    let first = world.start("w");
    close(&mut world);
    let second = world.start("w");
    close(&mut world);
    world.ask(shard_of("w"), delete("w", second)).unwrap();
    assert_eq!(world.describe("w").run, first);
    world.crash();
    assert_eq!(world.describe("w").run, first);
}

#[test]
fn a_run_whose_successor_is_deleted_becomes_the_current_run() {
    let mut world = World::new();
    let first = world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let second = done(world.ask(shard_of("w"), reset(target("w"), ResetPoint::FirstTask, None)));
    terminate(&mut world, "w");
    world.ask(shard_of("w"), delete("w", second)).unwrap();
    assert_eq!(world.describe("w").run, first);
    world.crash();
    assert_eq!(world.describe("w").run, first);
    let third = world.start("w");
    assert_eq!(world.run("w").id, third);
}

#[test]
fn an_open_run_and_one_with_undelivered_effects_are_not_deleted() {
    let mut world = World::new();
    let parent = world.start("parent");
    assert_eq!(refused(world.ask(shard_of("parent"), delete("parent", parent))), Refusal::RunOpen);
    let token = world.take_task();
    world.complete(token, vec![child("kid", ParentClosePolicy::Terminate)]);
    world.mail_lost = true;
    terminate(&mut world, "parent");
    let refusal = refused(world.ask(shard_of("parent"), delete("parent", parent)));
    assert_eq!(refusal, Refusal::Undelivered(1));
    assert!(!is_gone(&world, "parent", parent));
    world.mail_lost = false;
    world.crash();
    world.send(shard_of("parent"), abide_shard::message::Message::Tick);
    world.pass(Duration::from_secs(60));
    done(world.ask(shard_of("parent"), delete("parent", parent)));
    assert!(is_gone(&world, "parent", parent));
}

#[test]
fn what_comes_during_a_deletion_waits_for_it() {
    let mut world = World::new();
    let run = world.start("w");
    close(&mut world);
    world.commit_at_once = false;
    let deletion = world.call(shard_of("w"), delete("w", run));
    let again = world.start_call("w");
    let start = world.call(shard_of("w"), again);
    assert!(world.replies.is_empty());
    world.commit(Ok(()));
    assert!(world.replies.remove(&deletion).unwrap().is_ok());
    world.commit(Ok(()));
    let started = world.replies.remove(&start).unwrap();
    let Ok(AnyAnswer::Started(Started { run: next, started: true, .. })) = started else {
        panic!("not started: {started:?}");
    };
    assert_ne!(next, run);
    assert!(is_gone(&world, "w", run));
}

#[test]
fn a_deletion_that_failed_has_deleted_nothing() {
    let mut world = World::new();
    let run = world.start("w");
    close(&mut world);
    world.commit_at_once = false;
    let deletion = world.call(shard_of("w"), delete("w", run));
    world.commit(Err(CommitError::Full("no room".into())));
    assert!(world.replies.remove(&deletion).is_none_or(|answer| answer.is_err()));
    world.commit_at_once = true;
    world.crash();
    assert_eq!(world.describe("w").run, run);
}

#[test]
fn the_old_run_ends_and_the_new_one_begins_in_one_batch() {
    let mut world = World::new();
    let old = world.start("w");
    let token = world.take_task();
    let due = world.now.saturating_add(Duration::from_secs(60));
    world.complete(token, vec![timer("t", due), activity("a", Delivery::AtLeastOnce)]);
    world.signal("w", "one").unwrap();
    let token = world.take_task();
    world.complete(token, Vec::new());
    world.signal("w", "two").unwrap();
    world.commit_at_once = false;
    let asked = world.call(shard_of("w"), reset(target("w"), ResetPoint::LastTask, None));
    assert_eq!(world.commits.len(), 1);
    world.commit(Ok(()));
    world.commit_at_once = true;
    let new = done(world.replies.remove(&asked).unwrap());
    assert_eq!(world.history("w", old).last(), Some(&"RunTerminated"));
    let shown = world.describe("w");
    assert_eq!((shown.run, shown.reset_from), (new, Some(old)));
    assert_eq!(
        world.history("w", new)[6..],
        [
            "SignalReceived",
            "TaskScheduled",
            "TaskStarted",
            "TaskFailed",
            "SignalReceived",
            "TaskScheduled"
        ]
    );
    world.crash();
    assert_eq!(world.describe("w"), shown, "memory and log agree");
    world.pass(Duration::from_secs(60));
    assert!(world.history("w", new).contains(&"TimerFired"), "its timer is armed");
}

#[test]
fn a_reset_with_the_same_key_is_made_once() {
    let mut world = World::new();
    let old = world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    let call = reset(target("w"), ResetPoint::FirstTask, Some("once"));
    let new = done(world.ask(shard_of("w"), call.clone()));
    for _ in 0..2 {
        assert_eq!(done(world.ask(shard_of("w"), call.clone())), new, "of the current run");
        let named = reset(exactly("w", old), ResetPoint::FirstTask, Some("once"));
        assert_eq!(done(world.ask(shard_of("w"), named)), new, "of the old run");
        world.crash();
    }
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 2);
}

#[test]
fn a_closed_run_is_reset_unless_another_one_is_open() {
    let mut world = World::new();
    let first = world.start("w");
    let token = world.take_task();
    world.complete(token, vec![Ask::FailRun(Failure::server(FailureKind::Server, "no"))]);
    let second = world.start("w");
    let again = || reset(exactly("w", first), ResetPoint::FirstTask, None);
    assert_eq!(refused(world.ask(shard_of("w"), again())), Refusal::OtherRunOpen(second));
    terminate(&mut world, "w");
    let third = done(world.ask(shard_of("w"), again()));
    let shown = world.describe("w");
    assert_eq!((shown.run, shown.reset_from), (third, Some(first)));
    assert_eq!(world.run("w").ordinal, 3);
    let missing = reset(exactly("w", RunId::MAX), ResetPoint::FirstTask, None);
    assert_eq!(world.ask(shard_of("w"), missing).unwrap_err(), CallError::NotFound);
}

#[test]
fn of_two_resets_at_the_same_time_one_begins_a_run() {
    for older_first in [true, false] {
        let mut world = World::new();
        let first = world.start("w");
        close(&mut world);
        let second = world.start("w");
        close(&mut world);
        world.reads = Reads::Held;
        let runs = if older_first { [first, second] } else { [second, first] };
        let asked = runs.map(|run| {
            let call = reset(exactly("w", run), ResetPoint::FirstTask, None);
            world.call(shard_of("w"), call)
        });
        while !world.held.is_empty() {
            world.answer_read();
        }
        let answers = asked.map(|ticket| world.replies.remove(&ticket).unwrap());
        let (made, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        let made: Vec<_> = made.into_iter().map(done).collect();
        let [made] = made[..] else { panic!("{made:?}, {others:?}") };
        for other in others {
            assert_eq!(refused(other), Refusal::OtherRunOpen(made));
        }
    }
}

#[test]
fn what_comes_during_a_reset_reaches_the_new_run() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    world.complete(token, Vec::new());
    world.crash();
    world.describe("w");
    world.reads = Reads::Held;
    let asked = world.call(shard_of("w"), reset(target("w"), ResetPoint::FirstTask, None));
    let late = abide_core::operation::Signal {
        target: target("w"),
        signal: signal("late"),
        extension: Default::default(),
    };
    let late = world.call(shard_of("w"), late);
    assert!(world.replies.is_empty());
    while !world.held.is_empty() {
        world.answer_read();
    }
    world.reads = Reads::Answered;
    let new = done(world.replies.remove(&asked).unwrap());
    assert_eq!(done(world.replies.remove(&late).unwrap()), new);
    assert!(world.history("w", new).contains(&"SignalReceived"));
}

#[test]
fn a_child_stays_and_tells_the_new_run_of_its_end() {
    let mut world = World::new();
    world.start("parent");
    let token = world.take_task();
    world.complete(token, vec![child("kid", ParentClosePolicy::Terminate)]);
    let kid = world.run("kid").id;
    let place = world.offers.iter().rposition(|offer| offer.run != kid).unwrap();
    let offer = world.offers.remove(place);
    world.offers.push(offer);
    let token = world.take_task();
    world.complete(token, Vec::new());
    let new =
        done(world.ask(shard_of("parent"), reset(target("parent"), ResetPoint::LastTask, None)));
    assert!(world.run("kid").open(), "its parent goes on");
    assert_eq!(world.run("kid").parent.unwrap().run.run, new);
    terminate(&mut world, "kid");
    assert_eq!(world.history("parent", new).last(), Some(&"ChildTerminated"));
}
