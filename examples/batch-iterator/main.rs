//! Batch iterator: millions of records are handled page by page, in one workflow. Each page is a
//! run with a short history; its input is the position and the totals so far.

use abide::{embedded::Embedded, list::RunFilter, prelude::*};
use serde::{Deserialize, Serialize};

/// Number of records per page.
const PAGE: u32 = 10;

/// Position and totals of the batch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Position {
    /// The last record that was handled. Not a count: records may be added and removed meanwhile.
    after: u32,
    upgraded: u32,
}

/// The next page of a table, by its key: `select id ... where id > after order by id limit 10`.
#[activity]
async fn fetch_page(after: u32) -> Vec<u32> {
    (after + 1..=25).take(PAGE as usize).collect()
}

/// Idempotent: it sets a value instead of adding.
#[activity]
async fn upgrade(_record: u32) {}

#[workflow]
async fn upgrade_all(ctx: &Context, position: Position) -> abide::Result<u32> {
    let records = ctx.activity(fetch_page, position.after).await?;
    let Some(last) = records.last().copied() else {
        return Ok(position.upgraded);
    };
    let upgraded = records.iter().map(|record| ctx.activity(upgrade, *record));
    for upgraded in join_all(upgraded).await {
        upgraded?;
    }
    let upgraded = position.upgraded + u32::try_from(records.len()).unwrap_or(PAGE);
    // The page is done: the next run starts with an empty history, under the same id.
    Err(ctx.continue_as_new(Position { after: last, upgraded }))
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::in_memory().await;
    let worker = engine.worker().workflow::<upgrade_all>();
    worker.activity(fetch_page).activity(upgrade).spawn();
    let client = engine.client();

    let batch = upgrade_all::start(&client, "upgrade-all", Position::default()).await?;
    println!("{} records", batch.result().await?);
    println!("{} runs", client.runs(RunFilter::new()).take(100).await?.len());
    Ok(())
}
