//! Timers fire exactly once and on time, whether the run and its due row are in memory or in the store.

use std::time::Duration;

use abide_core::{
    event::{Origin, TimerSpec},
    ids::{ShardId, WorkflowKey},
    limits::Limits,
    operation::{AnyAnswer, AwaitClose, Done, Repair, RescheduleTimer, Terminate},
    report::{Report, TaskCompletion},
    time::Timestamp,
};
use abide_shard::message::{Message, Notice};
use abide_store::{
    Batch, WaitFilter, Write,
    rows::{DueKey, DueRow, WaitRow},
};
use bytes::Bytes;

use crate::harness::{Reads, World, shard_of, target, timer, workflow};

const HOUR: Duration = Duration::from_secs(3600);

fn sleeping(world: &mut World, id: &str, duration: Duration) -> abide_core::ids::RunId {
    let run = world.start(id);
    let token = world.take_task();
    let fire_at = world.now.saturating_add(duration);
    world.complete(token, vec![timer("t", fire_at)]);
    run
}

fn fired(world: &World, id: &str, run: abide_core::ids::RunId) -> usize {
    world.history(id, run).iter().filter(|name| **name == "TimerFired").count()
}

#[test]
fn a_timer_far_away_fires_exactly_when_it_is_due() {
    let mut world = World::new();
    let run = sleeping(&mut world, "w", 1000 * HOUR);
    world.pass(1000 * HOUR - Duration::from_nanos(1));
    assert_eq!(fired(&world, "w", run), 0);
    world.pass(Duration::from_nanos(1));
    assert_eq!(fired(&world, "w", run), 1);
    world.pass(HOUR);
    assert_eq!(fired(&world, "w", run), 1);
}

/// Rows of a newer version, more than one page of them.
#[test]
fn what_is_due_and_cannot_be_read_is_told_and_keeps_no_timer_from_firing() {
    let mut world = World::with_limits(Limits { page_rows: 2, ..Limits::default() });
    let run = sleeping(&mut world, "w", HOUR);
    let writes = (0..5).map(|number| {
        let due = world.now.saturating_add(Duration::from_secs(number));
        let WorkflowKey { namespace, workflow } = workflow("w");
        Write::PutDue(DueRow { due, run, timer: Bytes::from_static(b"?"), workflow, namespace })
    });
    let batch = Batch { shard: shard_of("w"), epoch: 1, writes: writes.collect() };
    world.tables.apply(&batch).unwrap();
    world.crash();
    world.send(shard_of("w"), Message::Tick);
    world.pass(HOUR);
    // Rows that have been read by now become due.
    world.pass(Duration::ZERO);
    assert_eq!(fired(&world, "w", run), 1);
    assert_eq!(world.notices.len(), 5);
    for notice in &world.notices {
        assert!(matches!(notice, Notice::Unreadable(told, _) if *told == run), "{notice:?}");
    }
}

/// Otherwise a busy shard would keep the deadlines of all recent tasks in memory.
#[test]
fn the_deadline_of_a_task_is_forgotten_when_it_ends() {
    let wake_at = |world: &World| world.shards[&shard_of("w")].wake_at();
    let mut world = World::new();
    world.start("w");
    let before = wake_at(&world);
    let token = world.take_task();
    assert!(wake_at(&world) < before);
    let fire_at = world.now.saturating_add(HOUR);
    world.complete(token, vec![timer("t", fire_at)]);
    assert_eq!(wake_at(&world), before);
}

#[test]
fn a_timer_whose_row_is_not_committed_when_the_index_is_read_is_not_missed() {
    let mut world = World::new();
    let run = world.start("w");
    let token = world.take_task();
    world.commit_at_once = false;
    let fire_at = world.now.saturating_add(Duration::from_secs(80));
    let completion =
        TaskCompletion { commands: vec![timer("t", fire_at).into()], ..TaskCompletion::default() };
    world.say(shard_of("w"), Report::CompleteTask(token, Box::new(completion)));
    // The next page of the index is read while the commit is in flight.
    world.pass(Duration::from_secs(40));
    world.commit_at_once = true;
    world.commit(Ok(()));
    world.pass(Duration::from_secs(40));
    assert_eq!(fired(&world, "w", run), 1);
}

