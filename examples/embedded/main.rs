//! Embedded: the engine inside your own program, on one file. The program ends in the middle of a
//! run, and the run continues when the program is started again.

use std::{env, fs, path::Path, process, time::Duration};

use abide::{ClientError, embedded::Embedded, prelude::*};

#[activity]
async fn charge(customer: String) -> String {
    // Printed once, although the workflow's code runs twice: the result is in history.
    println!("charging {customer}");
    format!("receipt for {customer}")
}

#[derive(Default)]
struct Purchase {
    receipt: Option<String>,
}

#[workflow]
impl Purchase {
    #[run]
    async fn run(ctx: &Context<Self>, customer: String) -> abide::Result<String> {
        let receipt = ctx.activity(charge, customer).await?;
        ctx.write(|state| state.receipt = Some(receipt.clone()));
        ctx.receive(Self::DELIVERED).await?;
        Ok(receipt)
    }

    #[signal]
    fn delivered();

    #[query]
    fn charged(&self) -> bool {
        self.receipt.is_some()
    }
}

/// The first process: starts a purchase, and ends before the purchase does.
async fn first_life(file: &Path) -> anyhow::Result<()> {
    let engine = Embedded::open(file).await?;
    let worker = engine.worker().workflow::<Purchase>().activity(charge);
    let purchase = Purchase::start(&engine.client(), "purchase-1", "Ada").await?;
    // Works until the customer is charged, and then finishes what is in flight.
    worker.run_until(charged(&purchase)).await?;
    println!("the program ends, and the run is still open");
    engine.shutdown().await;
    Ok(())
}

async fn charged(purchase: &PurchaseHandle) -> Result<(), ClientError> {
    while !purchase.charged().await? {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The second process: opens the same file, and finds the run where it was.
async fn second_life(file: &Path) -> anyhow::Result<()> {
    let engine = Embedded::open(file).await?;
    engine.worker().workflow::<Purchase>().activity(charge).spawn();
    let purchase = engine.client().handle::<Purchase>("purchase-1");
    purchase.delivered().await?;
    println!("{}", purchase.result().await?);
    engine.shutdown().await;
    Ok(())
}

async fn both_lives(file: &Path) -> anyhow::Result<()> {
    first_life(file).await?;
    second_life(file).await
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let folder = env::temp_dir().join(format!("abide-example-{}", process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("abide.db");
    let done = both_lives(&file).await;
    // Leaves no file behind.
    fs::remove_dir_all(folder)?;
    done
}
