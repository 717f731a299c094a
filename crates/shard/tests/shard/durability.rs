//! A shard sends nothing before the state behind it is durable; a failed commit resets the shard's memory.

use abide_core::{
    command::Ask,
    limits::Limits,
    operation::{AnyAnswer, CallError, Describe, Done, Repair, Signal, Started},
    report::Report,
    run::Refusal,
};
use abide_shard::message::{Message, Notice};
use abide_store::{
    Batch, CommitError, Write,
    rows::{LogLimit, SnapshotRow},
};

use crate::harness::{Reads, World, same_shard, shard_of, signal, target, worker};

#[test]
fn a_start_is_answered_and_offered_only_after_its_commit() {
    let mut world = World::new();
    world.start("warm");
    world.commit_at_once = false;
    world.offers.clear();
    let call = world.start_call("warm-2");
    // The same shard as the first workflow, so that it is already open.
    let id = same_shard("warm");
    let call = abide_core::operation::Start { workflow: crate::harness::workflow(&id), ..call };
    let ticket = world.call(shard_of(&id), call);
    assert!(world.replies.is_empty() && world.offers.is_empty());
    world.commit(Ok(()));
    assert!(matches!(world.replies.remove(&ticket), Some(Ok(AnyAnswer::Started(Started { .. })))));
    assert_eq!(world.offers.len(), 1);
}

#[test]
fn a_call_that_comes_before_the_shard_is_in_memory_waits_for_it() {
    let mut world = World::new();
    world.commit_at_once = false;
    let call = world.start_call("w");
    let ticket = world.call(shard_of("w"), call);
    assert!(world.replies.is_empty());
    world.commit(Ok(()));
    assert!(world.replies.is_empty(), "the claim is durable, the start is not");
    world.commit(Ok(()));
    assert!(matches!(world.replies.remove(&ticket), Some(Ok(AnyAnswer::Started(Started { .. })))));
}

#[test]
fn inputs_that_come_while_a_commit_is_in_flight_join_the_next_batch() {
    let mut world = World::new();
    let run = world.start("w");
    world.commit_at_once = false;
    for key in ["a", "b", "c"] {
        world.call(shard_of("w"), signal_call(key));
    }
    assert_eq!(world.commits.len(), 1, "one commit is in flight");
    world.commit(Ok(()));
    assert_eq!(world.replies.len(), 1);
    assert_eq!(world.commits.len(), 1);
    world.commit(Ok(()));
    assert_eq!(world.replies.len(), 3);
    assert_eq!(
        world.history("w", run),
        ["RunStarted", "TaskScheduled", "SignalReceived", "SignalReceived", "SignalReceived"]
    );
}

pub(crate) fn signal_call(key: &str) -> Signal {
    Signal { target: target("w"), signal: signal(key), extension: Default::default() }
}

