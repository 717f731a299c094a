//! A run whose code has changed is blocked, reports why, and continues with code that fits.

use abide::{ClientError, Context, list::RunStatus};
use abide_core::event::Fact;
use abide_embedded::Embedded;
use abide_sdk::{activity, workflow};

use crate::world::{Running, seconds, until};

#[activity]
async fn reserve() -> u32 {
    7
}

/// The code that the run started with.
#[derive(Default)]
struct Order;

#[workflow(name = "order")]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let number = ctx.activity(reserve, ()).await?;
        ctx.receive(Self::PAID).await?;
        Ok(number)
    }

    #[signal]
    fn paid();

    #[query]
    fn status(&self) -> String {
        "fine".into()
    }
}

/// The same workflow after an incompatible change.
#[derive(Default)]
struct ChangedOrder;

#[workflow(name = "order")]
impl ChangedOrder {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        ctx.sleep(seconds(1)).await?;
        ctx.activity(reserve, ()).await
    }
}

#[tokio::test]
async fn a_blocked_run_goes_on_with_the_right_build() {
    let engine = Embedded::in_memory().await;
    let right = || engine.worker().workflow::<Order>().activity(reserve);
    let running = Running::as_build("right", right());
    let handle = engine.client().start::<Order>("order", ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    running.stop().await;

    let wrong = engine.worker().workflow::<ChangedOrder>().activity(reserve);
    let running = Running::as_build("wrong", wrong);
    handle.signal(Order::PAID, ()).await.unwrap();
    until(&handle, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let description = handle.describe().await.unwrap();
    assert_eq!(description.status, RunStatus::ReplayBlocked);
    let trouble = description.trouble.unwrap();
    let message = trouble.failure.message();
    assert!(message.contains("takes a different step than the history"), "{message}");
    assert!(trouble.blocked.unwrap().expected.contains("Timer"));
    let error = handle.query(Order::STATUS, ()).await.unwrap_err();
    assert!(matches!(error, ClientError::Blocked(_)), "{error}");
    running.stop().await;

    let running = Running::as_build("right", right());
    assert_eq!(handle.result().await.unwrap(), 7);
    running.stop().await;
}
