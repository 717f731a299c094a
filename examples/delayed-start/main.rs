//! Delayed start: accepted now, started later. Until then the run is visible, receives signals, and
//! can be cancelled; none of its code has run.

use abide::{ClientError, prelude::*, testing::TestEnvironment};

#[activity]
async fn send_survey(customer: String) -> String {
    format!("{customer} was asked how it went")
}

#[workflow]
async fn survey(ctx: &Context, customer: String) -> abide::Result<String> {
    ctx.activity(send_survey, customer).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let env =
        TestEnvironment::with(|worker| worker.workflow::<survey>().activity(send_survey)).await?;
    let client = env.client();
    let begun = env.now();

    // Started with the purchase, not a week later: so nothing has to be remembered in between.
    let ada = survey::start(&client, "survey-ada", "Ada").delay(days(7)).await?;
    let bob = survey::start(&client, "survey-bob", "Bob").delay(days(7)).await?;

    env.skip(days(3)).await;
    println!("after three days: Ada's survey is {:?}", ada.describe().await?.status);

    // Bob has returned his lamp.
    bob.cancel().reason("returned").await?;
    let cancelled = matches!(bob.result().await, Err(ClientError::RunCancelled(_)));
    println!("Bob's survey was cancelled before it began: {cancelled}");

    println!("{}", ada.result().await?);
    println!("after {} days", env.now().saturating_since(begun).as_secs() / (24 * 3600));
    Ok(())
}