#[test]
fn a_backlog_fires_at_once_when_the_shard_comes_back() {
    let limits = Limits { page_rows: 2, near_timers: 2, cached_runs: 2, ..Limits::default() };
    let mut world = World::with_limits(limits);
    let ids: Vec<_> = (0..40).map(|n| format!("w-{n}")).collect();
    let runs: Vec<_> = ids.iter().map(|id| sleeping(&mut world, id, HOUR)).collect();
    let shards: Vec<ShardId> = world.shards.keys().copied().collect();
    world.crash();
    world.now = world.now.saturating_add(2 * HOUR);
    for shard in shards {
        world.send(shard, Message::Tick);
    }
    for _ in 0..40 {
        world.pass(Duration::from_millis(1));
    }
    for (id, run) in ids.iter().zip(runs) {
        assert_eq!(fired(&world, id, run), 1, "{id}");
    }
}

#[test]
fn a_sentinel_wait_is_listed_and_has_no_due_entry() {
    let mut world = World::new();
    world.start("w");
    let token = world.take_task();
    let wait = TimerSpec {
        timer: "t".into(),
        fire_at: Timestamp::NEVER,
        origin: Some(Origin::ExternalEvent { name: "approved".into() }),
        details: None,
        guards: Default::default(),
    };
    world.complete(token, vec![abide_core::command::Ask::StartTimer(wait)]);
    let waits = world.tables.waits(&WaitFilter::default(), 10);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].1.name.as_str(), waits[0].1.until), ("approved", Timestamp::NEVER));
    assert!(world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).is_empty());
}

#[test]
fn ten_thousand_moves_leave_one_entry() {
    let mut world = World::new();
    let run = sleeping(&mut world, "w", HOUR);
    for n in 1..=10_000_u64 {
        let fire_at = world.now.saturating_add(HOUR + Duration::from_secs(n));
        let call = RescheduleTimer {
            target: target("w"),
            what: "t".into(),
            fire_at,
            after: None,
            identity: "operator".into(),
            key: None,
        };
        assert!(matches!(world.ask(shard_of("w"), call), Ok(AnyAnswer::Done(Done { .. }))));
    }
    assert_eq!(world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).len(), 1);
    world.pass(HOUR + Duration::from_secs(9_999));
    assert_eq!(fired(&world, "w", run), 0);
    world.pass(Duration::from_secs(1));
    assert_eq!(fired(&world, "w", run), 1);
}

#[test]
fn a_repeated_move_is_answered_with_the_due_time_that_is_recorded() {
    let mut world = World::new();
    sleeping(&mut world, "w", HOUR);
    let first = world.now + 2 * HOUR;
    for repeat in [false, true] {
        let call = RescheduleTimer {
            target: target("w"),
            what: "t".into(),
            fire_at: world.now + 2 * HOUR,
            after: Some(2 * HOUR),
            identity: "operator".into(),
            key: Some("m".into()),
        };
        let Ok(AnyAnswer::Done(done)) = world.ask(shard_of("w"), call) else { panic!() };
        assert_eq!((done.repeat, done.fire_at), (repeat, Some(first)));
        world.pass(Duration::from_secs(1));
    }
}

#[test]
fn repair_recreates_a_lost_row_and_the_timer_fires_once() {
    let mut world = World::new();
    let run = sleeping(&mut world, "w", HOUR);
    let lost = world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).remove(0);
    world.crash();
    delete_due(&mut world, lost.key());
    world.pass(2 * HOUR);
    let call = Repair { target: target("w"), identity: "operator".into() };
    assert!(matches!(world.ask(shard_of("w"), call), Ok(AnyAnswer::Done(Done { .. }))));
    world.pass(Duration::ZERO);
    assert_eq!(fired(&world, "w", run), 1);
}

