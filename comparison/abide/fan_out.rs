//! Fan-out: ten pages are counted at the same time, and the counts are added.

use abide::{embedded::Embedded, prelude::*};

#[activity]
async fn count(page: u64) -> u64 {
    page * 100
}

#[workflow]
async fn import(ctx: &Context, pages: u64) -> abide::Result<u64> {
    let counts = try_join_all((1..=pages).map(|page| ctx.activity(count, page))).await?;
    Ok(counts.into_iter().sum())
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let engine = Embedded::open("fan-out.db").await?;
    engine.worker().workflow::<import>().activity(count).spawn();
    let import = import::start(&engine.client(), "import-1", 10u64).await?;
    println!("{}", import.result().await?);
    Ok(())
}
