//! Children that are replaced by a test, and what workflows asked for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and so do its helpers")]

extern crate abide_sdk as abide;

use std::time::Duration;

use abide::{client::ClientError, prelude::*};
use abide_sdk_testing::{Step, TestEnvironment, steps};

const HOUR: Duration = Duration::from_secs(3600);

#[activity]
async fn weigh(_item: String) -> u32 {
    7
}

#[derive(Default)]
struct Parcel;

#[workflow]
impl Parcel {
    #[run]
    async fn run(ctx: &Context<Self>, item: String, grams: u32) -> abide::Result<String> {
        ctx.sleep(24 * HOUR).await?;
        Ok(format!("{item} of {grams} g was sent"))
    }
}

#[derive(Default)]
struct Order;

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        let grams = ctx.activity(weigh, item.clone()).await?;
        let _paid = ctx.receive(Self::PAID).timeout(2 * HOUR).await?;
        let parcel = ctx.child::<Parcel>(format!("{}/parcel", ctx.workflow_id()), (item, grams));
        select! {
            sent = parcel => sent,
            slept = ctx.sleep(48 * HOUR) => slept.map(|()| "late".to_owned()),
        }
    }

    #[signal]
    fn paid();
}

async fn ordered(set_up: impl FnOnce(&TestEnvironment)) -> (Vec<Step>, Result<String, String>) {
    let env = TestEnvironment::new().await;
    set_up(&env);
    env.worker(|worker| worker.workflow::<Order>().activity(weigh)).await.unwrap();
    let order = env.client().start::<Order>("order-1", "a lamp").await.unwrap();
    let result = order.result().await.map_err(|error: ClientError| error.to_string());
    (steps(&order.history().await.unwrap()), result)
}

fn begins() -> [Step; 4] {
    [
        Step::activity(weigh, "a lamp"),
        Step::receive_within("paid", 2 * HOUR),
        Step::child::<Parcel>("order-1/parcel", ("a lamp", 7)),
        Step::sleep(48 * HOUR),
    ]
}

#[tokio::test]
async fn a_child_is_replaced_by_a_function_of_its_arguments() {
    let fake = |(item, grams)| Ok(format!("{item}, {grams}"));
    let (asked, result) = ordered(|env| env.replace_child::<Parcel>(fake)).await;
    assert_eq!(result.unwrap(), "a lamp, 7");
    assert_eq!(asked[..4], begins());
    assert_eq!(asked[4..], [Step::complete("a lamp, 7")]);
}

#[tokio::test]
async fn a_replaced_child_fails_as_a_child_does() {
    let fake = |_| Err("no truck".into());
    let (asked, result) = ordered(|env| env.replace_child::<Parcel>(fake)).await;
    let message = "child order-1/parcel of type Parcel failed: no truck";
    assert_eq!(result.unwrap_err(), format!("the run failed: {message}"));
    assert_eq!(asked[4..], [Step::fail(message)]);
}

#[tokio::test]
async fn a_child_that_hangs_is_overtaken_by_time() {
    let (asked, result) = ordered(|env| env.hang_child::<Parcel>()).await;
    assert_eq!(result.unwrap(), "late");
    assert_eq!(asked.last(), Some(&Step::complete("late")));
}

#[tokio::test]
async fn a_worker_of_activities_takes_no_tasks_of_replaced_children() {
    let env = TestEnvironment::new().await;
    env.replace_child::<Parcel>(|_| Ok("sent".into()));
    env.worker(|worker| worker.workflow::<Order>()).await.unwrap();
    env.worker(|worker| worker.activity(weigh)).await.unwrap();
    let order = env.client().start::<Order>("order-1", "a lamp").await.unwrap();
    assert_eq!(order.result().await.unwrap(), "sent");
}

#[test]
fn what_was_asked_for_is_readable_when_it_differs() {
    let shown: Vec<_> = begins().iter().map(|asked| format!("{asked:?}")).collect();
    assert_eq!(
        shown,
        [
            "activity weigh(\"a lamp\")",
            "receive paid within 7200s",
            "child Parcel order-1/parcel(\"a lamp\", 7)",
            "sleep 172800s",
        ]
    );
    assert_ne!(begins()[0], Step::activity(weigh, "a chair"));
}
