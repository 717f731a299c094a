//! Effects of a run on another workflow happen exactly once, whichever messages are lost.

use std::time::Duration;

use abide_core::{
    codec,
    command::Ask,
    effect::{Action, Effect, StartChild},
    event::{ChildSpec, DeliveryFailure, Fact, Parent, ParentClosePolicy, RunSpec, Target},
    ids::RunId,
    limits::Limits,
    operation::{CallError, Signal, Terminate},
    report::Report,
};
use abide_shard::message::{EffectKey, Envelope, Mail, Message, Notice};
use abide_store::{
    Batch, CommitError, RunFilter, Write,
    rows::{InboxRow, OutboxRow},
};
use bytes::Bytes;

use crate::harness::{Reads, World, same_shard, shard_of, signal, target, workflow};

pub(crate) fn child(id: &str, parent_close: ParentClosePolicy) -> Ask {
    Ask::StartChild(Box::new(ChildSpec {
        workflow: workflow(id),
        spec: RunSpec {
            workflow_type: "child".into(),
            queue: "queue".into(),
            ..RunSpec::default()
        },
        parent_close,
        reuse: Default::default(),
        retry_of: None,
        attempt: 0,
        recorded_retry: None,
    }))
}

/// A parent that started a child on another shard.
fn family(world: &mut World, policy: ParentClosePolicy) -> (RunId, RunId) {
    assert_ne!(shard_of("parent"), shard_of("kid"));
    let parent = world.start("parent");
    let token = world.take_task();
    world.complete(token, vec![child("kid", policy)]);
    let kid = world.run("kid").id;
    (parent, kid)
}

fn empty_boxes(world: &World) -> bool {
    world.tables.outbox(shard_of("parent"), None, 9).is_empty()
        && world.tables.outbox(shard_of("kid"), None, 9).is_empty()
}

fn take_task_of(world: &mut World, run: RunId) -> abide_core::report::TaskToken {
    let place = world.offers.iter().rposition(|offer| offer.run == run).expect("it is offered");
    let offer = world.offers.remove(place);
    world.offers.push(offer);
    world.take_task()
}

#[test]
fn a_child_starts_closes_and_its_parent_learns_of_both() {
    let mut world = World::new();
    let (parent, kid) = family(&mut world, ParentClosePolicy::Terminate);
    let token = take_task_of(&mut world, kid);
    world.complete(token, vec![Ask::CompleteRun(Vec::new())]);
    assert_eq!(
        world.history("parent", parent)[4..],
        ["ChildInitiated", "ChildStarted", "TaskScheduled", "ChildCompleted"]
    );
    assert!(empty_boxes(&world));
}

#[test]
fn a_recorded_retry_of_a_child_knows_which_attempt_it_is() {
    for (attempt, expected) in [(0, 1), (3, 3)] {
        let mut world = World::new();
        world.start("parent");
        let token = world.take_task();
        let Ask::StartChild(mut spec) = child("kid", ParentClosePolicy::Abandon) else {
            unreachable!()
        };
        spec.attempt = attempt;
        world.complete(token, vec![Ask::StartChild(spec)]);
        assert_eq!(world.run("kid").attempt, expected);
    }
}

#[test]
fn a_repeated_delivery_is_answered_from_the_inbox_and_changes_nothing() {
    let mut world = World::new();
    let run = world.start("w");
    let key = EffectKey { workflow: workflow("source"), run: RunId::MAX, number: 1 };
    let effect = Effect {
        target: Target { workflow: workflow("w"), run: None, child: None },
        action: Action::Signal { name: "s".into(), input: Vec::new(), header: Default::default() },
        initiated: Some(9),
    };
    for _ in 0..3 {
        let envelope = Envelope { key: key.clone(), effect: effect.clone() };
        world.send(shard_of("w"), Mail::Deliver(Box::new(envelope)).into());
    }
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
    assert!(world.tables.inbox(shard_of("w"), RunId::MAX, 1).is_some());
    world.send(shard_of("w"), Mail::Confirmed(key.clone()).into());
    // A duplicate that was sent before the confirmation may arrive after it.
    let again = || Envelope { key: key.clone(), effect: effect.clone() };
    world.send(shard_of("w"), Mail::Deliver(Box::new(again())).into());
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
    // Only the clock leaps: a process that stood still meanwhile may send it once more.
    world.pass(Duration::from_secs(24 * 3600));
    world.send(shard_of("w"), Mail::Deliver(Box::new(again())).into());
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled", "SignalReceived"]);
    let Limits { confirmed_retention, sweep_interval, .. } = Limits::default();
    let mut kept_for = Duration::ZERO;
    while world.tables.inbox(shard_of("w"), RunId::MAX, 1).is_some() {
        world.pass(sweep_interval);
        kept_for += sweep_interval;
        assert!(kept_for <= confirmed_retention);
    }
    assert!(kept_for >= confirmed_retention - 2 * sweep_interval, "{kept_for:?}");
}

