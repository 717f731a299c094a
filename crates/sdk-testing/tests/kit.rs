//! The short forms of tests, and the lines of code that messages name.

extern crate abide_sdk as abide;

use abide::{Condition, prelude::*};
use abide_sdk_testing::{TestEnvironment, Waiting, record, replay_file};

#[activity]
async fn charge(_customer: String, _cents: u64) -> Result<String, std::io::Error> {
    Err(std::io::Error::other("tests must not charge"))
}

#[derive(Default)]
struct Order;

#[workflow(name = "order")]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, customer: String) -> abide::Result<String> {
        match ctx.receive(Order::PAID).timeout(days(3)).await? {
            Outcome::InTime(()) => ctx.activity(charge, (customer, 4200)).await,
            Outcome::TimedOut => Ok("too late".into()),
        }
    }

    #[signal]
    fn paid();
}

#[tokio::test]
async fn a_test_reads_like_what_happens() {
    let env = TestEnvironment::with(|worker| worker.workflow::<Order>().activity(charge)).await;
    let env = env.unwrap();
    let charged = env.mock(charge, |(customer, _)| format!("{customer} has paid"));

    let order = env.start::<Order>("Ada".to_owned()).await.unwrap();
    let waits = env.waits(&order).await.unwrap();
    assert_eq!(waits, [Waiting::signal("paid").within(days(3))]);
    assert_eq!(format!("{waits:?}"), "[signal paid, 259200s left]");
    env.skip(days(2)).await;
    let waits = env.waits(&order).await.unwrap();
    assert_eq!(waits, [Waiting::signal("paid").within(days(1))]);
    order.signal(Order::PAID, ()).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "Ada has paid");
    assert_eq!(charged.calls(), [("Ada".to_owned(), 4200)]);

    let order = env.start::<Order>("Bob".to_owned()).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "too late");
    assert_eq!(charged.count(), 1);
}

#[tokio::test]
async fn a_mock_that_fails_is_retried_like_the_activity() {
    let env = TestEnvironment::with(|worker| worker.workflow::<Order>().activity(charge)).await;
    let env = env.unwrap();
    env.fail_attempt(charge, 1, "the network is down");
    let fake = |(customer, cents): (String, u64)| match cents {
        4200 => Err(ActivityError::new(format!("{customer} has no money")).non_retryable()),
        _ => Ok(String::new()),
    };
    let charged = env.mock(charge, fake);
    let order = env.start::<Order>("Ada".to_owned()).await.unwrap();
    order.signal(Order::PAID, ()).await.unwrap();
    let failed = order.result().await.unwrap_err().to_string();
    assert!(failed.contains("Ada has no money"), "{failed}");
    // The first attempt failed before the mock.
    assert_eq!(charged.count(), 1);
    // Another mock replaces it.
    let charged = env.mock(charge, |_| "free".to_owned());
    let order = env.start::<Order>("Bob".to_owned()).await.unwrap();
    order.signal(Order::PAID, ()).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "free");
    assert_eq!(charged.count(), 1);
}

/// The same workflow, changed: it charges at once.
#[derive(Default)]
struct HastyOrder;

/// The line of its first durable call.
const HASTY_LINE: u32 = line!() + 6;

#[workflow(name = "order")]
impl HastyOrder {
    #[run]
    async fn run(ctx: &Context<Self>, customer: String) -> abide::Result<String> {
        let charging = ctx.activity(charge, (customer, 4200));
        let _other = ctx.sleep(days(1));
        charging.await
    }
}

/// The same workflow, changed: it does nothing after its first wait.
#[derive(Default)]
struct IdleOrder;

const IDLE_LINE: u32 = line!() + 6;

#[workflow(name = "order")]
impl IdleOrder {
    #[run]
    async fn run(ctx: &Context<Self>, _customer: String) -> abide::Result<String> {
        let never = ctx.wait_until(Condition::keyed("never", |_| false)).timeout(days(9)).await?;
        Ok(format!("{never:?}"))
    }
}

#[tokio::test]
async fn a_mismatch_names_the_line_of_the_code() {
    let env = TestEnvironment::with(|worker| worker.workflow::<Order>().activity(charge)).await;
    let env = env.unwrap();
    let order = env.start::<Order>("Ada".to_owned()).await.unwrap();
    assert_eq!(order.result().await.unwrap(), "too late");
    let history = order.history().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order.history");
    std::fs::write(&path, record(&history)).unwrap();

    replay_file::<Order>(&path).unwrap();
    let error = replay_file::<HastyOrder>(&path).unwrap_err().to_string();
    let line = format!(
        "+ code           ActivityScheduled activity-1, charge, at {}:{HASTY_LINE}:",
        file!()
    );
    assert!(error.contains(&line), "{line} in {error}");
    let error = replay_file::<IdleOrder>(&path).unwrap_err().to_string();
    let line = format!("WaitOpened condition-1, never, at {}:{IDLE_LINE}:", file!());
    assert!(error.contains(&line), "{line} in {error}");
    let missing = replay_file::<Order>(folder.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("none cannot be read"), "{missing}");
}

#[tokio::test]
async fn lines_of_code_are_no_part_of_history() {
    let env = TestEnvironment::new().await;
    let before = env.worker(|worker| worker.workflow::<Order>().activity(charge)).await.unwrap();
    let order = env.start::<Order>("Ada".to_owned()).await.unwrap();
    env.settle().await;
    before.kill().await;
    env.worker(|worker| worker.workflow::<HastyOrder>().activity(charge)).await.unwrap();
    order.signal(Order::PAID, ()).await.unwrap();
    env.settle().await;
    let trouble = order.describe().await.unwrap().trouble.expect("the run is blocked");
    let text = format!("{trouble:?} {:?}", order.history().await.unwrap());
    assert!(text.contains("ActivityScheduled activity-1, charge"), "{text}");
    assert!(!text.contains(file!()), "{text}");
}

/// Ends without the step that its history has.
#[derive(Default)]
struct ShortOrder;

const SHORT_LINE: u32 = line!() + 6;

#[workflow(name = "two-naps")]
impl ShortOrder {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(days(1)).await
    }
}

#[derive(Default)]
struct TwoNaps;

#[workflow(name = "two-naps")]
impl TwoNaps {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<()> {
        ctx.sleep(days(1)).await?;
        ctx.sleep(days(1)).await
    }
}

#[tokio::test]
async fn where_code_ends_too_early_its_last_call_is_named() {
    let env = TestEnvironment::with(|worker| worker.workflow::<TwoNaps>()).await.unwrap();
    let naps = env.start::<TwoNaps>(()).await.unwrap();
    naps.result().await.unwrap();
    let history = naps.history().await.unwrap();
    let error = abide_sdk_testing::replay_history::<ShortOrder>(history).unwrap_err().to_string();
    let line = format!("the last durable call of the code is at {}:{SHORT_LINE}:", file!());
    assert!(error.contains(&line), "{line} in {error}");
}
