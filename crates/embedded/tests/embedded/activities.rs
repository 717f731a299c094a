//! Heartbeats, cancellation, retries, and workers that end while activities run.

use std::time::Duration;

use abide::{ActivityContext, ActivityError, Context, RetryPolicy};
use abide_core::event::Fact;
use abide_embedded::Embedded;
use abide_sdk::{activities, activity, select, workflow};

use crate::world::{Gate, Running, manual_clock, until};

/// The shortest interval that a policy may have.
fn at_once() -> RetryPolicy {
    RetryPolicy::default().initial_interval(Duration::from_millis(10))
}

#[activity]
async fn third_time_lucky(ctx: ActivityContext) -> Result<u32, String> {
    match ctx.attempt() {
        1 => Err("not yet".into()),
        2 => panic!("not like this"),
        attempt => Ok(attempt),
    }
}

#[activity]
async fn goes_on(ctx: ActivityContext) -> Result<u32, ActivityError> {
    let done: Option<u32> = ctx.heartbeat_details().unwrap();
    ctx.heartbeat(&(done.unwrap_or(0) + 1)).unwrap();
    match done {
        Some(done) if done >= 2 => Ok(done),
        _ => Err(ActivityError::new("interrupted")),
    }
}

#[activity]
async fn until_cancelled(ctx: ActivityContext) -> Result<(), ActivityError> {
    loop {
        ctx.heartbeat(&()).unwrap();
        tokio::select! {
            () = ctx.cancelled() => return Err(ActivityError::cancelled()),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
}

#[derive(Default)]
struct Retrying;

#[workflow]
impl Retrying {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<(u32, u32)> {
        let lucky = ctx.activity(third_time_lucky, ()).retry(at_once()).await?;
        let done = ctx.activity(goes_on, ()).retry(at_once()).await?;
        Ok((lucky, done))
    }
}

/// Cancels its activity on request, and continues.
#[derive(Default)]
struct Cancelling;

#[workflow]
impl Cancelling {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let endless = ctx.activity(until_cancelled, ());
        select! {
            ended = endless.heartbeat_timeout(Duration::from_millis(40)) => ended?,
            stop = ctx.receive(Self::STOP) => stop?,
        }
        ctx.receive(Self::FINISH).await
    }

    #[signal]
    fn stop();

    #[signal]
    fn finish();
}

struct Gated(Gate);

#[activities]
impl Gated {
    #[activity]
    async fn pass(&self) -> u32 {
        self.0.pass().await;
        self.0.visits()
    }
}

#[derive(Default)]
struct Passing;

#[workflow]
impl Passing {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(Gated::pass, ()).await
    }
}

#[tokio::test]
async fn failed_attempts_are_repeated_and_go_on_from_their_heartbeat() {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<Retrying>();
    let running = Running::start(worker.activity(third_time_lucky).activity(goes_on));
    let handle = engine.client().start::<Retrying>("retrying", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), (3, 2));
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_end_finishes_its_activities() {
    let engine = Embedded::in_memory().await;
    let gate = Gate::new();
    let worker =
        |gate: &Gate| engine.worker().workflow::<Passing>().activities(Gated(gate.clone()));
    let running = Running::start(worker(&gate));
    let handle = engine.client().start::<Passing>("passing", ()).await.unwrap();
    gate.visitor().await;
    let ending = running.begin_stop();
    gate.open();
    ending.await.unwrap().unwrap();
    until(&handle, |fact| matches!(fact, Fact::ActivityCompleted(_))).await;
    let running = Running::start(worker(&gate));
    assert_eq!(handle.result().await.unwrap(), 1, "the activity ran once");
    running.stop().await;
}

#[tokio::test]
async fn an_attempt_learns_from_its_heartbeat_that_it_should_stop() {
    // The engine's clock stands still, so no heartbeat is ever late.
    let engine = Embedded::builder().clock(manual_clock()).in_memory().await;
    let worker = engine.worker().workflow::<Cancelling>().activity(until_cancelled);
    let running = Running::start(worker);
    let handle = engine.client().start::<Cancelling>("cancelling", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::ActivityScheduled(_))).await;
    handle.signal(Cancelling::STOP, ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::ActivityCancelled(_))).await;
    handle.signal(Cancelling::FINISH, ()).await.unwrap();
    handle.result().await.unwrap();
    running.stop().await;
}