#[test]
fn no_child_is_started_under_the_id_of_another_run() {
    let mut world = World::new();
    let victim = world.start("victim");
    let intruder = same_shard("victim");
    let key = EffectKey { workflow: workflow("source"), run: RunId::MAX, number: 1 };
    let Ask::StartChild(spec) = child(&intruder, ParentClosePolicy::Abandon) else {
        unreachable!()
    };
    let start = |run| {
        let parent = Parent { run: key.source(), initiated: 5, ordinal: 1 };
        let start = StartChild { run, child: (*spec).clone(), root: key.source(), parent };
        let target = Target { workflow: workflow(&intruder), run: None, child: None };
        let effect =
            Effect { target, action: Action::StartChild(Box::new(start)), initiated: Some(5) };
        Message::from(Mail::Deliver(Box::new(Envelope { key: key.clone(), effect })))
    };
    world.send(shard_of("victim"), start(victim));
    assert_eq!(world.notices, [Notice::Senseless(Box::new(key.clone()))]);
    assert!(world.tables.inbox(shard_of("victim"), key.run, key.number).is_none());
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 1);
    assert_eq!(world.tables.shard(shard_of("victim")).epoch, 1, "the shard was not reset");
    assert!(world.signal("victim", "a").is_ok());
    world.send(shard_of("victim"), start(RunId::of_child(RunId::MAX, 5, world.now)));
    assert_eq!(world.tables.runs(&RunFilter::default(), 9).len(), 2, "its own id it may have");
}

/// A child of a taken id is refused on behalf of the run that has the id, which is not touched.
#[test]
fn an_answer_that_is_committed_for_a_run_does_not_end_that_it_is_set_aside() {
    let mut world = World::new();
    let run = world.start("w");
    let signal_call = || {
        let (signal, extension) = (signal("a"), Default::default());
        Signal { target: target("w"), signal, extension }
    };
    for _ in 0..3 {
        world.commit_at_once = false;
        world.call(shard_of("w"), signal_call());
        world.commit_at_once = true;
        world.commit(Err(CommitError::Refused("a row is too large".into())));
        world.pass(Duration::from_secs(5));
    }
    assert_eq!(world.signal("w", "a").unwrap_err(), CallError::SetAside(run));
    let parent = world.start("parent");
    let token = take_task_of(&mut world, parent);
    world.complete(token, vec![child("w", ParentClosePolicy::Abandon)]);
    assert!(world.history("parent", parent).contains(&"ChildStartFailed"));
    assert_eq!(world.signal("w", "a").unwrap_err(), CallError::SetAside(run));
}

#[test]
fn a_child_that_the_store_never_lets_begin_is_reported_as_failed() {
    let mut world = World::new();
    let parent = world.start("parent");
    let token = world.take_task();
    world.commit_at_once = false;
    let commands = vec![child("kid", ParentClosePolicy::Abandon).into()];
    let completion = abide_core::report::TaskCompletion { commands, ..Default::default() };
    world.say(shard_of("parent"), Report::CompleteTask(token, Box::new(completion)));
    let kid = shard_of("kid");
    for _ in 0..20 {
        while let Some(batch) = world.commits.front() {
            let begins =
                |write: &Write| matches!(write, Write::AppendLog(row) if row.sequence == 1);
            let refused = batch.shard == kid && batch.writes.iter().any(begins);
            world.commit(if refused {
                Err(CommitError::log_row_exists(parent, 1))
            } else {
                Ok(())
            });
        }
        world.pass(Duration::from_secs(30));
    }
    let failed = world.facts("parent", parent).into_iter().find_map(|fact| match fact {
        Fact::ChildStartFailed(failed) => Some(failed.cause),
        _ => None,
    });
    assert_eq!(failed, Some(DeliveryFailure::Refused));
    let [Notice::Unstarted(_, reason)] = &world.notices[..] else { panic!("{:?}", world.notices) };
    assert!(reason.contains("already has a log row"), "{reason}");
    assert!(empty_boxes(&world));
}

