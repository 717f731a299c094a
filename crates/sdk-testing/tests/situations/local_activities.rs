//! Local activities.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::{Client, ClientError, Worker, event::Fact, prelude::*};
use abide_sdk_testing::TestEnvironment;

use crate::{
    gate::Gate,
    site::{Site, count, until, until_count},
    table::page,
};

page!("local-activities.md", "local_activities.rs");

/// What the local activities of a test share with it.
#[derive(Clone)]
struct Shop(Arc<State>);

struct State {
    gate: Gate,
    calls: AtomicU32,
}

#[activities]
impl Shop {
    /// Returns a price immediately.
    #[activity]
    async fn price(&self, item: String) -> u32 {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        u32::try_from(item.len()).unwrap_or(u32::MAX)
    }

    /// Fails until it has been tried so often.
    #[activity]
    async fn busy(&self, ctx: ActivityContext, attempts: u32) -> Result<u32, ActivityError> {
        match ctx.attempt() {
            attempt if attempt < attempts => Err(ActivityError::new("busy")),
            attempt => Ok(attempt),
        }
    }

    #[activity]
    async fn sold_out(&self) -> Result<u32, ActivityError> {
        Err(ActivityError::new("sold out").error_type("SoldOut").non_retryable())
    }

    /// Panics the first time.
    #[activity]
    async fn clumsy(&self, ctx: ActivityContext) -> u32 {
        assert!(ctx.attempt() > 1, "dropped it");
        ctx.attempt()
    }

    /// Waits at the gate.
    #[activity]
    async fn slow(&self) -> u32 {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        self.0.gate.pass().await;
        7
    }

    /// A result of so many bytes.
    #[activity]
    async fn endless(&self, bytes: usize) -> String {
        "x".repeat(bytes)
    }

    /// An error that is larger than anything that can be stored.
    #[activity]
    async fn wordy(&self, ctx: ActivityContext) -> Result<u32, ActivityError> {
        let complaint = format!("complaint {}: {}", ctx.attempt(), "x".repeat(3 << 20));
        Err(ActivityError::new(complaint).error_type("Complaint"))
    }

    #[activity]
    async fn leaves_it(&self) -> Result<u32, ActivityError> {
        Err(ActivityError::completed_later())
    }
}

fn shop() -> Shop {
    Shop(Arc::new(State { gate: Gate::new(), calls: AtomicU32::new(0) }))
}

#[derive(serde::Serialize, serde::Deserialize)]
enum Errand {
    Price,
    Busy { attempts: u32, longest_delay_ms: u64 },
    SoldOut,
    Clumsy,
    Slow,
    SlowFor { milliseconds: u64 },
    Endless { bytes: usize },
    Wordy,
    LeavesIt,
    Three,
    Race,
}

/// Runs one errand after the other.
#[derive(Default)]
struct Buyer {
    notes: Vec<String>,
}

#[workflow]
impl Buyer {
    #[run]
    async fn run(ctx: &Context<Self>, errand: Errand) -> abide::Result<u32> {
        let quick = RetryPolicy::default().initial_interval(Duration::from_millis(10));
        match errand {
            Errand::Price => ctx.local_activity(Shop::price, "pen").await,
            Errand::Busy { attempts, longest_delay_ms } => {
                let longest = Duration::from_millis(longest_delay_ms);
                ctx.local_activity(Shop::busy, attempts)
                    .retry(quick)
                    .local_retry_threshold(longest)
                    .await
            }
            Errand::SoldOut => ctx.local_activity(Shop::sold_out, ()).await,
            Errand::Clumsy => ctx.local_activity(Shop::clumsy, ()).retry(quick).await,
            Errand::Slow => ctx.local_activity(Shop::slow, ()).await,
            Errand::SlowFor { milliseconds } => {
                ctx.local_activity(Shop::slow, ())
                    .start_to_close(Duration::from_millis(milliseconds))
                    .retry(RetryPolicy::once())
                    .await
            }
            Errand::Endless { bytes } => ctx.local_activity(Shop::endless, bytes).await.map(|_| 0),
            Errand::Wordy => {
                ctx.local_activity(Shop::wordy, ()).retry(quick.maximum_attempts(2)).await
            }
            Errand::LeavesIt => ctx.local_activity(Shop::leaves_it, ()).await,
            Errand::Three => {
                let prices = ["a", "bc", "def"].map(|item| ctx.local_activity(Shop::price, item));
                join_all(prices).await.into_iter().sum()
            }
            Errand::Race => select! {
                price = ctx.local_activity(Shop::price, "pen") => price,
                slow = ctx.local_activity(Shop::slow, ()) => slow,
            },
        }
    }

