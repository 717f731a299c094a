//! Cancel requests: pending waits end, later ones work.

use abide::{Context, Error};
use abide_sdk_macros::{activity, workflow};

use crate::world::{World, seconds};

#[activity]
async fn undo() {}

#[derive(Default)]
struct Booking;

#[workflow]
impl Booking {
    #[run]
    async fn run(ctx: &Context<Self>, cleans_up: bool) -> abide::Result<String> {
        let waited = ctx.sleep(seconds(60)).await;
        if !cleans_up {
            waited?;
            return Ok("slept".into());
        }
        assert!(matches!(waited, Err(Error::Cancelled)) == ctx.is_cancel_requested());
        ctx.activity(undo, ()).await?;
        ctx.sleep(seconds(1)).await?;
        Ok("undone".into())
    }
}

#[test]
fn a_run_that_passes_the_error_on_is_cancelled() {
    let mut world = World::<Booking>::start(false);
    world.cancel();
    assert_eq!(world.history()[2..], ["RunCancelRequested", "TimerCancelled", "RunCancelled"]);
    world.check();
}

#[test]
fn cleaning_up_is_ordinary_code() {
    let mut world = World::<Booking>::start(true);
    world.cancel();
    world.complete(undo, ());
    world.pass(seconds(1));
    assert_eq!(world.result().unwrap(), "undone");
    world.check();
}

/// Everything that waits: in tasks and handlers too.
#[derive(Default)]
struct Busy;

#[workflow]
impl Busy {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<Vec<bool>> {
        let own = ctx.clone();
        let task = ctx.spawn(async move { own.receive(Self::never).await.is_err() });
        let call = ctx.activity(undo, ()).await;
        Ok(vec![matches!(call, Err(Error::Cancelled)), task.await])
    }

    #[signal]
    fn never();
}

#[test]
fn every_pending_wait_ends_once_and_activities_are_asked_to_stop() {
    let mut world = World::<Busy>::start(());
    world.cancel();
    assert_eq!(world.result().unwrap(), [true, true]);
    let cancels = world.history().into_iter().filter(|name| name.contains("Cancel"));
    assert_eq!(
        cancels.collect::<Vec<_>>(),
        ["RunCancelRequested", "ActivityCancelRequested", "TimerCancelled"]
    );
    world.check();
}
