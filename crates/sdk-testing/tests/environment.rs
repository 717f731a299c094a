//! Workflows of every kind in a test environment: time skips when all is idle, and only then.

extern crate abide_sdk as abide;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use abide::{client::ClientError, prelude::*, worker::WorkerError};
use abide_sdk_testing::TestEnvironment;

const HOUR: Duration = Duration::from_secs(3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

#[activity]
async fn double(number: u32) -> u32 {
    number * 2
}

#[activity]
async fn charge(_amount: u32) -> Result<String, std::io::Error> {
    Err(std::io::Error::other("tests must not charge anybody"))
}

struct Naps;

#[workflow]
impl Naps {
    #[init]
    fn new(_: &u32) -> Self {
        Self
    }

    #[run]
    async fn run(ctx: &Context<Self>, naps: u32) -> abide::Result<u32> {
        let mut doubled = 0;
        for nap in 0..naps {
            ctx.sleep(MONTH).await?;
            doubled += ctx.activity(double, nap).await?;
        }
        Ok(doubled)
    }
}

#[derive(Default)]
struct Order {
    state: &'static str,
}

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        ctx.write(|order| order.state = "waits");
        match ctx.receive(Order::PAID).timeout(HOUR).await? {
            Outcome::InTime(by) => Ok(format!("paid by {by}")),
            Outcome::TimedOut => Ok("too late".into()),
        }
    }

    #[signal]
    fn paid(by: String);

    #[query]
    fn state(&self) -> String {
        self.state.into()
    }

    #[update]
    async fn settle(ctx: &Context<Self>, after: Duration) -> abide::Result<String> {
        ctx.sleep(after).await?;
        Ok("settled".into())
    }
}

#[derive(Default)]
struct Sale;

#[workflow]
impl Sale {
    #[run]
    async fn run(ctx: &Context<Self>, amount: u32) -> abide::Result<String> {
        let call = ctx.activity(charge, amount).schedule_to_close(HOUR);
        match call.await {
            Err(Error::Activity(failure)) => Ok(format!("no sale: {}", failure.failure.message())),
            result => result,
        }
    }
}

async fn environment() -> TestEnvironment {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| {
        worker.workflow::<Naps>().workflow::<Order>().workflow::<Sale>().activity(double)
    };
    env.worker(set_up).await.expect("the worker connects");
    env
}

