//! Faults that a test asks for: attempts that fail, wait or lose their worker, tasks that are lost, and
//! a crash of everything.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

extern crate abide_sdk as abide;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::{event::Event, prelude::*};
use abide_core::event::Fact;
use abide_sdk_testing::TestEnvironment;

const HOUR: Duration = Duration::from_secs(3600);

#[activity]
async fn charge(_cents: u32) -> String {
    "charged".into()
}

#[derive(Default)]
struct Order {
    paid: bool,
}

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, cents: u32) -> abide::Result<String> {
        ctx.sleep(HOUR).await?;
        let charged = ctx.activity(charge, cents).start_to_close(2 * HOUR).await?;
        ctx.write(|order| order.paid = true);
        ctx.sleep(HOUR).await?;
        Ok(charged)
    }

    #[query]
    fn paid(&self) -> bool {
        self.paid
    }
}

/// Counts how often the code of the activity runs.
async fn counting(env: &TestEnvironment) -> Arc<AtomicU32> {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    env.replace_activity(charge, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, ActivityError>("charged".to_owned()) }
    });
    env.worker(|worker| worker.workflow::<Order>()).await.unwrap();
    calls
}

fn attempts(history: &[Event]) -> Vec<u32> {
    let attempt = |event: &Event| match &event.body.fact {
        Fact::ActivityStarted(started) => Some(started.attempt),
        _ => None,
    };
    history.iter().filter_map(attempt).collect()
}

#[tokio::test]
async fn an_attempt_fails_that_the_test_names() {
    let env = TestEnvironment::new().await;
    let calls = counting(&env).await;
    env.fail_attempt(charge, 1, "the bank is closed");
    env.fail_attempt(charge, 2, "the bank is still closed");
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the code runs in the third attempt only");
    assert_eq!(attempts(&order.history().await.unwrap()), [3]);
}

#[tokio::test]
async fn an_attempt_takes_as_long_as_the_test_says() {
    let env = TestEnvironment::new().await;
    counting(&env).await;
    env.delay_attempt(charge, 1, HOUR);
    let begun = env.now();
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(env.now().saturating_since(begun), 3 * HOUR);
    assert_eq!(attempts(&order.history().await.unwrap()), [1]);
}

#[tokio::test]
async fn a_timeout_overtakes_an_attempt_that_takes_too_long() {
    let env = TestEnvironment::new().await;
    counting(&env).await;
    env.delay_attempt(charge, 1, 3 * HOUR);
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(attempts(&order.history().await.unwrap()), [2]);
}

#[tokio::test]
async fn an_attempt_whose_worker_is_lost_runs_again() {
    let env = TestEnvironment::new().await;
    let calls = counting(&env).await;
    env.lose_attempt(charge, 1);
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(calls.load(Ordering::SeqCst), 2, "the code of an activity may run twice");
    // Whoever lost it did not answer for it, so it is handed out again under its number.
    assert_eq!(attempts(&order.history().await.unwrap()), [1]);
}

#[tokio::test]
async fn a_task_whose_worker_is_lost_is_run_again_and_leaves_no_trace() {
    for lost in 1..=4 {
        let env = TestEnvironment::new().await;
        let calls = counting(&env).await;
        env.lose_task(lost);
        let order = env.client().start::<Order>("order-1", 5).await.unwrap();
        assert_eq!(order.result().await.unwrap(), "charged", "task {lost}");
        assert_eq!(calls.load(Ordering::SeqCst), 1, "task {lost}");
    }
}

#[tokio::test]
async fn a_run_goes_on_after_a_crash_of_everything() {
    let env = TestEnvironment::new().await;
    let calls = counting(&env).await;
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    env.crash().await.unwrap();
    env.skip(HOUR).await;
    assert!(order.query(Order::paid, ()).await.unwrap());
    env.crash().await.unwrap();
    env.crash().await.unwrap();
    assert!(order.query(Order::paid, ()).await.unwrap());
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_worker_is_killed_and_comes_back() {
    let env = TestEnvironment::new().await;
    let worker = env.worker(|worker| worker.workflow::<Order>().activity(charge)).await.unwrap();
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    env.skip(HOUR).await;
    worker.kill().await;
    // Without a worker, time passes and nothing else happens.
    env.skip(24 * HOUR).await;
    assert_eq!(order.describe().await.unwrap().closed_at, None);
    worker.restart().await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
}
