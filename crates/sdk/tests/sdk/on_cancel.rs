//! What becomes of activities and children when the wait for them is cancelled.

use abide::{Context, Error, OnCancel, RetryPolicy, payload, select};
use abide_core::{
    effect::{Action, EffectOutcome, RunOutcome},
    event::{CancelMode, DeliveryFailure, Fact},
    failure::Failure,
    retry::RetryState,
};
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn work() -> u32 {
    0
}

const POLICIES: [OnCancel; 3] = [OnCancel::Cancel, OnCancel::CancelAndWait, OnCancel::Abandon];

#[derive(Default)]
struct Call;

#[workflow]
impl Call {
    #[run]
    async fn run(ctx: &Context<Self>, policy: usize) -> abide::Result<u32> {
        let worked = ctx.activity(work, ()).on_cancel(POLICIES[policy]).await;
        if let Err(Error::Cancelled) = worked {
            ctx.sleep(seconds(1)).await?;
        }
        worked
    }
}

#[test]
fn try_cancel_asks_and_goes_on() {
    let mut world = World::<Call>::start(0);
    world.begin_attempt(work);
    world.cancel();
    world.pass(seconds(1));
    assert_eq!(
        world.history()[2..],
        [
            "RunCancelRequested",
            "ActivityCancelRequested",
            "TimerStarted",
            "TimerFired",
            "RunCancelled"
        ]
    );
    world.check();
}

#[test]
fn abandon_leaves_the_activity_alone() {
    let mut world = World::<Call>::start(2);
    world.cancel();
    world.complete(work, 4);
    world.pass(seconds(1));
    assert_eq!(
        world.history()[2..],
        ["RunCancelRequested", "TimerStarted", "ActivityCompleted", "TimerFired", "RunCancelled"]
    );
    world.check();
}

fn waits_for_cancel() -> World<Call> {
    let mut world = World::<Call>::start(1);
    world.begin_attempt(work);
    world.cancel();
    assert_eq!(world.history()[2..], ["RunCancelRequested", "ActivityCancelRequested"]);
    world
}

#[test]
fn wait_for_cancel_gives_the_result_of_an_activity_that_completes_all_the_same() {
    let mut world = waits_for_cancel();
    world.complete(work, 4);
    assert_eq!(world.result(), Some(4));
    world.check();
}

#[test]
fn wait_for_cancel_tells_the_details_of_an_activity_that_stops() {
    let mut world = waits_for_cancel();
    world.stop(work, &"half done".to_owned());
    let Fact::RunCancelled(cancelled) = &world.events.last().unwrap().body.fact else { panic!() };
    assert_eq!(payload::decode::<String>(&cancelled.details).unwrap(), "half done");
    world.check();
}

#[test]
fn wait_for_cancel_tells_a_failure_as_it_is() {
    let mut world = waits_for_cancel();
    world.fail(work, Failure { message: "boom".into(), ..Failure::default() });
    assert_eq!(world.failure().unwrap().message, "activity work failed: boom");
    world.check();
}

#[derive(Default)]
struct Child;

#[workflow]
impl Child {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.sleep(seconds(60)).await?;
        Ok(1)
    }
}

/// How the parent of a test loses its child.
#[derive(serde::Serialize, serde::Deserialize)]
enum Way {
    /// By a cancel request, with this policy.
    Awaits(usize),
    /// By a cancel request, although it would be tried again.
    AwaitsRetries,
    /// By a select that a timer wins.
    Selects,
    /// By a select that is won at once.
    SelectsAtOnce,
    /// By dropping its handle.
    DropsHandle,
    /// By a cancel request while it waits for the result by a handle, perhaps with a policy.
    AwaitsHandle(bool),
}

#[derive(Default)]
struct Parent;

#[workflow]
impl Parent {
    #[run]
    async fn run(ctx: &Context<Self>, way: Way) -> abide::Result<u32> {
        let child = ctx.child::<Child>("child", ());
        let result = match way {
            Way::Awaits(policy) => child.on_cancel(POLICIES[policy]).await,
            Way::AwaitsRetries => {
                let policy = RetryPolicy::default().recorded();
                child.retry(policy).on_cancel(OnCancel::CancelAndWait).await
            }
            Way::Selects => select! {
                result = child => result,
                _ = ctx.sleep(seconds(1)) => Ok(0),
            },
            Way::SelectsAtOnce => select! {
                result = child => result,
                _ = ctx.sleep(seconds(0)) => Ok(0),
            },
            Way::DropsHandle => {
                drop(child.start().await?);
                Ok(0)
            }
            Way::AwaitsHandle(with_policy) => {
                let child = match with_policy {
                    true => child.on_cancel(OnCancel::Cancel),
                    false => child,
                };
                child.start().await?.result().await
            }
        };
        ctx.shield(async { ctx.sleep(seconds(5)).await }).await?;
        result
    }
}

