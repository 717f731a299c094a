//! Shards that are handed over to another node, and shards whose lease has expired.

use std::time::Duration;

use abide_core::{
    event::SignalReceived,
    operation::{AnyAnswer, AwaitClose, CallError, Describe, Done, Signal, Start},
};
use abide_shard::message::Message;

use crate::harness::{Reads, World, shard_of, target, worker};

fn start(world: &mut World, id: &str) -> Start {
    world.start_call(id)
}

fn signal() -> Signal {
    let signal = SignalReceived { name: "signal".into(), ..SignalReceived::default() };
    Signal { target: target("a"), signal, extension: Default::default() }
}

#[test]
fn a_shard_that_is_handed_over_finishes_what_is_in_flight_and_begins_nothing() {
    let mut world = World::new();
    let shard = shard_of("a");
    world.start("a");
    world.commit_at_once = false;
    let begun = world.call(shard, Describe { target: target("a") });
    assert!(world.replies.remove(&begun).is_some());
    let signalled = world.call(shard, signal());
    assert_eq!(world.replies.get(&signalled).map(Result::is_ok), None, "it is not durable yet");
    world.send(shard, Message::Close);
    assert_eq!(world.released, 0, "a commit is in flight");
    let late = world.ask(shard, Describe { target: target("a") });
    assert!(matches!(late, Err(CallError::NotServed)), "{late:?}");
    let offer = world.offers.pop().expect("the task is offered");
    world.send(shard, Message::Matched(offer, worker("session")));
    assert_eq!((world.dispatches.len(), world.unmatched), (0, 1), "its worker has its credit back");
    world.commit(Ok(()));
    let reply = world.replies.remove(&signalled).expect("the commit is done");
    assert!(matches!(reply, Ok(AnyAnswer::Done(Done { .. }))), "{reply:?}");
    assert_eq!(world.released, 1);
    assert_eq!(world.shards[&shard].wake_at(), None);
}

#[test]
fn a_shard_that_closes_before_it_is_in_memory_leaves_calls_to_its_next_owner() {
    let mut world = World::new();
    world.reads = Reads::Held;
    let shard = shard_of("a");
    let call = start(&mut world, "a");
    let early = world.call(shard, call);
    world.send(shard, Message::Close);
    assert!(matches!(world.replies.remove(&early), Some(Err(CallError::NotServed))));
    assert_eq!(world.released, 1);
    world.answer_read();
    assert!(world.commits.is_empty(), "it claims nothing");
}

#[test]
fn when_the_lease_is_over_callers_are_told_at_once_and_the_commit_is_waited_for() {
    let mut world = World::new();
    let shard = shard_of("a");
    world.start("a");
    let waiting = world.call(shard, AwaitClose { target: target("a") });
    world.commit_at_once = false;
    let signalled = world.call(shard, signal());
    world.send(shard, Message::Lapse);
    for ticket in [waiting, signalled] {
        let reply = world.replies.remove(&ticket);
        assert!(matches!(reply, Some(Err(CallError::Reset))), "{reply:?}");
    }
    assert_eq!(world.released, 0, "a commit is in flight");
    world.commit(Ok(()));
    assert_eq!(world.released, 1);
    assert!(world.replies.is_empty(), "nobody is told twice");
}

#[test]
fn a_shard_that_is_refused_a_commit_while_it_closes_is_not_opened_again() {
    let mut world = World::new();
    let shard = shard_of("a");
    world.start("a");
    world.commit_at_once = false;
    world.call(shard, signal());
    world.send(shard, Message::Close);
    world.commit(Err(abide_store::CommitError::Unavailable("no disk".into())));
    assert_eq!(world.released, 1);
    world.pass(Duration::from_secs(60));
    assert!(world.commits.is_empty());
}

#[test]
fn without_a_good_lease_no_answer_leaves_the_shard() {
    let mut world = World::new();
    let shard = shard_of("a");
    world.start("a");
    world.trusted = false;
    let answer = world.ask(shard, Describe { target: target("a") });
    assert!(matches!(answer, Err(CallError::Reset)), "{answer:?}");
    world.trusted = true;
    world.describe("a");
}

#[test]
fn without_a_good_lease_work_is_withheld_and_the_shard_is_released() {
    let mut world = World::new();
    let shard = shard_of("a");
    world.start("a");
    let waiting = world.call(shard, AwaitClose { target: target("a") });
    let offer = world.offers.pop().expect("the task is offered");
    world.trusted = false;
    world.send(shard, Message::Matched(offer, worker("session")));
    assert!(world.dispatches.is_empty(), "another owner may have its result");
    assert_eq!(world.unmatched, 1, "its worker has its credit back");
    assert!(matches!(world.replies.remove(&waiting), Some(Err(CallError::Reset))));
    assert_eq!(world.released, 1);
}
