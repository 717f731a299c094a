//! Local activities: short steps that run inside the workflow task, in the workflow's worker. They
//! need no queue, no durable attempt and no workflow task of their own: several of them share one
//! task and add one event each.

use abide::{WorkflowHandle, embedded::Embedded, prelude::*};

#[activity]
async fn in_stock(item: String) -> bool {
    item != "piano"
}

#[activity]
async fn price(item: String) -> u32 {
    10 * u32::try_from(item.len()).unwrap_or(u32::MAX)
}

#[activity]
async fn discount(customer: String) -> u32 {
    if customer == "Ada" { 5 } else { 0 }
}

#[workflow]
async fn quote(ctx: &Context, customer: String, item: String) -> abide::Result<String> {
    if !ctx.local_activity(in_stock, &item).await? {
        return Ok(format!("no {item} is left"));
    }
    let price = ctx.local_activity(price, &item);
    let discount = ctx.local_activity(discount, &customer);
    let (price, discount) = join!(price, discount);
    Ok(format!("{customer} gets a {item} for {}", price? - discount?))
}

/// The same with ordinary activities: the functions are the same, only the call differs.
#[workflow]
async fn slow_quote(ctx: &Context, customer: String, item: String) -> abide::Result<String> {
    if !ctx.activity(in_stock, &item).await? {
        return Ok(format!("no {item} is left"));
    }
    let price = ctx.activity(price, &item).await?;
    let discount = ctx.activity(discount, &customer).await?;
    Ok(format!("{customer} gets a {item} for {}", price - discount))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<quote>().workflow::<slow_quote>();
    worker.activity(in_stock).activity(price).activity(discount).spawn();
    let client = engine.client();

    let quote = quote::start(&client, "quote", "Ada", "lamp").await?;
    println!("{}", quote.result().await?);
    println!("local: {}", cost(&quote).await?);

    let quote = slow_quote::start(&client, "slow-quote", "Ada", "lamp").await?;
    println!("{}", quote.result().await?);
    println!("ordinary: {}", cost(&quote).await?);
    Ok(())
}

async fn cost<W>(quote: &WorkflowHandle<W>) -> Result<String, abide::ClientError> {
    let history = quote.history().await?;
    let tasks = history.iter().filter(|event| event.name() == "TaskCompleted").count();
    Ok(format!("{tasks} tasks, {} events", history.len()))
}
