//! Delayed callback: another company is asked for something and calls back days later, perhaps twice,
//! perhaps never. The call becomes a signal, and the wait for it has a deadline.

use abide::{Client, ClientError, prelude::*, testing::TestEnvironment};
use serde::{Deserialize, Serialize};

/// What the other company sends to our address.
#[derive(Clone, Serialize, Deserialize)]
struct Webhook {
    /// What we gave it: who the answer is for.
    reference: String,
    /// Its own number for the call, the same when it calls again.
    delivery: String,
    price: u32,
}

/// Asks for an offer. The workflow's id goes along, so that the answer finds the run.
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
        ctx.activity(ask_for_offer, (item.clone(), reference.clone())).await?;
        // An answer that comes before this line is kept: nothing is lost by being quick.
        for _ in 0..2 {
            match ctx.receive(Self::answered).timeout(days(3)).await? {
                Outcome::InTime(price) => return Ok(format!("a {item} for {price}")),
                // A call out, at a time that survives every restart.
                Outcome::TimedOut => ctx.activity(remind, reference.clone()).await?,
            }
        }
        Ok(format!("no offer for a {item}"))
    }

    #[signal]
    fn answered(price: u32);
}

/// What the web server does when it is called. It answers the other company "thank you" when the signal
/// is on disk, and not before; so a call that was lost is made again.
async fn on_webhook(client: &Client, call: Webhook) -> Result<&'static str, ClientError> {
    let offer = client.handle::<Offer>(call.reference);
    // The key makes a second delivery the same signal.
    match offer.signal(Offer::answered, call.price).key(call.delivery).await {
        Ok(()) => Ok("thank you"),
        // To call again would not help: do not ask for it by an error.
        Err(ClientError::Refused(_) | ClientError::NotFound) => Ok("nobody waits for it"),
        Err(error) => Err(error),
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env = TestEnvironment::new().await;
    let activities = |worker: abide::Worker| worker.activity(ask_for_offer).activity(remind);
    env.worker(|worker| activities(worker.workflow::<Offer>())).await?;
    let client = env.client();

    let lamp = client.start::<Offer>("offer-1", "lamp".to_owned()).await?;
    env.skip(days(4)).await;
    let call = Webhook { reference: "offer-1".into(), delivery: "delivery-9".into(), price: 30 };
    println!("{}", on_webhook(&client, call.clone()).await?);
    println!("{}", on_webhook(&client, call).await?);
    println!("{}", lamp.result().await?);

    let desk = client.start::<Offer>("offer-2", "desk".to_owned()).await?;
    println!("{}", desk.result().await?);
    let late = Webhook { reference: "offer-2".into(), delivery: "delivery-10".into(), price: 90 };
    println!("{}", on_webhook(&client, late).await?);
    Ok(())
}