/// A garbled envelope has the key of a genuine effect, which must not be settled by it.
#[test]
fn an_effect_that_was_garbled_on_its_way_is_resent_and_applied() {
    let mut world = World::new();
    let parent = world.start("parent");
    let token = world.take_task();
    world.commit_at_once = false;
    let commands = vec![child("kid", ParentClosePolicy::Abandon).into()];
    let completion = abide_core::report::TaskCompletion { commands, ..Default::default() };
    world.say(shard_of("parent"), Report::CompleteTask(token, Box::new(completion)));
    let batch = world.commits.front().expect("the completion");
    let garbled = batch.writes.iter().find_map(|write| match write {
        Write::PutOutbox(row) => {
            let mut effect = codec::decode_effect(row.effect.clone()).unwrap();
            effect.target.workflow = workflow("other");
            let key = EffectKey { workflow: workflow("parent"), run: row.run, number: row.number };
            Some(Envelope { key, effect })
        }
        _ => None,
    });
    let garbled = garbled.expect("an effect");
    let key = garbled.key.clone();
    world.commit_at_once = true;
    world.mail_lost = true;
    world.commit(Ok(()));
    world.mail_lost = false;
    world.send(shard_of("other"), Mail::Deliver(Box::new(garbled)).into());
    assert_eq!(world.notices, [Notice::Senseless(Box::new(key))]);
    assert!(!world.history("parent", parent).contains(&"ChildStartFailed"));
    world.pass(Limits::default().effect_timeout);
    assert!(world.history("parent", parent).contains(&"ChildStarted"));
    assert!(empty_boxes(&world));
}

/// An effect that its source cannot have requested is answered, so that it is not resent for ever.
#[test]
fn an_effect_that_makes_no_sense_is_refused_once_and_for_all() {
    let mut world = World::new();
    let parent = world.start("parent");
    let token = world.take_task();
    // The outbox row differs from what the run's code requested.
    world.commit_at_once = false;
    let commands = vec![child("kid", ParentClosePolicy::Abandon).into()];
    let completion = abide_core::report::TaskCompletion { commands, ..Default::default() };
    world.say(shard_of("parent"), Report::CompleteTask(token, Box::new(completion)));
    let mut batch = world.commits.pop_front().expect("the completion");
    for write in &mut batch.writes {
        if let Write::PutOutbox(row) = write {
            let mut effect = codec::decode_effect(row.effect.clone()).unwrap();
            effect.target.workflow = workflow("other");
            row.effect = codec::encode_effect(&effect);
        }
    }
    world.tables.apply(&batch).unwrap();
    world.crash();
    world.commit_at_once = true;
    world.send(shard_of("parent"), Message::Tick);
    world.pass(Limits::default().effect_timeout);
    assert!(world.history("parent", parent).contains(&"ChildStartFailed"));
    let key = EffectKey { workflow: workflow("parent"), run: parent, number: 1 };
    assert_eq!(world.notices, [Notice::Senseless(Box::new(key))]);
    let sent = world.delivered;
    world.pass(Limits::default().effect_timeout * 3);
    assert_eq!(world.delivered, sent, "it is not sent again");
    assert!(empty_boxes(&world));
}