    #[signal]
    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    #[query]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

fn set_up(worker: Worker, shop: &Shop) -> Worker {
    worker.workflow::<Buyer>().workflow::<Pauses>().activities(shop.clone())
}

async fn buyer(client: &Client, errand: Errand) -> BuyerHandle {
    client.start::<Buyer>("buyer", errand).await.unwrap()
}

/// Runs an errand on its own.
async fn play(situation: &str, errand: Errand) -> Result<u32, ClientError> {
    let (env, shop) = (TestEnvironment::new().await, shop());
    env.worker(|worker| set_up(worker, &shop)).await.unwrap();
    let run = buyer(&env.client(), errand).await;
    let result = run.result().await;
    PAGE.check(situation, &run.history().await.unwrap());
    result
}

#[tokio::test]
async fn it_completes() {
    assert_eq!(play("it completes", Errand::Price).await.unwrap(), 3);
}

#[tokio::test]
async fn an_attempt_fails_and_the_next_one_succeeds() {
    let errand = Errand::Busy { attempts: 3, longest_delay_ms: 10_000 };
    assert_eq!(play("an attempt fails and the next one succeeds", errand).await.unwrap(), 3);
}

#[tokio::test]
async fn the_delay_before_a_retry_is_long() {
    let errand = Errand::Busy { attempts: 2, longest_delay_ms: 5 };
    assert_eq!(play("the delay before a retry is long", errand).await.unwrap(), 2);
}

#[tokio::test]
async fn it_fails_for_good() {
    let failed = play("it fails for good", Errand::SoldOut).await.unwrap_err();
    assert!(failed.to_string().contains("activity sold_out failed: sold out"), "{failed}");
}

#[tokio::test]
async fn it_panics() {
    assert_eq!(play("it panics", Errand::Clumsy).await.unwrap(), 2);
}

#[tokio::test]
async fn an_attempt_takes_too_long() {
    let errand = Errand::SlowFor { milliseconds: 20 };
    let failed = play("an attempt takes too long", errand).await.unwrap_err();
    assert!(failed.to_string().contains("activity slow failed"), "{failed}");
}

#[tokio::test]
async fn its_result_is_too_large() {
    // The second would fit, were it not for what is recorded beside it.
    for bytes in [3 << 20, (2 << 20) - 40] {
        let errand = Errand::Endless { bytes };
        let failed = play("its result is too large", errand).await.unwrap_err();
        assert!(failed.to_string().contains("bytes, the limit is 2097152"), "{failed}");
    }
}

#[tokio::test]
async fn its_error_is_too_large() {
    let failed = play("its error is too large", Errand::Wordy).await.unwrap_err().to_string();
    assert!(failed.contains("complaint 2: xxx"), "it was retried");
    assert!(failed.contains("the failure cannot be stored"), "{failed}");
}

#[tokio::test]
async fn it_wants_to_be_completed_by_somebody_else() {
    let situation = "it wants to be completed from outside";
    let failed = play(situation, Errand::LeavesIt).await.unwrap_err();
    assert!(failed.to_string().contains("call it as a regular activity"), "{failed}");
}

#[tokio::test]
async fn several_at_once() {
    assert_eq!(play("several run concurrently", Errand::Three).await.unwrap(), 6);
}

#[tokio::test]
async fn one_is_given_up_for_another() {
    assert_eq!(play("one is given up for another", Errand::Race).await.unwrap(), 3);
}

#[tokio::test]
async fn the_worker_dies_in_the_middle() {
    let (site, shop) = (Site::open().await, shop());
    let first = site.work(|worker| set_up(worker, &shop));
    let run = buyer(&site.client(), Errand::Slow).await;
    shop.0.gate.entered().await;
    first.kill().await;
    let _second = site.work(|worker| set_up(worker, &shop));
    shop.0.gate.entered().await;
    // A thread of the dead worker may not have ended yet: its call would take a single permit.
    shop.0.gate.open();
    shop.0.gate.open();
    assert_eq!(run.result().await.unwrap(), 7);
    assert_eq!(shop.0.calls.load(Ordering::SeqCst), 2, "it ran again");
    PAGE.check("the worker dies in the middle", &run.history().await.unwrap());
}

#[tokio::test]
async fn the_worker_dies_after_it() {
    let (site, shop) = (Site::open().await, shop());
    let first = site.work(|worker| set_up(worker, &shop));
    let run = site.client().start::<Pauses>("buyer", ()).await.unwrap();
    until(&run, |fact| matches!(fact, Fact::TimerStarted(_))).await;
    first.kill().await;
    let _second = site.work(|worker| set_up(worker, &shop));
    site.pass(Duration::from_secs(60));
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(shop.0.calls.load(Ordering::SeqCst), 1, "replay does not run it");
    PAGE.check("the worker dies after it", &run.history().await.unwrap());
}

/// Sleeps after a local activity.
#[derive(Default)]
struct Pauses;

#[workflow]
impl Pauses {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<u32> {
        let price = ctx.local_activity(Shop::price, "pen").await?;
        ctx.sleep(Duration::from_secs(60)).await?;
        Ok(price)
    }
}

/// A run whose local activity waits at the gate, and whose tasks may take half a second.
async fn slow(site: &Site, shop: &Shop) -> BuyerHandle {
    let start = site.client().start::<Buyer>("buyer", Errand::Slow);
    let run = start.task_timeout(Duration::from_millis(500)).await.unwrap();
    shop.0.gate.entered().await;
    run
}

fn task_completed(fact: &Fact) -> bool {
    matches!(fact, Fact::TaskCompleted(_))
}

#[tokio::test]
async fn it_takes_longer_than_a_task_may() {
    let (site, shop) = (Site::open().await, shop());
    let _worker = site.work(|worker| set_up(worker, &shop).max_cached_runs(0));
    let run = slow(&site, &shop).await;
    until_count(&run, 2, task_completed).await;
    shop.0.gate.open();
    assert_eq!(run.result().await.unwrap(), 7);
    let history = run.history().await.unwrap();
    assert_eq!((count(&history, "TaskTimedOut"), shop.0.calls.load(Ordering::SeqCst)), (0, 1));
    PAGE.check("it takes longer than a task may", &history);
}

#[tokio::test]
async fn a_signal_comes_meanwhile() {
    let (site, shop) = (Site::open().await, shop());
    let _worker = site.work(|worker| set_up(worker, &shop));
    let run = slow(&site, &shop).await;
    run.signal(Buyer::NOTE, "red").await.unwrap();
    let query = run.query(Buyer::NOTES, ()).await.unwrap();
    assert_eq!(query, ["red"], "what was acknowledged is seen");
    shop.0.gate.open();
    assert_eq!(run.result().await.unwrap(), 7);
    PAGE.check("a signal comes meanwhile", &run.history().await.unwrap());
}

#[tokio::test]
async fn a_query_is_asked_meanwhile() {
    let (site, shop) = (Site::open().await, shop());
    let _worker = site.work(|worker| set_up(worker, &shop));
    let run = slow(&site, &shop).await;
    assert!(run.query(Buyer::NOTES, ()).await.unwrap().is_empty());
    shop.0.gate.open();
    assert_eq!(run.result().await.unwrap(), 7);
    PAGE.check("a query is asked meanwhile", &run.history().await.unwrap());
}

#[tokio::test]
async fn the_run_is_cancelled_meanwhile() {
    let (site, shop) = (Site::open().await, shop());
    let _worker = site.work(|worker| set_up(worker, &shop));
    let run = slow(&site, &shop).await;
    run.cancel().await.unwrap();
    assert!(matches!(run.result().await, Err(ClientError::RunCancelled(_))));
    PAGE.check("the run is cancelled meanwhile", &run.history().await.unwrap());
}

#[tokio::test]
async fn the_worker_does_not_have_it() {
    let (site, shop) = (Site::open().await, shop());
    let without = site.work_as("old", |worker| worker.workflow::<Buyer>());
    let run = buyer(&site.client(), Errand::Price).await;
    let history = until(&run, |fact| matches!(fact, Fact::TaskFailed(_))).await;
    let Some(Fact::TaskFailed(failed)) = history.last().map(|event| event.fact()) else {
        panic!("{history:?}");
    };
    let message = &failed.failure.message;
    assert!(message.starts_with("local activity price is not registered"), "{message}");
    without.kill().await;
    let _with = site.work_as("new", |worker| set_up(worker, &shop));
    site.pass(Duration::from_secs(600));
    assert_eq!(run.result().await.unwrap(), 3);
    PAGE.check("the worker does not have it", &run.history().await.unwrap());
}

#[tokio::test]
async fn no_more_run_at_once_than_the_worker_allows() {
    let (site, shop) = (Site::open().await, shop());
    let _worker = site.work(|worker| set_up(worker, &shop).max_concurrent_local_activities(1));
    let mut runs = Vec::new();
    for id in ["one", "two"] {
        runs.push(site.client().start::<Buyer>(id, Errand::Slow).await.unwrap());
    }
    for ended in 1..=2 {
        shop.0.gate.entered().await;
        assert_eq!(shop.0.calls.load(Ordering::SeqCst), ended, "the other waits for this one");
        shop.0.gate.open();
    }
    for run in runs {
        assert_eq!(run.result().await.unwrap(), 7);
    }
}
