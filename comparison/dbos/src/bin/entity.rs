//! Entity: a customer's points, for years; they are added to, asked for, and outlive a run's history.

use std::time::Duration;

use dbos::{Config, DBOS, StartOptions, recv, set_event};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Message {
    Earn(u64),
    Leave,
}

async fn customer(mut points: u64) -> dbos::Result<u64> {
    loop {
        let level = if points >= 100 { "gold" } else { "basic" };
        set_event("level", &level).await?;
        match recv(None, Duration::from_secs(24 * 3600)).await? {
            Some(Message::Earn(more)) => points += more,
            Some(Message::Leave) => return Ok(points),
            None => {}
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut config = Config::from_env("entity");
    config.app_version = Some("1".to_owned());
    let dbos = DBOS::new(config);
    let customer = dbos.register_workflow("customer", customer)?;
    dbos.launch().await?;
    let options = StartOptions { workflow_id: Some("ada"), ..Default::default() };
    customer.start_with(0, options).await?;
    dbos.send("ada", &Message::Earn(120)).await?;
    let wait = Duration::from_secs(10);
    let level: Option<String> = dbos.get_event("ada", "level", wait).await?;
    println!("{}", level.unwrap_or_default());
    dbos.send("ada", &Message::Leave).await?;
    dbos.shutdown().await;
    Ok(())
}