#[test]
fn an_effect_that_cannot_be_read_is_told_and_left_for_a_version_that_can() {
    let mut world = World::new();
    let parent = world.start("parent");
    let row = OutboxRow {
        run: parent,
        number: 7,
        namespace: workflow("parent").namespace,
        workflow: workflow("parent").workflow,
        effect: Bytes::from_static(b"?"),
    };
    let batch = Batch { shard: shard_of("parent"), epoch: 1, writes: vec![Write::PutOutbox(row)] };
    world.tables.apply(&batch).unwrap();
    world.crash();
    world.send(shard_of("parent"), Message::Tick);
    let [Notice::Unreadable(run, reason)] = &world.notices[..] else {
        panic!("{:?}", world.notices)
    };
    assert_eq!(*run, parent);
    assert!(reason.contains("effect 7"), "{reason}");
    assert_eq!(world.tables.outbox(shard_of("parent"), None, 9).len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_is_told_and_the_effect_does_not_happen_again() {
    let mut world = World::new();
    let run = world.start("w");
    let key = EffectKey { workflow: workflow("source"), run: RunId::MAX, number: 1 };
    let outcome = Bytes::from_static(b"?");
    let row = InboxRow { source: key.run, number: key.number, at: world.now, outcome };
    let batch = Batch { shard: shard_of("w"), epoch: 1, writes: vec![Write::PutInbox(row)] };
    world.tables.apply(&batch).unwrap();
    let effect = Effect {
        target: Target { workflow: workflow("w"), run: None, child: None },
        action: Action::Signal { name: "s".into(), input: Vec::new(), header: Default::default() },
        initiated: Some(9),
    };
    world.send(shard_of("w"), Mail::Deliver(Box::new(Envelope { key, effect })).into());
    let [Notice::Unreadable(RunId::MAX, reason)] = &world.notices[..] else {
        panic!("{:?}", world.notices)
    };
    assert!(reason.contains("effect 1"), "{reason}");
    assert_eq!(world.history("w", run), ["RunStarted", "TaskScheduled"]);
}

#[test]
fn an_undelivered_effect_is_sent_after_a_crash() {
    let mut world = World::new();
    let parent = world.start("parent");
    let token = world.take_task();
    world.shards.remove(&shard_of("kid"));
    world.commit_at_once = false;
    let commands = vec![child("kid", ParentClosePolicy::Abandon).into()];
    let completion = abide_core::report::TaskCompletion { commands, ..Default::default() };
    world.say(shard_of("parent"), Report::CompleteTask(token, Box::new(completion)));
    let batch = world.commits.pop_front().expect("the completion");
    world.tables.apply(&batch).expect("it is written but nobody hears of it");
    world.crash();
    world.commit_at_once = true;
    world.send(shard_of("parent"), Message::Tick);
    assert_eq!(world.run("kid").parent.map(|parent| parent.run.run), Some(parent));
    assert!(empty_boxes(&world));
}

#[test]
fn the_parents_close_reaches_its_children_as_their_policy_says() {
    for (policy, expected) in [
        (ParentClosePolicy::Terminate, "RunTerminated"),
        (ParentClosePolicy::RequestCancel, "RunCancelRequested"),
        (ParentClosePolicy::Abandon, "TaskScheduled"),
    ] {
        let mut world = World::new();
        let (_, kid) = family(&mut world, policy);
        let call = Terminate {
            target: target("parent"),
            reason: String::new(),
            identity: String::new(),
            details: Vec::new(),
            key: None,
        };
        world.ask(shard_of("parent"), call).unwrap();
        assert_eq!(world.history("kid", kid).last(), Some(&expected), "{policy:?}");
        assert!(empty_boxes(&world));
    }
}

/// Effects that were sent before the target shard was loaded are resent without waiting for the timeout.
#[test]
fn effects_are_sent_again_as_soon_as_their_target_is_in_memory() {
    let mut world = World::with_limits(Limits { resent_effects: 2, ..Limits::default() });
    let parent = world.start("parent");
    let token = world.take_task();
    world.reads = Reads::Held;
    let kids: Vec<_> = (0..)
        .map(|number| format!("kid-{number}"))
        .filter(|id| shard_of(id) == shard_of("kid"))
        .take(3)
        .collect();
    let policy = ParentClosePolicy::Abandon;
    world.complete(token, kids.iter().map(|id| child(id, policy)).collect());
    assert_eq!(world.delivered, 3);
    world.reads = Reads::Answered;
    world.shards.remove(&shard_of("kid"));
    world.send(shard_of("kid"), Message::Tick);
    let send_again = |shard| Message::SendAgain([shard].into());
    world.send(shard_of("parent"), send_again(shard_of("parent")));
    assert_eq!(world.delivered, 3, "nothing was for this shard");
    for expected in [2, 3] {
        world.send(shard_of("parent"), send_again(shard_of("kid")));
        let started = |name: &&&str| **name == "ChildStarted";
        let count = world.history("parent", parent).iter().filter(started).count();
        assert_eq!(count, expected, "not more at once than may be");
    }
}

/// Unanswered effects are resent a few at a time, and none is forgotten.
#[test]
fn many_unanswered_effects_are_sent_again_a_few_at_a_time() {
    let limits = Limits { resent_effects: 10, ..Limits::default() };
    let timeout = limits.effect_timeout;
    let mut world = World::with_limits(limits);
    let parent = world.start("parent");
    let token = world.take_task();
    // No other shard is loaded, so no effect is answered.
    world.reads = Reads::Held;
    let elsewhere = |id: &String| shard_of(id) != shard_of("parent");
    let ids = (0..).map(|number| format!("kid-{number}")).filter(elsewhere).take(30);
    world.complete(token, ids.map(|id| child(&id, ParentClosePolicy::Abandon)).collect());
    assert_eq!(world.delivered, 30);
    for round in 1..=4 {
        world.pass(timeout);
        assert_eq!(world.delivered, 30 + 10 * round);
    }

    world.reads = Reads::Answered;
    world.shards.retain(|shard, _| *shard == shard_of("parent"));
    for _ in 0..3 {
        world.pass(timeout);
    }
    let started = |name: &&&str| **name == "ChildStarted";
    assert_eq!(world.history("parent", parent).iter().filter(started).count(), 30);
}
