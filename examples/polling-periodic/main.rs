//! Periodic polling in a child: when polling takes more than one step, the loop is workflow code.
//! It would fill the history of the run, so it lives in a child that continues as new every few
//! turns.

use std::sync::atomic::{AtomicU32, Ordering};

use abide::{prelude::*, testing::TestEnvironment};

/// Number of requests per run of the child.
const TURNS: u32 = 10;

/// The client of a site where prices change.
#[derive(Default)]
struct Shop {
    asked: AtomicU32,
}

#[activities]
impl Shop {
    #[activity]
    async fn sign_in(&self) -> String {
        "token".into()
    }

    /// The price falls by one each time.
    #[activity]
    async fn price(&self, _token: String) -> u32 {
        100 - self.asked.fetch_add(1, Ordering::Relaxed)
    }
}

#[workflow]
async fn price_watch(ctx: &Context, limit: u32) -> abide::Result<u32> {
    for _ in 0..TURNS {
        let token = ctx.call(Shop::sign_in).await?;
        let price = ctx.activity(Shop::price, token).await?;
        if price <= limit {
            return Ok(price);
        }
        ctx.sleep(hours(6)).await?;
    }
    // An empty history, the same id. The parent does not notice: it waits for the last run.
    Err(ctx.continue_as_new(limit))
}

#[workflow]
async fn purchase(ctx: &Context, limit: u32) -> abide::Result<String> {
    let watch = price_watch::child(ctx, format!("{}/watch", ctx.workflow_id()), limit);
    let price = watch.await?;
    Ok(format!("bought for {price}"))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let shop = Shop::default();
    let env = TestEnvironment::with(|worker| {
        worker.workflow::<purchase>().workflow::<price_watch>().activities(shop)
    })
    .await?;

    let begun = env.now();
    let purchase = purchase::start(&env.client(), "lamp", 65).await?;
    println!("{}", purchase.result().await?);
    println!("after {} hours", env.now().saturating_since(begun).as_secs() / 3600);

    let runs = env.client().runs(Default::default()).take(100).await?;
    let watches = runs.iter().filter(|run| run.workflow_type == "price_watch").count();
    println!("watched by {watches} runs, one after the other");
    println!("{} events in the history of the purchase", purchase.history().await?.len());
    Ok(())
}
