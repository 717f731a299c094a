//! What a worker counts.

use abide::{ActivityError, prelude::*};
use abide_sdk_testing::TestEnvironment;

#[activity]
async fn charge(cents: u32) -> Result<u32, ActivityError> {
    match cents {
        0 => Err(ActivityError::new("nothing to charge").non_retryable()),
        cents => Ok(cents),
    }
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, cents: u32) -> abide::Result<u32> {
        ctx.local_activity(charge, 1).await?;
        ctx.sleep(days(1)).await?;
        ctx.activity(charge, cents).await
    }

    #[query]
    fn total(&self) -> u32 {
        5
    }
}

#[tokio::test]
async fn a_worker_counts_its_work_by_type_and_result() {
    let env = TestEnvironment::new().await;
    let mut metrics = None;
    let worker = env.worker(|worker| {
        let worker = worker.workflow::<Order>().activity(charge).max_cached_runs(1);
        metrics = Some(worker.metrics());
        worker.workflow_threads(1)
    });
    let worker = worker.await.unwrap();
    let metrics = metrics.unwrap();
    env.fail_attempt(charge, 1, "busy");
    let paid = env.client().start::<Order>("paid", 7).await.unwrap();
    let free = env.client().start::<Order>("free", 0).await.unwrap();
    assert_eq!(paid.query(Order::TOTAL, ()).await.unwrap(), 5);
    // A task that a restart interrupts is done again, and would count twice.
    env.settle().await;
    worker.restart().await.unwrap();
    assert_eq!(paid.result().await.unwrap(), 7);
    free.result().await.unwrap_err();

    let figures = metrics.snapshot();
    assert_eq!(figures.queue, "default");
    let order = &figures.workflows["Order"];
    assert_eq!((order.failed, order.blocked, order.queries), (0, 0, 1));
    // Each run: its start, its timer, the end of its activity.
    assert_eq!(order.completed, 6);
    assert_eq!(order.latency.count(), 6);
    assert_eq!(order.schedule_to_start.count(), 6);
    // The cache has room for one of two runs, and is lost with the restart.
    assert!(order.replays >= 2, "{order:?}");
    assert!(figures.cache.misses >= 2 && figures.cache.evictions >= 1, "{:?}", figures.cache);
    let charge = &figures.activities["charge"];
    assert_eq!((charge.completed, charge.failed), (1, 3));
    assert_eq!((charge.latency.count(), charge.schedule_to_start.count()), (4, 2));
    let local = &figures.local_activities["charge"];
    assert_eq!((local.completed, local.failed), (2, 2));
    let slots = &figures.slots;
    assert_eq!((slots.tasks, slots.activities, slots.local_activities), (1000, 1000, 1000));
    assert_eq!(figures.connection.connects, 2);

    let text = metrics.to_prometheus();
    let line = "abide_worker_activity_attempts_total{queue=\"default\",activity_type=\"charge\",\
                result=\"failed\"} 3";
    assert!(text.lines().any(|it| it == line), "{text}");
    worker.kill().await;
    assert_eq!(metrics.snapshot().slots.tasks, 0);
}
