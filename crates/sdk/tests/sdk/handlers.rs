//! Handlers that still run when their run wants to end, and handlers that panic.

use std::sync::{Arc, Mutex};

use abide::{Context, UnfinishedHandlers, Workflow};
use abide_core::{
    event::{Body, Fact, SignalReceived, UpdateAdmitted, UpdateRequest},
    run::{Close, ShownWait, Status},
};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

/// Ends when it is told to; its handlers take as long as they are asked to.
#[derive(Default)]
struct Till {
    sum: u32,
}

#[workflow]
impl Till {
    #[run]
    async fn run(ctx: &Context<Self>, fail: bool) -> abide::Result<u32> {
        ctx.receive(Self::CLOSE).await?;
        if fail {
            return Err(abide::Error::new("the till is broken"));
        }
        Ok(ctx.read(|state| state.sum))
    }

    #[signal]
    fn close();

    #[signal]
    async fn count(ctx: &Context<Self>, wait: u64) {
        if ctx.sleep(seconds(wait)).await.is_ok() {
            ctx.write(|state| state.sum += 1);
        }
    }

    #[update]
    async fn pay(ctx: &Context<Self>, wait: u64, amount: u32) -> abide::Result<u32> {
        ctx.sleep(seconds(wait)).await?;
        Ok(ctx.write(|state| {
            state.sum += amount;
            state.sum
        }))
    }
}

/// The subjects of the waits for handlers.
fn waits(waits: &[ShownWait]) -> Vec<String> {
    let of_handlers = waits.iter().filter(|wait| wait.name == "handlers-finished");
    of_handlers.map(|wait| wait.details.as_ref().unwrap().subject.clone()).collect()
}

#[test]
fn a_run_with_a_result_waits_for_its_handlers() {
    let mut world = World::<Till>::start(false);
    world.signal(Till::COUNT, 5);
    world.update(Till::PAY, (10, 7));
    world.signal(Till::CLOSE, ());
    assert!(world.run.open());
    assert_eq!(waits(&world.run.describe().waits), ["signal count, update pay (update-1)"]);
    world.pass(seconds(5));
    assert!(world.run.open(), "the update still runs");
    world.evict();
    world.pass(seconds(5));
    assert_eq!(world.result(), Some(0), "the result was made before the handlers finished");
    assert!(world.outcome("update-1").is_some());
    let end = world.history();
    assert_eq!(
        end[end.len() - 4..],
        ["TimerFired", "UpdateCompleted", "WaitSatisfied", "RunCompleted"]
    );
    world.check();
}

#[test]
fn a_handler_that_begins_during_the_wait_is_waited_for_too() {
    let mut world = World::<Till>::start(false);
    world.update(Till::PAY, (10, 7));
    world.signal(Till::CLOSE, ());
    world.pass(seconds(5));
    world.update(Till::PAY, (10, 3));
    world.pass(seconds(5));
    assert!(world.run.open());
    world.pass(seconds(5));
    assert!(world.outcome("update-2").is_some());
    assert_eq!(world.result(), Some(0));
    world.check();
}

#[test]
fn a_run_without_running_handlers_closes_at_once() {
    let mut world = World::<Till>::start(false);
    world.signal(Till::COUNT, 1);
    world.pass(seconds(1));
    world.signal(Till::CLOSE, ());
    assert_eq!(world.result(), Some(1));
    assert!(!world.history().contains(&"WaitOpened"));
    world.check();
}

/// A cancel request reaches the handlers; those that clean up are still waited for.
#[test]
fn a_cancel_request_ends_the_waits_of_handlers_and_the_run_still_has_its_result() {
    let mut world = World::<Till>::start(false);
    world.update(Till::PAY, (10, 7));
    world.signal(Till::CLOSE, ());
    world.cancel();
    assert_eq!(world.result(), Some(0));
    assert!(world.outcome("update-1").is_some(), "it failed, as cancelled");
    world.check();
}

#[test]
fn a_run_that_fails_leaves_its_handlers() {
    let mut world = World::<Till>::start(true);
    world.update(Till::PAY, (10, 7));
    world.signal(Till::CLOSE, ());
    assert_eq!(world.failure().unwrap().message, "the till is broken");
    assert!(world.outcome("update-1").is_none());
    world.check();
}

#[test]
fn a_cancelled_run_leaves_its_handlers() {
    let mut world = World::<Till>::start(false);
    world.signal(Till::COUNT, 5);
    world.update(Till::PAY, (10, 7));
    world.cancel();
    assert!(matches!(world.run.status, Status::Closed { how: Close::Cancelled, .. }));
    world.check();
}

/// Has nothing to do itself.
#[derive(Default)]
struct Brief {
    paid: u32,
}

#[workflow]
impl Brief {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        Ok(ctx.read(|state| state.paid))
    }

    #[signal]
    async fn remind(ctx: &Context<Self>, wait: u64) {
        drop(ctx.sleep(seconds(wait)).await);
    }

    #[update]
    async fn pay(ctx: &Context<Self>, wait: u64) -> abide::Result<u32> {
        ctx.sleep(seconds(wait)).await?;
        Ok(ctx.write(|state| {
            state.paid += 1;
            state.paid
        }))
    }
}