/// The child runs.
fn parent(way: Way) -> World<Parent> {
    let mut world = World::<Parent>::start(way);
    world.answer(EffectOutcome::Applied);
    world
}

/// The child has the request to cancel itself.
fn asked(world: &mut World<Parent>) {
    let target = world.run.outbox.values().next().unwrap().target.clone();
    assert!(target.child.is_some(), "only this run's own child is meant");
    let action = world.answer(EffectOutcome::Applied);
    assert!(matches!(action, Action::Cancel { mode: CancelMode::Request, .. }), "{action:?}");
}

#[test]
fn an_awaited_child_is_asked_to_cancel_itself() {
    let mut world = parent(Way::Awaits(0));
    world.cancel();
    asked(&mut world);
    world.close_child(RunOutcome::Cancelled(Vec::new()));
    world.pass(seconds(5));
    assert_eq!(
        world.history()[3..],
        [
            "RunCancelRequested",
            "ExternalCancelInitiated",
            "TimerStarted",
            "ExternalCancelDelivered",
            "ChildCancelled",
            "TimerFired",
            "RunCancelled"
        ]
    );
    world.check();
}

#[test]
fn the_end_of_a_child_is_waited_for_if_the_call_says_so() {
    let completed = RunOutcome::Completed(payload::encode(&1).unwrap());
    let cancelled = RunOutcome::Cancelled(payload::encode(&"half".to_owned()).unwrap());
    for (outcome, end) in [(completed, "RunCompleted"), (cancelled, "RunCancelled")] {
        let mut world = parent(Way::Awaits(1));
        world.cancel();
        asked(&mut world);
        world.pass(seconds(60));
        assert!(!world.history().contains(&"TimerStarted"), "the child runs");
        world.close_child(outcome);
        world.pass(seconds(5));
        assert_eq!(*world.history().last().unwrap(), end);
        world.check();
    }
}

/// It was asked to stop, so no other child takes its place.
#[test]
fn a_child_that_fails_when_it_is_cancelled_is_not_tried_again() {
    let mut world = parent(Way::AwaitsRetries);
    world.cancel();
    asked(&mut world);
    let failure = Failure { message: "boom".into(), ..Failure::default() };
    world.close_child(RunOutcome::Failed { failure, retry_state: RetryState::NonRetryableFailure });
    world.pass(seconds(5));
    assert_eq!(world.failure().unwrap().message, "child child of type Child failed: boom");
    assert_eq!(world.history().iter().filter(|name| **name == "ChildInitiated").count(), 1);
    world.check();
}

#[test]
fn an_abandoned_child_is_left_alone() {
    for way in [Way::Awaits(2), Way::AwaitsHandle(false)] {
        let mut world = parent(way);
        world.cancel();
        assert!(world.run.outbox.is_empty());
        world.pass(seconds(5));
        assert_eq!(*world.history().last().unwrap(), "RunCancelled");
        world.check();
    }
}

#[test]
fn a_child_that_is_held_is_asked_only_if_the_call_says_so() {
    let mut world = parent(Way::AwaitsHandle(true));
    world.cancel();
    asked(&mut world);
    world.check();
    let world = parent(Way::DropsHandle);
    assert!(world.run.outbox.is_empty());
    world.check();
}

#[test]
fn a_child_that_loses_a_select_is_asked_to_cancel_itself() {
    let mut world = parent(Way::Selects);
    world.pass(seconds(1));
    asked(&mut world);
    world.pass(seconds(5));
    assert_eq!(world.result(), Some(0));
    world.check();
}

/// In the turn that asks for the child its number is not known, and by its id alone another workflow
/// could be meant.
#[test]
fn a_child_that_is_lost_at_once_is_asked_in_the_next_turn() {
    let mut world = World::<Parent>::start(Way::SelectsAtOnce);
    assert!(!world.history().contains(&"ExternalCancelInitiated"));
    world.answer(EffectOutcome::Applied);
    asked(&mut world);
    world.pass(seconds(5));
    assert_eq!(world.result(), Some(0));
    world.check();

    let mut world = World::<Parent>::start(Way::SelectsAtOnce);
    world.answer(EffectOutcome::Failed(DeliveryFailure::AlreadyExists));
    let target = world.run.outbox.values().next().unwrap().target.clone();
    assert!(target.child.is_some(), "the other workflow is safe");
    world.check();
}
