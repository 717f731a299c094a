//! Interceptors that refuse messages, and what replay makes of it when they come and go.

use abide::{
    Context,
    interceptor::{Interceptor, Message, MessageKind, RunInfo},
};
use abide_core::{
    event::{Body, Event, Fact, UpdateAdmitted, UpdateRequest},
    failure::Failure,
    payload::Payload,
};
use abide_sdk_macros::workflow;

use crate::world::World;

/// Adds numbers until it is told to stop, or to go on in another run.
#[derive(Default)]
struct Sum {
    total: u32,
}

#[workflow]
impl Sum {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        match ctx.receive(Self::STOP).await? {
            true => Err(ctx.continue_as_new(())),
            false => Ok(ctx.read(|state| state.total)),
        }
    }

    #[signal]
    fn stop(go_on: bool);

    #[signal]
    fn add(&mut self, number: u32) {
        self.total += number;
    }

    #[update]
    fn put(&mut self, number: u32) -> u32 {
        self.total += number;
        self.total
    }

    #[query]
    fn total(&self) -> u32 {
        self.total
    }
}

/// Refuses messages of these kinds, except those that stop the run.
struct Refuse(&'static [MessageKind]);

impl Interceptor for Refuse {
    fn message(&self, _: &RunInfo, message: &Message) -> Result<(), String> {
        match self.0.contains(&message.kind) && message.name != "stop" {
            true => Err("closed ".repeat(1_000)),
            false => Ok(()),
        }
    }
}

const NOTHING: Refuse = Refuse(&[]);
const CHANGES: Refuse = Refuse(&[MessageKind::Signal, MessageKind::Update]);

#[test]
fn what_was_taken_stays_taken_when_an_interceptor_is_added() {
    let mut world = World::<Sum>::start(());
    world.signal(Sum::ADD, 1);
    assert_eq!(world.update(Sum::PUT, 2), Some(Ok(3)));
    world.intercept(CHANGES);
    world.check_replay();
    world.signal(Sum::ADD, 100);
    assert_eq!(world.update(Sum::PUT, 100), None);
    assert_eq!(world.query(Sum::TOTAL, ()), 3);
    world.check_replay();
    world.signal(Sum::STOP, false);
    assert_eq!(world.result(), Some(3));
}

#[test]
fn what_was_refused_stays_refused_when_the_interceptor_is_gone() {
    let mut world = World::<Sum>::start(());
    world.intercept(CHANGES);
    world.signal(Sum::ADD, 1);
    assert_eq!(world.update(Sum::PUT, 2), None);
    let refused: Vec<&Failure> = world.events.iter().filter_map(refusal).collect();
    assert_eq!(refused.len(), 1, "a rejected update leaves no trace");
    assert_eq!(refused[0].message.len(), 1_000, "a reason of any length does no harm");
    world.intercept(NOTHING);
    assert_eq!(world.query(Sum::TOTAL, ()), 0);
    world.check_replay();
    world.signal(Sum::ADD, 5);
    world.signal(Sum::STOP, false);
    assert_eq!(world.result(), Some(5));
    world.check_replay();
}

fn refusal(event: &Event) -> Option<&Failure> {
    match &event.body.fact {
        Fact::MarkerRecorded(recorded) => recorded.marker.failure.as_ref(),
        _ => None,
    }
}

/// An update that is in history before code sees it, as one that came with the start is.
#[test]
fn an_admitted_update_that_was_refused_stays_refused() {
    for (then, now, total) in [(CHANGES, NOTHING, 0), (NOTHING, CHANGES, 7)] {
        let input = vec![Payload::new("7")];
        let request = UpdateRequest { name: "put".into(), input, ..UpdateRequest::default() };
        let admitted = UpdateAdmitted { update: "early".into(), request };
        let mut world = World::<Sum>::unbegun_with((), vec![Body::new(admitted)]);
        world.intercept(then);
        world.work();
        assert_eq!(world.query(Sum::TOTAL, ()), total);
        world.intercept(now);
        assert_eq!(world.query(Sum::TOTAL, ()), total);
        world.check_replay();
    }
}

#[test]
fn refused_signals_are_not_carried_to_the_next_run() {
    let mut world = World::<Sum>::start(());
    world.intercept(CHANGES);
    world.signal(Sum::ADD, 1);
    world.signal(Sum::STOP, true);
    assert!(world.successor.as_ref().unwrap().inputs.is_empty());
    world.check();
}

/// Says in a query whether the code is replaying.
struct AskReplaying;

impl Interceptor for AskReplaying {
    fn message(&self, run: &RunInfo, _: &Message) -> Result<(), String> {
        if run.is_replaying() { Err("replaying".into()) } else { Ok(()) }
    }
}

#[test]
fn a_query_is_never_a_replay() {
    let mut world = World::<Sum>::start(());
    world.intercept(AskReplaying);
    world.signal(Sum::ADD, 1);
    // The machine of a query has replayed everything.
    assert_eq!(world.query(Sum::TOTAL, ()), 1);
}

/// A signal as the worker hands it on if it cannot be decoded.
fn undecoded(world: &mut World<Sum>, never: bool) {
    let mut payload = Payload::new(format!(r#"{{"never":{never},"why":"no key"}}"#));
    payload.metadata.insert("encoding".into(), "codec/unread".into());
    world.signal_raw("add", vec![payload]);
    world.work();
}

#[test]
fn a_signal_that_can_never_be_decoded_is_refused() {
    let mut world = World::<Sum>::start(());
    undecoded(&mut world, true);
    world.signal(Sum::ADD, 5);
    let refused: Vec<_> = world.events.iter().filter_map(refusal).collect();
    assert_eq!(refused[0].message, "its data cannot be decoded: no key");
    world.check();
    // The record holds also where the signal could be decoded by now.
    for event in &mut world.events {
        if let Fact::SignalReceived(signal) = &mut event.body.fact {
            signal.input = vec![Payload::new("5")];
        }
    }
    world.evict();
    assert_eq!(world.query(Sum::TOTAL, ()), 5);
}

#[test]
fn a_signal_that_may_still_be_decoded_stops_the_run() {
    let mut world = World::<Sum>::start(());
    undecoded(&mut world, false);
    let message = &world.faults[0].failure.message;
    assert!(message.contains("signal add of event") && message.ends_with("no key"), "{message}");
}

/// It had an effect when it was read, so replay without it would be another run.
#[test]
fn a_signal_that_was_read_is_not_refused_later() {
    let mut world = World::<Sum>::start(());
    world.signal(Sum::ADD, 5);
    let received = world.events.iter_mut().find_map(|event| match &mut event.body.fact {
        Fact::SignalReceived(signal) => Some(signal),
        _ => None,
    });
    let mut payload = Payload::new(r#"{"never":true,"why":"it is damaged"}"#);
    payload.metadata.insert("encoding".into(), "codec/unread".into());
    received.unwrap().input = vec![payload];
    world.evict();
    world.signal(Sum::ADD, 6);
    assert!(world.faults[0].failure.message.ends_with("it is damaged"));
}
