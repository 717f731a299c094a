//! What a run waits for, as its client sees it: listed, described, rescheduled, and followed as it
//! changes.

use abide::{
    ClientError, Context, Outcome,
    client::{WaitKey, WaitsFollower},
    condition,
    list::{WaitEnd, WaitFilter, WaitKind},
    workflow,
};
use abide_core::{event::Mover, run::Refusal};
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
        let wait = paid.timeout(seconds(3600)).about("an order").actors(["anna"]);
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
async fn next(follower: &mut WaitsFollower) -> abide::client::ShownWait {
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
    assert_eq!(wait.until, clock.now().saturating_add(seconds(3600)));
    let details = wait.details.clone().unwrap();
    assert_eq!((details.subject.as_str(), details.actors), ("an order", vec!["anna".into()]));

    let filter = WaitFilter {
        kind: Some(WaitKind::Condition),
        name: Some("order.paid".into()),
        workflow: Some("order-1".into()),
        workflow_type: Some("Order".into()),
        until: Some(wait.until),
        since_before: Some(clock.now().saturating_add(seconds(1))),
        ..WaitFilter::default()
    };
    let [row] = client.waits(filter).take(10).await.unwrap().try_into().unwrap();
    assert_eq!(WaitKey::from_bytes(&row.wait), Some(wait.key.clone()));
    assert_eq!((row.until, row.timer), (wait.until, wait.timer.clone()));
    assert_eq!(handle.describe().await.unwrap().waits, std::slice::from_ref(&wait));

    let later = wait.until.saturating_add(seconds(3600));
    handle.reschedule_wait(wait.key.clone(), later).await.unwrap();
    let moved = next(&mut follower).await;
    assert_eq!((&moved.key, moved.until, moved.moves), (&wait.key, later, 1));
    assert!(matches!(moved.moved_by, Some(Mover::Outside { .. })), "{moved:?}");
    advance(&clock, seconds(3600));
    assert_eq!(handle.waits().await.unwrap(), [moved], "its old deadline has no effect");

    handle.signal(Order::PAY, ()).await.unwrap();
    let wait = next(&mut follower).await;
    assert_eq!((wait.kind, wait.name.as_str(), wait.timer), (WaitKind::Signal, "ship", None));
    let endless = handle.reschedule_wait(wait.key, later).await.unwrap_err();
    assert!(matches!(endless, ClientError::Refused(Refusal::NoDeadline(_))), "{endless:?}");
    handle.signal(Order::SHIP, ()).await.unwrap();
    while follower.next().await.unwrap().is_some() {}
    assert_eq!(handle.result().await.unwrap(), "shipped");
    assert!(handle.waits().await.unwrap().is_empty());
    running.stop().await;
}
