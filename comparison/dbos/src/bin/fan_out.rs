//! Fan-out: ten pages are counted at the same time, and the counts are added.

use dbos::{Config, DBOS, step};

async fn count(page: u64) -> dbos::Result<u64> {
    Ok(page * 100)
}

async fn import(pages: u64) -> dbos::Result<u64> {
    let counts = (1..=pages).map(|page| step("count", move || count(page)));
    let counts = futures_util::future::try_join_all(counts.collect::<Vec<_>>()).await?;
    Ok(counts.into_iter().sum())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("fan-out");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let import = dbos.register_workflow("import", import)?;
    dbos.launch().await?;
    println!("{}", import.run(10).await?);
    dbos.shutdown().await;
    Ok(())
}