/// A stale row in the list of waits would ask people for decisions that no run needs.
#[test]
fn repair_removes_what_is_listed_and_not_waited_for() {
    let mut world = World::new();
    sleeping(&mut world, "w", HOUR);
    let listed = |world: &World| world.tables.waits(&WaitFilter::default(), 10);
    let before = listed(&world);
    let left = WaitRow { wait: Bytes::from_static(b"cleft"), ..before[0].1.clone() };
    let repair = || Repair { target: target("w"), identity: "operator".into() };
    apply(&mut world, Write::PutWait(left.clone()));
    assert!(matches!(world.ask(shard_of("w"), repair()), Ok(AnyAnswer::Done(Done { .. }))));
    assert_eq!(listed(&world), before);

    let end = Terminate {
        target: target("w"),
        reason: String::new(),
        identity: "operator".into(),
        details: Default::default(),
        key: None,
    };
    world.ask(shard_of("w"), end).expect("it ends");
    apply(&mut world, Write::PutWait(left));
    assert!(matches!(world.ask(shard_of("w"), repair()), Ok(AnyAnswer::Done(Done { .. }))));
    assert_eq!(listed(&world), [], "also of a closed run");
}

#[test]
fn the_sweeper_finds_a_run_that_lost_only_its_due_time() {
    let mut world = World::new();
    sleeping(&mut world, "w", HOUR);
    let lost = world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).remove(0);
    world.crash();
    delete_due(&mut world, lost.key());
    world.send(shard_of("w"), Message::Tick);
    world.pass(Limits::default().sweep_interval);
    assert_eq!(world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10), [lost]);
}

#[test]
fn the_sweeper_finds_a_run_without_any_row() {
    let mut world = World::new();
    let run = sleeping(&mut world, "w", HOUR);
    let lost = world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).remove(0);
    let wait = world.tables.waits(&WaitFilter::default(), 1).remove(0).1.wait;
    world.crash();
    delete_due(&mut world, lost.key());
    apply(&mut world, Write::DeleteWait { run, wait });
    world.send(shard_of("w"), Message::Tick);
    world.pass(Limits::default().sweep_interval);
    assert_eq!(world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10), [lost]);
}

/// Its timer would resume it, but not before an hour has passed.
#[test]
fn the_sweeper_finds_a_run_that_lost_only_its_task() {
    let mut world = World::with_limits(Limits { checked_runs: 1, ..Limits::default() });
    for other in 0..5 {
        sleeping(&mut world, &nth_on_shard("w", other), HOUR);
    }
    sleeping(&mut world, "w", HOUR);
    world.signal("w", "wakes it").expect("it is taken");
    let lost = world.tables.tasks(shard_of("w"), None, 10);
    assert_eq!(lost.len(), 1);
    world.crash();
    apply(&mut world, Write::DeleteTask(lost[0].key.clone()));
    world.send(shard_of("w"), Message::Tick);
    for _ in 0..6 {
        world.pass(Limits::default().sweep_interval);
    }
    assert_eq!(world.tables.tasks(shard_of("w"), None, 10), lost);
    assert_eq!(world.offers.len(), 1);
}

/// Another workflow id on the shard of this one.
fn nth_on_shard(id: &str, number: usize) -> String {
    let others = (0..).map(|n| format!("quiet-{n}"));
    let mut others = others.filter(|other| shard_of(other) == shard_of(id));
    others.nth(number).expect("there are more ids than shards")
}

/// Callers that wait for the run do not notice the failed sweep.
#[test]
fn a_sweep_that_fails_is_made_again_and_disturbs_nobody() {
    // With this window the shard reads nothing else during the test.
    let mut world = World::with_limits(Limits { near_window: 24 * HOUR, ..Limits::default() });
    sleeping(&mut world, "w", HOUR);
    let lost = world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10).remove(0);
    delete_due(&mut world, lost.key());
    let waits = world.call(shard_of("w"), AwaitClose { target: target("w") });
    world.reads = Reads::Failing;
    world.pass(Limits::default().sweep_interval);
    world.reads = Reads::Answered;
    assert!(!world.replies.contains_key(&waits), "{:?}", world.replies);
    world.pass(Limits::default().sweep_interval);
    assert_eq!(world.tables.due(shard_of("w"), None, Timestamp::NEVER, 10), [lost]);
}

fn delete_due(world: &mut World, key: DueKey) {
    apply(world, Write::DeleteDue(key));
}

/// Writes to the store directly, bypassing the shard.
fn apply(world: &mut World, write: Write) {
    let shard = shard_of("w");
    let epoch = world.tables.shard(shard).epoch;
    world.tables.apply(&Batch { shard, epoch, writes: vec![write] }).expect("it is written");
}
