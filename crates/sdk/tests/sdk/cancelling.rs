//! Cancel requests: pending waits end, later ones work.

use abide::{
    Context, Error,
    approval::{Approvals, Request},
    select,
};
use abide_core::effect::EffectOutcome;
use abide_sdk_macros::{activity, condition, workflow};

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
        let task = ctx.spawn(async move { own.receive(Self::NEVER).await.is_err() });
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

/// Lets everything lose against a signal, or against the request.
#[derive(Default)]
struct Race {
    approvals: Approvals,
    over: bool,
}

#[workflow(approvals = approvals)]
impl Race {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let winner = select! {
            _ = ctx.cancelled() => "request",
            _ = ctx.child::<Booking>("child", false) => "child",
            _ = ctx.activity(undo, ()) => "activity",
            _ = ctx.sleep(seconds(50)) => "sleep",
            _ = ctx.receive(Self::NEVER) => "receive",
            _ = ctx.wait_until(condition!("race.over", |race: &Self| race.over)) => "condition",
            _ = ctx.approval(Request::new("race")) => "approval",
            _ = ctx.scope(async { ctx.shield(ctx.sleep(seconds(60)).into_future()).await }) => "scope",
            _ = ctx.receive(Self::GO) => "go",
        };
        ctx.sleep(seconds(1)).await?;
        Ok(winner.into())
    }

    #[signal]
    fn never();

    #[signal]
    fn go();

    #[signal]
    fn end(&mut self) {
        self.over = true;
    }
}

/// Whoever wins, all others are cancelled, and every cut of the history agrees.
#[test]
fn whoever_wins_a_select_the_others_are_cancelled() {
    type Win = (&'static str, fn(&mut World<Race>));
    let wins: [Win; 6] = [
        ("request", World::cancel),
        ("activity", |world| world.complete(undo, ())),
        ("sleep", |world| world.pass(seconds(50))),
        ("receive", |world| world.signal(Race::NEVER, ())),
        ("condition", |world| world.signal(Race::END, ())),
        ("go", |world| world.signal(Race::GO, ())),
    ];
    for (winner, win) in wins {
        let mut world = World::<Race>::start(());
        world.answer(EffectOutcome::Applied);
        win(&mut world);
        assert!(world.run.waits.is_empty() && world.run.activities.is_empty());
        assert_eq!(world.run.timers.len(), 1, "only the last sleep is left");
        assert!(world.history().contains(&"ExternalCancelInitiated"));
        world.pass(seconds(1));
        assert_eq!(world.result().unwrap(), winner);
        world.check();
    }
}
