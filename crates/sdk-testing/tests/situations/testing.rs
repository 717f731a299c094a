//! What a test can do to a workflow: skip time, replace activities and children, and ask for faults.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::{ClientError, WorkflowHandle, client::HistoryEvent, prelude::*};
use abide_core::event::Fact;
use abide_sdk_testing::TestEnvironment;

use crate::table::page;

page!("testing.md", "testing.rs");

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

async fn history(order: &WorkflowHandle<Order>) -> Vec<HistoryEvent> {
    order.history().await.unwrap()
}

fn attempts(history: &[HistoryEvent]) -> Vec<u32> {
    let attempt = |event: &HistoryEvent| match event.fact() {
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
    let history = history(&order).await;
    PAGE.check("two attempts fail that the test names", &history);
    assert_eq!(attempts(&history), [3]);
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
    let history = history(&order).await;
    PAGE.check("an attempt is delayed, within its timeout", &history);
    assert_eq!(attempts(&history), [1]);
}

#[tokio::test]
async fn a_timeout_overtakes_an_attempt_that_takes_too_long() {
    let env = TestEnvironment::new().await;
    counting(&env).await;
    env.delay_attempt(charge, 1, 3 * HOUR);
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    let history = history(&order).await;
    PAGE.check("an attempt is delayed, and its timeout overtakes it", &history);
    assert_eq!(attempts(&history), [2]);
}

#[tokio::test]
async fn an_attempt_whose_worker_is_lost_runs_again() {
    let env = TestEnvironment::new().await;
    let calls = counting(&env).await;
    env.lose_attempt(charge, 1);
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(calls.load(Ordering::SeqCst), 2, "the code of an activity may run twice");
    let history = history(&order).await;
    PAGE.check("the worker is lost when the code of an attempt has run", &history);
    // The lost worker did not complete it, so it is dispatched again under its number.
    assert_eq!(attempts(&history), [1]);
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
        PAGE.check("the worker is lost that is about to complete a task", &history(&order).await);
    }
}

#[tokio::test]
async fn a_run_goes_on_after_a_crash_of_everything() {
    let env = TestEnvironment::new().await;
    let calls = counting(&env).await;
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    env.crash().await.unwrap();
    env.skip(HOUR).await;
    assert!(order.query(Order::PAID, ()).await.unwrap());
    env.crash().await.unwrap();
    env.crash().await.unwrap();
    assert!(order.query(Order::PAID, ()).await.unwrap());
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    PAGE.check("engine and worker crash three times", &history(&order).await);
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
    PAGE.check("a worker is killed, and comes back a day later", &history(&order).await);
}

#[tokio::test]
async fn months_pass_in_no_time() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Order>().activity(charge)).await.unwrap();
    let begun = env.now();
    let order = env.client().start::<Order>("order-1", 5).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "charged");
    assert_eq!(env.now().saturating_since(begun), 2 * HOUR);
    PAGE.check("nothing but time is waited for", &history(&order).await);
}

/// Gives an activity one hour in all.
#[derive(Default)]
struct Hasty;

#[workflow]
impl Hasty {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.activity(charge, 5).schedule_to_close(HOUR).start_to_close(2 * HOUR).await
    }
}

#[tokio::test]
async fn an_activity_that_never_answers_times_out() {
    let env = TestEnvironment::new().await;
    env.hang_activity(charge);
    env.worker(|worker| worker.workflow::<Hasty>()).await.unwrap();
    let order = env.client().start::<Hasty>("order-1", ()).await.unwrap();
    let Err(ClientError::RunFailed(failure)) = order.result().await else { panic!("it hangs") };
    assert!(failure.message().contains("schedule-to-close timeout"), "{failure:?}");
    PAGE.check("an activity never answers", &order.history().await.unwrap());
}

#[derive(Default)]
struct Parcel;

#[workflow]
impl Parcel {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        ctx.sleep(24 * HOUR).await?;
        Ok(format!("{item} was sent"))
    }
}

/// Lets a child send a parcel within two days.
#[derive(Default)]
struct Shop;

#[workflow]
impl Shop {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        select! {
            sent = ctx.child::<Parcel>("parcel", item) => sent,
            slept = ctx.sleep(48 * HOUR) => slept.map(|()| "late".to_owned()),
        }
    }
}

/// What came of the shop, and its history.
async fn shop(
    set_up: impl FnOnce(&TestEnvironment),
) -> (Result<String, ClientError>, Vec<HistoryEvent>) {
    let env = TestEnvironment::new().await;
    set_up(&env);
    env.worker(|worker| worker.workflow::<Shop>()).await.unwrap();
    let shop = env.client().start::<Shop>("shop", "a lamp").await.unwrap();
    (shop.result().await, shop.history().await.unwrap())
}

#[tokio::test]
async fn a_child_is_replaced() {
    let fake = |item| Ok(format!("no {item}"));
    let (result, history) = shop(|env| env.replace_child::<Parcel>(fake)).await;
    assert_eq!(result.unwrap(), "no a lamp");
    PAGE.check("a child is replaced by a function", &history);
}

#[tokio::test]
async fn a_child_is_replaced_by_a_failure() {
    let fake = |_| Err("no truck".into());
    let (result, history) = shop(|env| env.replace_child::<Parcel>(fake)).await;
    let Err(ClientError::RunFailed(failure)) = result else { panic!("{result:?}") };
    assert_eq!(failure.causes()[0].message(), "no truck");
    PAGE.check("a child is replaced by a failure", &history);
}

#[tokio::test]
async fn a_child_never_ends() {
    let (result, history) = shop(|env| env.hang_child::<Parcel>()).await;
    assert_eq!(result.unwrap(), "late");
    PAGE.check("a child never ends", &history);
}
