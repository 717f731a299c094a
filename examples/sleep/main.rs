//! Sleep: a durable wait for time, and the list of all waits.

use std::time::Duration;

use abide::{embedded::Embedded, list::WaitFilter, prelude::*};

/// A sleep is a row in the store, not a thread: it may last a month, and costs nothing meanwhile.
#[workflow]
async fn reminder(ctx: &Context, text: String) -> abide::Result<String> {
    let before = ctx.now();
    ctx.sleep(Duration::from_millis(200)).await?;
    // The workflow's clock comes from history: on replay it returns the same time.
    let slept = ctx.now().saturating_since(before);
    assert!(slept >= Duration::from_millis(200), "a sleep is never cut short");
    Ok(format!("Remember: {text}"))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let client = engine.client();

    // Nothing runs yet, because there is no worker. The start is durable nevertheless.
    let reminder = reminder::start(&client, "reminder-1", "water the plants").await?;
    engine.worker().workflow::<reminder>().spawn();

    println!("{}", reminder.result().await?);

    // Waits can be listed over all runs. None are left.
    let waits = client.waits(WaitFilter::new()).take(10).await?;
    println!("{} waits are open", waits.len());
    Ok(())
}