/// Whoever sent them was told that they are taken.
#[test]
fn messages_that_a_run_begins_with_are_handled_although_it_returns_at_once() {
    let update = |id: &str, wait: u64| {
        let input = Brief::PAY.encode(&wait).unwrap();
        let request = UpdateRequest { name: "pay".into(), input, ..UpdateRequest::default() };
        Body::new(UpdateAdmitted { update: id.into(), request })
    };
    let (name, input) = ("remind".into(), Brief::REMIND.encode(&30).unwrap());
    let signal = Body::new(SignalReceived { name, input, ..SignalReceived::default() });
    let inputs = vec![update("first", 10), signal, update("second", 20)];
    let mut world = World::<Brief>::begin_with((), inputs);
    assert_eq!(
        waits(&world.run.describe().waits),
        ["signal remind, update pay (first), update pay (second)"]
    );
    world.pass(seconds(20));
    assert!(world.outcome("first").is_some() && world.outcome("second").is_some());
    assert!(world.run.open(), "the handler of the signal still runs");
    world.pass(seconds(10));
    assert_eq!(world.result(), Some(0));
    world.check();
}

#[test]
fn a_message_that_comes_with_the_end_of_the_run_is_handled_first() {
    let mut world = World::<Till>::start(false);
    world.signal_raw("close", Till::CLOSE.encode(&()).unwrap());
    world.signal(Till::COUNT, 5);
    assert!(world.run.open());
    world.pass(seconds(5));
    assert_eq!(world.result(), Some(0));
    world.check();
}

/// The same, but it does not wait.
#[derive(Default)]
struct Hasty;

#[workflow(unfinished_handlers = "abandon")]
impl Hasty {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::CLOSE).await
    }

    #[signal]
    fn close();

    #[update]
    async fn pay(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(60)).await
    }
}

#[test]
fn a_workflow_may_abandon_its_handlers_and_they_are_named() {
    assert_eq!(
        (Hasty::UNFINISHED_HANDLERS, Till::UNFINISHED_HANDLERS),
        (UnfinishedHandlers::Abandon, UnfinishedHandlers::Wait)
    );
    let lines = Arc::new(Mutex::new(Vec::new()));
    let play = || {
        let mut world = World::<Hasty>::start(());
        world.update(Hasty::PAY, ());
        world.signal(Hasty::CLOSE, ());
        assert!(!world.run.open());
    };
    tracing::subscriber::with_default(crate::log::Lines(lines.clone()), || {
        // A test without subscriber may have been the first to come to the line of code that logs.
        play();
        tracing::callsite::rebuild_interest_cache();
        lines.lock().unwrap().clear();
        play();
    });
    let lines = lines.lock().unwrap();
    // The world answers every task twice.
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("handlers=update pay (update-1)"), "{lines:?}");
}

/// Goes on in a new run when told to, but not before its handlers have finished.
#[derive(Default)]
struct Relay;

#[workflow]
impl Relay {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::NEXT).await?;
        ctx.handlers_finished().await?;
        Err(ctx.continue_as_new(()))
    }

    #[signal]
    fn next();

    #[update]
    async fn pay(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(60)).await
    }
}

#[test]
fn code_may_wait_for_its_handlers_before_it_continues_as_new() {
    let mut world = World::<Relay>::start(());
    world.update(Relay::PAY, ());
    world.signal(Relay::NEXT, ());
    assert!(world.run.open());
    world.pass(seconds(60));
    let carried = world.successor.as_ref().unwrap();
    assert!(carried.inputs.is_empty());
    assert_eq!(carried.previous.as_ref().unwrap().completed_updates.len(), 1);
    world.check();
}

/// Panics wherever it is asked to.
#[derive(Default)]
struct Fragile {
    number: u32,
}

#[workflow]
impl Fragile {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.receive(Self::CLOSE).await
    }

    #[signal]
    fn close();

    #[signal]
    fn drop_it(&mut self) {
        self.number += 1;
        panic!("it fell");
    }

    #[update(validate = check)]
    fn hit(&mut self, hard: bool) -> u32 {
        self.number += 1;
        assert!(!hard, "it broke");
        self.number
    }

    fn check(&self, _hard: &bool) -> Result<(), String> {
        assert!(self.number < 2, "too often");
        Ok(())
    }

    #[update]
    async fn hit_later(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(1)).await?;
        panic!("it broke later");
    }
}

/// The task fails and is tried again; nothing of it is in history.
#[test]
fn a_handler_that_panics_fails_the_task_by_its_name() {
    let mut world = World::<Fragile>::start(());
    assert_eq!(world.update(Fragile::HIT, true), None);
    let message = &world.faults[0].failure.message;
    assert!(message.starts_with("workflow code of update hit panicked: it broke"), "{message}");
    let kept = world.events.iter().all(|event| !matches!(event.body.fact, Fact::UpdateAccepted(_)));
    assert!(kept && world.run.open());

    let mut world = World::<Fragile>::start(());
    world.update(Fragile::HIT_LATER, ());
    world.pass(seconds(1));
    let message = &world.faults[0].failure.message;
    let expected = "workflow code of update hit_later panicked: it broke later; its last durable";
    assert!(message.starts_with(expected), "{message}");

    let mut world = World::<Fragile>::start(());
    world.signal(Fragile::DROP_IT, ());
    let message = &world.faults[0].failure.message;
    assert!(message.starts_with("workflow code of signal drop_it panicked: it fell"), "{message}");
}

/// It leaves nothing behind, so it does not stop the run.
#[test]
fn a_validator_that_panics_rejects_the_update() {
    let mut world = World::<Fragile>::start(());
    assert_eq!(world.update(Fragile::HIT, false), Some(Ok(1)));
    assert_eq!(world.update(Fragile::HIT, false), Some(Ok(2)));
    assert_eq!(world.update(Fragile::HIT, false), None);
    assert_eq!(world.rejected[0].message, "validator of update hit panicked: too often");
    world.signal(Fragile::CLOSE, ());
    assert!(!world.run.open());
    world.check();
}
