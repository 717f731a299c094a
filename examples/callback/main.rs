//! Delayed callback: another company is asked for something and calls back days later, perhaps
//! twice, perhaps never. The call becomes a signal, and the wait for it has a deadline.

use abide::{Client, ClientError, prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};

/// What the other company sends to our address.
#[derive(Clone, Serialize, Deserialize)]
struct Webhook {
    /// Our reference, which identifies the run.
    reference: String,
    /// Its own id of the call, the same when it calls again.
    delivery: String,
    price: u32,
}

/// Asks for an offer, and passes the workflow's id along, so that the answer finds the run.
#[activity]
async fn ask_for_offer(item: String, reference: String) {
    println!("asked for a {item}; the answer goes to {reference}");
}

#[activity]
async fn remind(reference: String) {
    println!("reminded them of {reference}");
}

#[derive(Default)]
struct Offer;

#[workflow]
impl Offer {
    #[run]
    async fn run(ctx: &Context<Self>, item: String) -> abide::Result<String> {
        let reference = ctx.workflow_id().to_string();
        ctx.activity(ask_for_offer, (&item, &reference)).await?;
        // An answer that arrives before this line is kept.
        for _ in 0..2 {
            match ctx.receive(Self::ANSWERED).timeout(days(3)).await? {
                Outcome::InTime(price) => return Ok(format!("a {item} for {price}")),
                // A reminder, at a time that survives every restart.
                Outcome::TimedOut => ctx.activity(remind, &reference).await?,
            }
        }
        Ok(format!("no offer for a {item}"))
    }

    #[signal]
    fn answered(price: u32);
}

/// What the web server does when it is called. It replies "thank you" to the other company only
/// once the signal is durable, so that a lost call is made again.
async fn on_webhook(client: &Client, call: Webhook) -> Result<&'static str, ClientError> {
    let offer = client.handle::<Offer>(call.reference);
    // The key makes a second delivery the same signal.
    match offer.answered(call.price).key(call.delivery).await {
        Ok(()) => Ok("thank you"),
        // Another call would not help, so this is not reported as an error.
        Err(ClientError::Refused(_) | ClientError::NotFound) => Ok("nobody waits for it"),
        Err(error) => Err(error),
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<Offer>().activity(ask_for_offer).activity(remind)
    })
    .await?;
    let client = env.client();

    let lamp = Offer::start(&client, "offer-1", "lamp").await?;
    env.skip(days(4)).await;
    let call = Webhook { reference: "offer-1".into(), delivery: "delivery-9".into(), price: 30 };
    println!("{}", on_webhook(&client, call.clone()).await?);
    println!("{}", on_webhook(&client, call).await?);
    println!("{}", lamp.result().await?);

    let desk = Offer::start(&client, "offer-2", "desk").await?;
    println!("{}", desk.result().await?);
    let late = Webhook { reference: "offer-2".into(), delivery: "delivery-10".into(), price: 90 };
    println!("{}", on_webhook(&client, late).await?);
    Ok(())
}