#[test]
fn a_commit_of_unknown_outcome_resets_the_shard_and_callers_repeat_with_their_key() {
    let mut world = World::new();
    let run = world.start("w");
    world.commit_at_once = false;
    let first = world.call(shard_of("w"), signal_call("a"));
    let second = world.call(shard_of("w"), signal_call("b"));
    world.commit_at_once = true;
    world.commit(Err(CommitError::Unknown("the connection was lost".into())));
    for ticket in [first, second] {
        assert!(matches!(world.replies.remove(&ticket), Some(Err(CallError::Reset))));
    }
    world.pass(std::time::Duration::ZERO);
    assert!(matches!(world.signal("w", "a"), Ok(AnyAnswer::Done(Done { repeat: false, .. }))));
    assert!(matches!(world.signal("w", "a"), Ok(AnyAnswer::Done(Done { repeat: true, .. }))));
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

#[test]
fn a_commit_of_unknown_outcome_that_was_applied_is_found_by_its_key() {
    let mut world = World::new();
    let run = world.start("w");
    world.commit_at_once = false;
    world.call(shard_of("w"), signal_call("a"));
    let batch = world.commits.front().cloned().unwrap();
    world.tables.apply(&batch).unwrap();
    world.commit_at_once = true;
    world.commit(Err(CommitError::Unknown("the connection was lost".into())));
    world.pass(std::time::Duration::ZERO);
    assert!(matches!(world.signal("w", "a"), Ok(AnyAnswer::Done(Done { repeat: true, .. }))));
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

#[test]
fn a_run_whose_writes_are_refused_twice_is_set_aside() {
    let mut world = World::new();
    let run = world.start("w");
    for _ in 0..3 {
        world.commit_at_once = false;
        world.call(shard_of("w"), signal_call("a"));
        world.commit_at_once = true;
        world.commit(Err(CommitError::Refused("a row is too large".into())));
        world.pass(std::time::Duration::from_secs(5));
    }
    assert_eq!(world.signal("w", "a").unwrap_err(), CallError::SetAside(run));
    assert_eq!(world.notices, [Notice::SetAside(run, "a row is too large".into())]);
    let repair = Repair { target: target("w"), identity: "operator".into() };
    world.ask(shard_of("w"), repair).expect("it is repaired");
    assert_eq!(world.notices.last(), Some(&Notice::Repaired(run)));
    world.signal("w", "a").expect("it is served again");
}

#[test]
fn work_of_a_run_that_is_set_aside_is_not_offered_again_and_again() {
    let mut world = World::new();
    world.start("w");
    for _ in 0..3 {
        world.commit_at_once = false;
        world.call(shard_of("w"), signal_call("a"));
        // A second write of the run in the same batch is refused with the first, and counts once.
        world.call(shard_of("w"), signal_call("b"));
        world.commit_at_once = true;
        world.commit(Err(CommitError::Refused("a row is too large".into())));
        world.pass(std::time::Duration::from_secs(5));
    }
    let offer = world.offers.last().cloned().expect("its task is offered");
    world.offers.clear();
    world.send(shard_of("w"), Message::Matched(offer, worker("session")));
    assert!(world.dispatches.is_empty() && world.offers.is_empty());
}

#[test]
fn one_refusal_does_not_set_a_run_aside_however_often_it_is_in_the_batch() {
    let mut world = World::new();
    world.start("w");
    world.commit_at_once = false;
    for key in ["a", "b", "c"] {
        world.call(shard_of("w"), signal_call(key));
    }
    world.commit(Ok(()));
    world.commit_at_once = true;
    world.commit(Err(CommitError::Refused("a row is too large".into())));
    world.pass(std::time::Duration::from_secs(5));
    assert!(world.signal("w", "b").is_ok());
}

#[test]
fn a_shard_that_a_failed_read_reset_waits_for_the_commit_under_way() {
    let mut world = World::new();
    let run = world.start("w");
    world.commit_at_once = false;
    world.call(shard_of("w"), signal_call("a"));
    world.reads = Reads::Failing;
    world.call(shard_of("w"), Describe { target: target(&same_shard("w")) });
    world.reads = Reads::Answered;
    world.pass(std::time::Duration::from_secs(5));
    assert_eq!(world.commits.len(), 1, "the claim waits");
    world.commit(Ok(()));
    world.commit_at_once = true;
    world.pass(std::time::Duration::from_secs(5));
    assert!(matches!(world.signal("w", "a"), Ok(AnyAnswer::Done(Done { repeat: true, .. }))));
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
}

#[test]
fn a_stale_epoch_halts_the_shard() {
    let mut world = World::new();
    world.start("w");
    let mut successor = World::new();
    successor.owner = "successor";
    successor.entropy = 1_000;
    std::mem::swap(&mut successor.tables, &mut world.tables);
    successor.start(&same_shard("w"));
    std::mem::swap(&mut successor.tables, &mut world.tables);
    assert!(matches!(world.signal("w", "a"), Err(CallError::Reset)));
    assert_eq!(world.halted.len(), 1);
}

/// The store's answer to the claim was lost while the claim was in flight.
#[test]
fn a_claim_of_unknown_outcome_that_lands_late_does_not_cost_the_shard() {
    let mut world = World::new();
    world.commit_at_once = false;
    let call = world.start_call("w");
    world.call(shard_of("w"), call);
    let late = world.commits.front().cloned().expect("the first claim");
    world.commit(Err(CommitError::Unknown("the connection was lost".into())));
    world.pass(std::time::Duration::ZERO);
    world.tables.apply(&late).expect("it lands behind the back of the second claim");
    world.commit_at_once = true;
    world.commit(Ok(()));
    assert_eq!(world.halted, []);
    world.start("w");
}

/// An owner whose shard another node claims meanwhile has no claim of its own in doubt.
#[test]
fn a_claim_that_somebody_else_overtook_halts_the_shard() {
    let mut world = World::new();
    world.commit_at_once = false;
    world.send(shard_of("w"), Message::Tick);
    let mut overtaking = world.commits.front().cloned().expect("the claim");
    let claim = Write::Claim { epoch: 1, owner: "somebody else".into() };
    overtaking.writes = vec![claim];
    world.tables.apply(&overtaking).expect("it comes first");
    world.commit(Ok(()));
    assert_eq!(world.halted.len(), 1);
}

#[test]
fn everything_goes_on_after_a_crash() {
    let mut world = World::new();
    let run = world.start("w");
    let token = world.take_task();
    world.signal("w", "while-started").unwrap();
    world.crash();
    world.signal("w", "after").unwrap();
    let stale = world.report(shard_of("w"), Report::CompleteTask(token, Box::default()));
    assert_eq!(stale.unwrap_err(), CallError::Refused(Refusal::StaleTask));
    let token = world.take_task();
    world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    assert_eq!(
        world.history("w", run),
        [
            "RunStarted",
            "TaskScheduled",
            "SignalReceived",
            "SignalReceived",
            "TaskStarted",
            "TaskCompleted",
            "RunCompleted",
        ]
    );
}

/// Snapshots grow with the state of a run, here the keys of signals. At a fixed interval their total cost
/// would be quadratic in the length of the run.
#[test]
fn a_growing_snapshot_is_renewed_ever_more_seldom() {
    let mut world = World::with_limits(Limits { snapshot_rows: 10, ..Limits::default() });
    let run = world.start("w");
    let mut renewals = std::collections::BTreeSet::new();
    for number in 0..1000 {
        world.signal("w", &number.to_string()).unwrap();
        let loaded = world.tables.load(shard_of("w"), run, LogLimit::rows(0));
        renewals.extend(loaded.snapshot.map(|row| row.sequence));
    }
    assert!((10..20).contains(&renewals.len()), "{renewals:?}");
    let rows = world.run("w").log_rows;
    assert!(renewals.last().is_some_and(|last| *last > rows * 2 / 3), "{renewals:?}, {rows} rows");
}

#[test]
fn a_run_is_folded_from_its_snapshot_or_from_the_whole_log_if_that_cannot_be_used() {
    let mut world = World::with_limits(Limits { snapshot_rows: 3, ..Limits::default() });
    let run = world.start("w");
    for key in ["one", "two", "three", "four"] {
        world.signal("w", key).unwrap();
    }
    let (before, shard) = (world.describe("w"), shard_of("w"));
    let stored = world.tables.load(shard, run, LogLimit::rows(usize::MAX));
    let snapshot = stored.snapshot.expect("there are enough rows");
    let rows = world.tables.log(shard, run, 0, LogLimit::rows(usize::MAX)).len();
    let undecodable = SnapshotRow { state: "?".into(), ..snapshot.clone() };
    let misnumbered = SnapshotRow { sequence: snapshot.sequence + 1, ..snapshot.clone() };
    let cases = [(snapshot, stored.log.len()), (undecodable, rows), (misnumbered, rows)];
    for (snapshot, expected) in cases {
        let epoch = world.tables.shard(shard).epoch;
        let writes = vec![Write::PutSnapshot(snapshot.clone())];
        world.tables.apply(&Batch { shard, epoch, writes }).unwrap();
        world.crash();
        world.largest_page = 0;
        assert_eq!(world.describe("w"), before, "{snapshot:?}");
        assert_eq!(world.largest_page, expected, "{snapshot:?}");
    }
}