#[tokio::test]
async fn a_year_of_naps_takes_no_time() {
    let env = environment().await;
    let begun = env.now();
    let naps = env.client().start::<Naps>("naps", 12).await.unwrap();
    assert_eq!(naps.result().await.unwrap(), 132);
    assert_eq!(env.now().saturating_since(begun), 12 * MONTH);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn time_waits_for_the_test() {
    for round in 0..20 {
        let env = environment().await;
        let begun = env.now();
        let order = env.client().start::<Order>("order", ()).await.unwrap();
        // All may be idle here, but the test does not wait for an answer.
        tokio::task::yield_now().await;
        order.signal(Order::PAID, "Ann").await.unwrap();
        assert_eq!(order.result().await.unwrap(), "paid by Ann", "round {round}");
        assert_eq!(env.now(), begun);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_share_one_time() {
    let env = environment().await;
    let begun = env.now();
    let client = env.client();
    let mut runs = Vec::new();
    for number in 0..50 {
        runs.push(client.start::<Naps>(format!("naps-{number}"), number % 4).await.unwrap());
    }
    for (number, run) in (0..).zip(runs) {
        let naps: u32 = number % 4;
        assert_eq!(run.result().await.unwrap(), (0..naps).map(|nap| nap * 2).sum::<u32>());
    }
    assert_eq!(env.now().saturating_since(begun), 3 * MONTH);
}

#[tokio::test]
async fn a_deadline_comes_when_only_time_can_bring_the_result() {
    let env = environment().await;
    let begun = env.now();
    let order = env.client().start::<Order>("order", ()).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "too late");
    assert_eq!(env.now().saturating_since(begun), HOUR);
}

#[tokio::test]
async fn a_skip_stops_where_the_test_says() {
    let env = environment().await;
    let begun = env.now();
    let order = env.client().start::<Order>("order", ()).await.unwrap();
    env.skip(HOUR - Duration::from_secs(1)).await;
    assert_eq!(env.now().saturating_since(begun), HOUR - Duration::from_secs(1));
    assert_eq!(order.query(Order::STATE, ()).await.unwrap(), "waits");
    env.skip(Duration::from_secs(1)).await;
    assert_eq!(order.result().await.unwrap(), "too late");
    assert_eq!(env.now().saturating_since(begun), HOUR);
}

#[tokio::test]
async fn an_update_waits_for_its_time() {
    let env = environment().await;
    let begun = env.now();
    let order = env.client().start::<Order>("order", ()).await.unwrap();
    let settled = order.update(Order::SETTLE, HOUR / 2).await.unwrap();
    assert_eq!(settled, "settled");
    assert_eq!(env.now().saturating_since(begun), HOUR / 2);
}

#[tokio::test]
async fn replaced_activities_are_called_and_retried() {
    let env = TestEnvironment::new().await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    env.replace_activity(charge, move |_, amount| {
        let attempt = counted.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            if attempt < 3 {
                return Err(ActivityError::new("the bank is closed"));
            }
            Ok(format!("charged {amount}"))
        }
    });
    env.worker(|worker| worker.workflow::<Sale>().activity(charge)).await.unwrap();
    let sale = env.client().start::<Sale>("sale", 7).await.unwrap();
    assert_eq!(sale.result().await.unwrap(), "charged 7");
    assert_eq!(tries.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn time_passes_over_an_activity_that_hangs() {
    let env = TestEnvironment::new().await;
    env.hang_activity(charge);
    env.worker(|worker| worker.workflow::<Sale>().max_concurrent_activities(2)).await.unwrap();
    let begun = env.now();
    let sale = env.client().start::<Sale>("sale", 7).await.unwrap();
    let result = sale.result().await.unwrap();
    assert!(result.starts_with("no sale"), "{result}");
    assert_eq!(env.now().saturating_since(begun), HOUR);
}

#[tokio::test]
async fn an_attempt_that_takes_real_time_holds_the_clock() {
    let env = TestEnvironment::new().await;
    let (open, gate) = tokio::sync::watch::channel(false);
    env.replace_activity(charge, move |_, _| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.map_err(ActivityError::from_source)?;
            Ok::<_, ActivityError>("charged at last".into())
        }
    });
    env.worker(|worker| worker.workflow::<Sale>().workflow::<Naps>().activity(double))
        .await
        .unwrap();
    let begun = env.now();
    let client = env.client();
    let sale = client.start::<Sale>("sale", 7).await.unwrap();
    let naps = client.start::<Naps>("naps", 1).await.unwrap();
    let napping = tokio::spawn(async move { naps.result().await });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(env.now(), begun);
    open.send_replace(true);
    assert_eq!(sale.result().await.unwrap(), "charged at last");
    assert_eq!(napping.await.unwrap().unwrap(), 0);
    assert_eq!(env.now().saturating_since(begun), MONTH);
}

#[tokio::test]
async fn a_worker_with_few_slots_does_all_work_before_time_passes() {
    let env = TestEnvironment::new().await;
    let set_up = |worker: Worker| {
        worker
            .workflow::<Naps>()
            .activity(double)
            .max_concurrent_tasks(1)
            .max_concurrent_activities(1)
            .max_cached_runs(0)
    };
    env.worker(set_up).await.unwrap();
    let (begun, client) = (env.now(), env.client());
    let mut runs = Vec::new();
    for number in 0..20 {
        runs.push(client.start::<Naps>(format!("naps-{number}"), 2).await.unwrap());
    }
    for run in runs {
        assert_eq!(run.result().await.unwrap(), 2);
    }
    assert_eq!(env.now().saturating_since(begun), 2 * MONTH);
}

#[tokio::test]
async fn a_worker_that_cannot_work_says_so() {
    let env = TestEnvironment::new().await;
    let nothing = env.worker(|worker| worker).await;
    assert!(matches!(nothing, Err(WorkerError::NothingToRun(_))), "{nothing:?}");
    let twice = env.worker(|worker| worker.workflow::<Naps>().workflow::<Naps>()).await;
    assert!(matches!(twice, Err(WorkerError::Registry(_))), "{twice:?}");
}

#[tokio::test]
async fn a_cancelled_run_is_cancelled_at_once() {
    let env = environment().await;
    let begun = env.now();
    let naps = env.client().start::<Naps>("naps", 1).await.unwrap();
    naps.cancel().await.unwrap();
    assert!(matches!(naps.result().await, Err(ClientError::RunCancelled(_))));
    assert_eq!(env.now(), begun);
}

#[derive(Default)]
struct Lost;

#[workflow]
impl Lost {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.activity(double, 1).await?;
        ctx.receive(Self::FOUND).await
    }

    #[signal]
    fn found();
}

#[tokio::test]
async fn a_failure_that_repeats_without_end_is_told_to_the_test() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Lost>().activity(charge)).await.unwrap();
    let lost = env.client().start::<Lost>("lost", ()).await.unwrap();
    let error = lost.result().await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer(_)), "{error:?}");
    let told = error.to_string();
    assert!(told.contains("workflow default/lost (Lost"), "{told}");
    assert!(told.contains("activity double is not registered"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_what_nobody_will_send_is_told_to_the_test() {
    let env = TestEnvironment::new().await;
    env.worker(|worker| worker.workflow::<Lost>().activity(double)).await.unwrap();
    let lost = env.client().start::<Lost>("lost", ()).await.unwrap();
    let told = lost.result().await.unwrap_err().to_string();
    assert!(told.contains("nothing is due"), "{told}");
    assert!(told.contains("it waits for signal found"), "{told}");
    // The run is as it was, and the test may go on.
    lost.signal(Lost::FOUND, ()).await.unwrap();
    lost.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_no_worker_takes_is_told_to_the_test() {
    let env = TestEnvironment::new().await;
    let lost = env.client().start::<Lost>("lost", ()).await.unwrap();
    let told = lost.result().await.unwrap_err().to_string();
    assert!(told.contains("no worker of queue default takes its task"), "{told}");
}
