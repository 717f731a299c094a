//! Children, other workflows, and the next run of the same one.

use abide::{Context, RawPayload, payload};
use abide_core::{
    effect::{Action, EffectOutcome, RunOutcome},
    event::{CancelMode, DeliveryFailure},
    failure::Failure,
    payload::Payload,
    retry::RetryState,
};
use abide_sdk_macros::workflow;

use crate::world::{World, seconds};

#[derive(Default)]
struct Child;

#[workflow]
impl Child {
    #[run]
    async fn run(ctx: &Context<Self>, number: u32) -> abide::Result<u32> {
        ctx.receive(Self::HURRY).await?;
        Ok(number)
    }

    #[signal]
    fn hurry();
}

#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>, with_handle: bool) -> abide::Result<u32> {
        if !with_handle {
            return ctx.child::<Child>("child", 7).await;
        }
        let handle = ctx.child::<Child>("child", 7).queue("children").start().await?;
        handle.signal(Child::HURRY, ()).await?;
        handle.cancel().await?;
        let first = handle.result().await?;
        Ok(first + handle.result().await?)
    }
}

fn completed(number: u32) -> RunOutcome {
    RunOutcome::Completed(payload::encode(&number).unwrap())
}

#[test]
fn a_child_is_awaited_for_its_result() {
    let mut world = World::<Parent>::start(false);
    let Action::StartChild(start) = world.answer(EffectOutcome::Applied) else { panic!() };
    assert_eq!(start.child.spec.workflow_type, "Child");
    assert_eq!(start.child.spec.queue, "main");
    world.close_child(completed(7));
    assert_eq!(world.result(), Some(7));
    world.check();
}

#[test]
fn a_handle_signals_cancels_and_awaits_its_child() {
    let mut world = World::<Parent>::start(true);
    world.answer(EffectOutcome::Applied);
    let target = world.run.outbox.values().next().unwrap().target.clone();
    assert!(target.child.is_some(), "only this run's own child is meant");
    assert!(
        matches!(world.answer(EffectOutcome::Applied), Action::Signal { name, .. } if name == "hurry")
    );
    let cancel = world.answer(EffectOutcome::Applied);
    assert!(matches!(cancel, Action::Cancel { mode: CancelMode::Request, .. }));
    world.close_child(completed(4));
    assert_eq!(world.result(), Some(8));
    world.check();
}

#[test]
fn every_way_in_which_a_child_fails_is_told() {
    let failure = Failure { message: "boom".into(), ..Failure::default() };
    let retry_state = RetryState::PolicyNotSet;
    let ways = [
        (RunOutcome::Failed { failure, retry_state }, "boom"),
        (RunOutcome::TimedOut { retry_state }, "it timed out"),
        (RunOutcome::Cancelled(Vec::new()), "it was cancelled"),
        (RunOutcome::Terminated { reason: "enough".into() }, "it was terminated: enough"),
    ];
    for (outcome, message) in ways {
        let mut world = World::<Parent>::start(false);
        world.answer(EffectOutcome::Applied);
        world.close_child(outcome);
        let expected = format!("child child of type Child failed: {message}");
        assert_eq!(world.failure().unwrap().message, expected);
        world.check();
    }
}

#[test]
fn a_child_that_cannot_be_started_is_an_error() {
    for with_handle in [false, true] {
        let mut world = World::<Parent>::start(with_handle);
        world.answer(EffectOutcome::Failed(DeliveryFailure::AlreadyExists));
        assert!(
            world.failure().unwrap().message.ends_with("a workflow with that id already exists")
        );
        world.check();
    }
}

/// Passes a payload on to another workflow without reading it.
#[derive(Default)]
struct Forwarder;

#[workflow]
impl Forwarder {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let data = ctx.receive(Self::DATA).await?;
        ctx.external::<Self>("other").signal(Self::DATA, data).await?;
        ctx.external::<Self>("other").cancel().await
    }

    #[signal]
    fn data(data: RawPayload);
}

#[test]
fn other_workflows_are_signalled_and_cancelled() {
    let mut world = World::<Forwarder>::start(());
    let data = Payload::new("not even JSON");
    world.signal(Forwarder::DATA, RawPayload(data.clone()));
    let Action::Signal { input, .. } = world.answer(EffectOutcome::Applied) else { panic!() };
    assert_eq!(input, [data]);
    world.answer(EffectOutcome::Failed(DeliveryFailure::NotFound));
    let message = &world.failure().unwrap().message;
    assert_eq!(message, "workflow other was not reached: there is no such workflow");
    world.check();
}

#[derive(Default)]
struct Counter;

#[workflow]
impl Counter {
    #[run]
    async fn run(ctx: &Context<Self>, count: u32) -> abide::Result<u32> {
        ctx.receive(Self::STEP).await?;
        if count == 2 { Ok(count) } else { Err(ctx.continue_as_new(count + 1)) }
    }

    #[signal]
    fn step(number: u32);

    #[update]
    async fn nap(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(seconds(60)).await
    }
}

#[test]
fn unread_signals_and_unfinished_updates_go_on_in_the_next_run() {
    let mut world = World::<Counter>::start(1);
    world.update(Counter::NAP, ());
    world.signal_raw("step", payload::encode(&1).unwrap());
    world.signal_raw("step", payload::encode(&2).unwrap());
    world.work();
    assert_eq!(world.history().last(), Some(&"RunContinuedAsNew"));
    world.check();

    let mut next = World::<Counter>::begin(*world.successor.unwrap());
    assert_eq!(next.history()[1..3], ["SignalReceived", "UpdateAdmitted"]);
    assert!(next.run.open(), "the update has no outcome");
    next.pass(seconds(60));
    assert!(next.outcome("update-1").is_some());
    assert_eq!(next.result(), Some(2));
    next.check();
}
