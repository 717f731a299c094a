//! What a run waits for, as its client sees it: listed, described, rescheduled, and followed as it
//! changes.

use abide::{
    ClientError, Context, Outcome,
    client::{RefusalKind, WaitsFollower},
    condition,
    list::{Wait, WaitEnd, WaitFilter, WaitKind},
    workflow,
};
use abide_embedded::{Embedded, clock::Clock};

use crate::world::{Running, advance, manual_clock, seconds};

/// Waits up to an hour for the payment, and then indefinitely for the shipment.
#[derive(Default)]
struct Order {
    paid: bool,
}

#[workflow]
impl Order {
    #[run]
    async fn run(ctx: &Context<Self>) -> abide::Result<String> {
        let paid = ctx.wait_until(condition!("order.paid", |order| order.paid));
        let wait = paid.timeout(seconds(3600)).about("an order").actors(["anna"]).data("items", &3);
        let Outcome::InTime(()) = wait.await? else { return Ok("timed out".into()) };
        ctx.receive(Self::SHIP).await?;
        Ok("shipped".into())
    }

    #[signal]
    fn pay(&mut self) {
        self.paid = true;
    }

    #[signal]
    fn ship();
}

/// The next change after which the run waits for exactly one thing.
async fn next(follower: &mut WaitsFollower) -> Wait {
    loop {
        let mut waits = follower.next().await.unwrap().expect("the run is open");
        if let Some(wait) = waits.pop() {
            assert!(waits.is_empty(), "it waits for one thing at a time");
            return wait;
        }
    }
}

#[tokio::test]
async fn a_wait_is_listed_moved_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = manual_clock();
    let builder = Embedded::builder().clock(clock.clone());
    let engine = builder.open(folder.path().join("store")).await.unwrap();
    let running = Running::start(engine.worker().workflow::<Order>());
    let client = engine.client();
    let handle = client.start::<Order>("order-1", ()).await.unwrap();
    let mut follower = handle.follow_waits();
    let wait = next(&mut follower).await;
    assert_eq!((wait.kind, wait.name.as_str()), (WaitKind::Condition, "order.paid"));
    assert_eq!(wait.ended_by(), [WaitEnd::Condition, WaitEnd::Deadline]);
    let until = clock.now().saturating_add(seconds(3600));
    assert_eq!(wait.until, Some(until));
    assert_eq!((wait.subject.as_str(), &*wait.actors), ("an order", &["anna".to_owned()][..]));
    assert_eq!(wait.data::<u32>("items").unwrap().unwrap(), 3);
    assert!(wait.concerns(&["anna"]) && !wait.concerns(&["bob"]));

    let filter = WaitFilter::new()
        .kind(WaitKind::Condition)
        .name("order.paid")
        .workflow("order-1")
        .workflow_type("Order")
        .until(until)
        .since_before(clock.now().saturating_add(seconds(1)));
    let [row] = client.waits(filter).take(10).await.unwrap().try_into().unwrap();
    assert_eq!((&row.key, row.kind, &row.name), (&wait.key, wait.kind, &wait.name));
    assert_eq!((row.until, &row.timer), (wait.until, &wait.timer));
    assert_eq!((&row.subject, &row.actors), (&wait.subject, &wait.actors));
    assert_eq!(row.data::<u32>("items").unwrap().unwrap(), 3);
    assert_eq!((row.workflow.as_str(), row.workflow_type.as_str()), ("order-1", "Order"));
    assert_eq!(row.ended_by(), wait.ended_by());
    assert_eq!(handle.describe().await.unwrap().waits, std::slice::from_ref(&wait));

    let later = until.saturating_add(seconds(3600));
    handle.reschedule_wait(wait.key.clone(), later).await.unwrap();
    let moved = next(&mut follower).await;
    assert_eq!((&moved.key, moved.until, moved.extensions), (&wait.key, Some(later), 1));
    assert_eq!(moved.extended_by.as_deref(), Some(client.identity()));
    advance(&clock, seconds(3600));
    assert_eq!(handle.waits().await.unwrap(), [moved], "its old deadline has no effect");

    handle.signal(Order::PAY, ()).await.unwrap();
    let wait = next(&mut follower).await;
    assert_eq!((wait.kind, wait.name.as_str(), wait.timer), (WaitKind::Signal, "ship", None));
    assert_eq!((wait.until, wait.subject.as_str()), (None, ""));
    let endless = handle.reschedule_wait(wait.key, later).await.unwrap_err();
    let ClientError::Refused(endless) = endless else { panic!("{endless:?}") };
    assert_eq!(endless.kind(), RefusalKind::NoDeadline);
    handle.signal(Order::SHIP, ()).await.unwrap();
    while follower.next().await.unwrap().is_some() {}
    assert_eq!(handle.result().await.unwrap(), "shipped");
    assert!(handle.waits().await.unwrap().is_empty());
    running.stop().await;
}
