//! Attempts that time out, whose results cannot be stored, and whose reports are lost.

use std::time::Duration;

use abide::{ActivityContext, ActivityError, ClientError, Context, Failure, RetryPolicy, join_all};
use abide_embedded::Embedded;
use abide_sdk::{activities, activity, workflow};

use crate::{
    unsteady::Unsteady,
    world::{Gate, Running, advance, manual_clock, seconds},
};

/// The shortest interval that a policy may have.
fn at_once() -> RetryPolicy {
    RetryPolicy::default().initial_interval(Duration::from_millis(10))
}

struct Gated(Gate);

#[activities]
impl Gated {
    /// The first attempt is asked to stop, and does not.
    #[activity]
    async fn stubborn(&self, ctx: ActivityContext) -> u32 {
        if ctx.attempt() == 1 {
            self.0.pass().await;
            ctx.cancelled().await;
            self.0.pass().await;
        }
        ctx.attempt()
    }

    #[activity]
    async fn pass(&self) {
        self.0.pass().await;
    }
}

#[activity]
async fn wordy() -> Result<(), ActivityError> {
    let words = "no ".repeat(2_000_000);
    Err(ActivityError::new(words).error_type("Declined").non_retryable())
}

#[activity]
async fn goes_on(ctx: ActivityContext) -> Result<u32, ActivityError> {
    if let Some(done) = ctx.heartbeat_details()? {
        return Ok(done);
    }
    ctx.heartbeat(&7_u32)?;
    Err(ActivityError::new("interrupted"))
}

#[derive(Default)]
struct Stubborn;

#[workflow]
impl Stubborn {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let limit = Duration::from_millis(20);
        ctx.activity(Gated::stubborn, ()).start_to_close(limit).retry(at_once()).await
    }
}

#[derive(Default)]
struct Three;

#[workflow]
impl Three {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        let passes = (0..3).map(|_| ctx.activity(Gated::pass, ()));
        join_all(passes).await.into_iter().collect()
    }
}

#[derive(Default)]
struct Wordy;

#[workflow]
impl Wordy {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(wordy, ()).await
    }
}

#[derive(Default)]
struct GoesOn;

#[workflow]
impl GoesOn {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.activity(goes_on, ()).retry(at_once()).await
    }
}

#[tokio::test]
async fn an_attempt_whose_time_is_up_is_told_to_stop_and_leaves_its_slot() {
    let clock = manual_clock();
    let engine = Embedded::builder().clock(clock.clone()).in_memory().await;
    let gate = Gate::new();
    let worker = engine.worker().workflow::<Stubborn>().activities(Gated(gate.clone()));
    let running = Running::start(worker.max_concurrent_activities(1));
    let handle = engine.client().start::<Stubborn>("stubborn", ()).await.unwrap();
    gate.visitor().await;
    gate.open();
    advance(&clock, seconds(1));
    gate.visitor().await;
    // The second attempt is due shortly after the first was abandoned, and there is no other slot.
    advance(&clock, seconds(1));
    assert_eq!(handle.result().await.unwrap(), 2);
    running.stop().await;
}

#[tokio::test]
async fn all_attempts_are_presented_at_once() {
    let engine = Embedded::in_memory().await;
    let unsteady = Unsteady::new(&engine);
    let all_presented = unsteady.gather_presented(3);
    let gate = Gate::new();
    let worker = abide::Worker::new(&unsteady.client()).workflow::<Three>();
    let running = Running::start(worker.activities(Gated(gate.clone())));
    let handle = engine.client().start::<Three>("three", ()).await.unwrap();
    for _ in 0..3 {
        gate.visitor().await;
    }
    unsteady.cut.notify_one();
    all_presented.wait().await;
    for _ in 0..3 {
        gate.open();
    }
    handle.result().await.unwrap();
    assert_eq!(gate.visits(), 3, "no attempt was given to another worker");
    running.stop().await;
}

#[tokio::test]
async fn a_failure_that_is_too_large_is_told_in_short() {
    // The engine's clock stands still, so the attempt never times out.
    let engine = Embedded::builder().clock(manual_clock()).in_memory().await;
    let running = Running::start(engine.worker().workflow::<Wordy>().activity(wordy));
    let handle = engine.client().start::<Wordy>("wordy", ()).await.unwrap();
    let Err(ClientError::RunFailed(failure)) = handle.result().await else {
        panic!("the run did not fail");
    };
    let mut chain = failure.chain();
    let declined = |failure: &&Failure| failure.error_type() == "Declined";
    let told = chain.find(declined).expect("the error keeps its type");
    assert!(told.message().starts_with("no no no"), "{}", told.message());
    running.stop().await;
}

#[tokio::test]
async fn a_heartbeat_that_is_lost_on_the_way_is_sent_again() {
    let engine = Embedded::in_memory().await;
    let unsteady = Unsteady::new(&engine);
    unsteady.lose_heartbeats(2);
    let worker = abide::Worker::new(&unsteady.client()).workflow::<GoesOn>();
    let running = Running::start(worker.activity(goes_on));
    let handle = engine.client().start::<GoesOn>("goes-on", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    running.stop().await;
}
